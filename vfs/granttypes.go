package vfs

import "ogw/vfs/internal/record"

// Grants are the rights to a bucket or an object that its owner gave to
// others: the access control list of the object doors. POSIX ACLs are another
// thing (acl.go). None means private. A list that is stored or returned is
// never changed in place.
type Grants = record.Grants

// Grant gives a grantee one permission.
type Grant = record.Grant

// UserID identifies a user for good: it is never given twice, whatever
// becomes of the name. The ID "" is nobody: anonymous requests have it.
type UserID = record.UserID

// Grantee is the kind of who gets a permission.
type Grantee = record.Grantee

const (
	GranteeUser          = record.GranteeUser          // one user
	GranteeEverybody     = record.GranteeEverybody     // anonymous requests too
	GranteeAuthenticated = record.GranteeAuthenticated // every user
	// GranteeOwner is whoever owns the thing, who has all rights without that. An
	// entry shows that the list says of the owner what was asked for; one without
	// permissions that it is nothing. Without any, the owner has full control.
	GranteeOwner = record.GranteeOwner
)

// Permission is a set of rights to a bucket or an object; a Grant holds one,
// or PermFullControl.
type Permission = record.Permission

const (
	PermRead     = record.PermRead     // a bucket: list; an object: read
	PermWrite    = record.PermWrite    // a bucket: make, overwrite and delete objects
	PermReadACP  = record.PermReadACP  // read the grants
	PermWriteACP = record.PermWriteACP // change the grants

	// PermFullControl is every permission.
	PermFullControl = record.PermFullControl
)

// MaxGrants bounds one list (S3's own limit), beside an entry without permissions.
const MaxGrants = record.MaxGrants
