package vfs

import (
	"context"

	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// Subject is the caller for object operations. It comes with the context
// (WithSubject); without one the program itself asks, which may do everything.
// The zero value is nobody: who is neither a user, an administrator nor local
// is anonymous, and owns nothing, whatever the uid.
type Subject = rights.Subject

// Call is what a door knows of one request that policies go by.
type Call = rights.Call

// Nobody is the subject of anonymous requests.
var Nobody = rights.Nobody

// SubjectContext is the context of WithSubject, for who keeps it in a structure
// of their own. Before Subject is set, Nobody asks.
type SubjectContext = rights.SubjectContext

// WithSubject returns a context whose object operations are asked for by s and
// checked against its rights; nil is Nobody. s must not be changed afterwards.
func WithSubject(ctx context.Context, s *Subject) context.Context { return rights.WithSubject(ctx, s) }

// Action is what somebody asks to do through an object door.
type Action = rights.Action

// The actions. Those of a bucket come first.
const (
	ActListBuckets     = rights.ActListBuckets // one's own
	ActCreateBucket    = rights.ActCreateBucket
	ActDeleteBucket    = rights.ActDeleteBucket
	ActListObjects     = rights.ActListObjects
	ActReadBucketACL   = rights.ActReadBucketACL
	ActWriteBucketACL  = rights.ActWriteBucketACL
	ActConfigureBucket = rights.ActConfigureBucket // see or change its configuration
	ActReadObject      = rights.ActReadObject
	ActWriteObject     = rights.ActWriteObject // make, overwrite, tag, begin and go on with uploads
	ActDeleteObject    = rights.ActDeleteObject
	ActReadObjectACL   = rights.ActReadObjectACL
	ActWriteObjectACL  = rights.ActWriteObjectACL
	// ActOwnUpload is to see or to abort an upload, which its initiator may
	// without any grant.
	ActOwnUpload = rights.ActOwnUpload
)

// Anonymous is a caller without an identity, to Simulate.
const Anonymous = rights.Stranger

// Simulated is what becomes of one request.
type Simulated = rights.Simulated

// AccessBlock is what no ACL or policy of a bucket may do, whoever sets it: S3's public
// access block. It is kept as the configuration AccessBlockConfig, in one byte.
type AccessBlock = rights.AccessBlock

// The bits are stored.
const (
	BlockPublicACLs       = rights.BlockPublicACLs       // ACLs that grant to everybody, or to all users, are refused
	IgnorePublicACLs      = rights.IgnorePublicACLs      // such grants give nothing
	BlockPublicPolicies   = rights.BlockPublicPolicies   // public policies are refused
	RestrictPublicBuckets = rights.RestrictPublicBuckets // public policies give nothing to strangers
)

// AccessBlockConfig is the name under which BucketConfig keeps it.
const AccessBlockConfig = rights.AccessBlockConfig

// PayerConfig is the name under which BucketConfig keeps that the requester pays for requests
// to a bucket (FS.SetRequesterPays).
const PayerConfig = rights.PayerConfig

// Ownership is who owns what is written into a bucket by others than its owner:
// S3's Object Ownership.
type Ownership = rights.Ownership

// The values are stored.
const (
	OwnershipUnset     = rights.OwnershipUnset     // as OwnershipWriter
	OwnershipWriter    = rights.OwnershipWriter    // who writes an object owns it
	OwnershipPreferred = rights.OwnershipPreferred // the bucket's owner, where the ACL says bucket-owner-full-control
	OwnershipEnforced  = rights.OwnershipEnforced  // the bucket's owner owns everything, and ACLs give nothing
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

// Cred is the caller, at the POSIX doors. The zero value is nobody, and so is nil:
// modes give it what they give to others, and it owns nothing. So a door that
// forgets to say who the caller is gives nothing away.
type Cred = perm.Cred

// Root is the superuser.
var Root = perm.Root

// NoID is no uid and no gid.
const NoID = 1<<32 - 1

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
