package vfs

import (
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

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

// NobodyUID owns what anonymous requests make (Linux's overflow uid). No user
// has it.
const NobodyUID = perm.NobodyUID

// Cred is who asks, at the POSIX doors. The zero value is nobody, and so is nil:
// modes give it what they give to others, and it owns nothing. So a door that
// forgets to say who asks gives nothing away.
type Cred = perm.Cred

// Root is the superuser.
var Root = perm.Root

// NewCred returns the credential of a user, with supplementary groups, which are
// kept. The uid 0 is the superuser.
func NewCred(uid, gid uint32, groups ...uint32) *Cred { return perm.NewCred(uid, gid, groups...) }

// CheckedCred returns that of a caller whose permissions were checked already (by
// the kernel, under FUSE's default_permissions): uid and gid then only own what is
// made.
func CheckedCred(uid, gid uint32) *Cred { return perm.CheckedCred(uid, gid) }

// FileFlags are the attributes of a file or a directory that chattr(1) sets and
// that are kept. They hold at every door and for everybody, the superuser too.
type FileFlags = perm.FileFlags

const (
	// FlagImmutable: no change of content, attributes or name; of a directory,
	// no entry made or removed.
	FlagImmutable = perm.FlagImmutable
	// FlagAppend: the content only grows at its end, attributes and name stay; of
	// a directory, entries are made, none is removed.
	FlagAppend = perm.FlagAppend
	// FlagNoDump: backup programs leave it out, if they look.
	FlagNoDump = perm.FlagNoDump
	// FlagNoAtime: reading leaves the access time as it is.
	FlagNoAtime = perm.FlagNoAtime
)

// Access bits of Access, as in access(2).
const (
	AccessExec  = perm.AccessExec
	AccessWrite = perm.AccessWrite
	AccessRead  = perm.AccessRead
)
