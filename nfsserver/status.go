package nfsserver

import (
	"context"
	"errors"

	"ogw/nfsserver/rpc"
	"ogw/vfs"
)

// Status is an nfsstat3 (RFC 1813 section 2.6). It is an error, so that a
// procedure can return one.
type Status uint32

// The statuses of RFC 1813 section 2.6.
const (
	OK             Status = 0
	ErrPerm        Status = 1
	ErrNoEnt       Status = 2
	ErrIO          Status = 5
	ErrNXIO        Status = 6
	ErrAcces       Status = 13
	ErrExist       Status = 17
	ErrXDev        Status = 18
	ErrNoDev       Status = 19
	ErrNotDir      Status = 20
	ErrIsDir       Status = 21
	ErrInval       Status = 22
	ErrFBig        Status = 27
	ErrNoSpc       Status = 28
	ErrROFS        Status = 30
	ErrMLink       Status = 31
	ErrNameTooLong Status = 63
	ErrNotEmpty    Status = 66
	ErrDQuot       Status = 69
	ErrStale       Status = 70
	ErrRemote      Status = 71
	ErrBadHandle   Status = 10001
	ErrNotSync     Status = 10002
	ErrBadCookie   Status = 10003
	ErrNotSupp     Status = 10004
	ErrTooSmall    Status = 10005
	ErrServerFault Status = 10006
	ErrBadType     Status = 10007
	ErrJukebox     Status = 10008
)

var statusNames = map[Status]string{
	OK: "OK", ErrPerm: "PERM", ErrNoEnt: "NOENT", ErrIO: "IO", ErrNXIO: "NXIO", ErrAcces: "ACCES",
	ErrExist: "EXIST", ErrXDev: "XDEV", ErrNoDev: "NODEV", ErrNotDir: "NOTDIR", ErrIsDir: "ISDIR",
	ErrInval: "INVAL", ErrFBig: "FBIG", ErrNoSpc: "NOSPC", ErrROFS: "ROFS", ErrMLink: "MLINK",
	ErrNameTooLong: "NAMETOOLONG", ErrNotEmpty: "NOTEMPTY", ErrDQuot: "DQUOT", ErrStale: "STALE",
	ErrRemote: "REMOTE", ErrBadHandle: "BADHANDLE", ErrNotSync: "NOT_SYNC", ErrBadCookie: "BAD_COOKIE",
	ErrNotSupp: "NOTSUPP", ErrTooSmall: "TOOSMALL", ErrServerFault: "SERVERFAULT",
	ErrBadType: "BADTYPE", ErrJukebox: "JUKEBOX",
}

// String returns the name in RFC 1813 without its prefix.
func (s Status) String() string {
	if n, ok := statusNames[s]; ok {
		return n
	}
	return "unknown"
}

// Error makes a Status an error.
func (s Status) Error() string { return "nfs: " + s.String() }

// errorTable maps the errors of vfs to statuses. What no NFS procedure can
// cause stands here too, so that nothing turns into a surprise.
//
// JUKEBOX makes the client wait and try again, which is what a hard mount
// does while its server is away. COMMIT and WRITE are safe to repeat; other
// calls may, after an unknown outcome, find their own work done (EXIST).
var errorTable = []struct {
	err    error
	status Status
}{
	{vfs.ErrNotExist, ErrNoEnt},
	{vfs.ErrExist, ErrExist},
	{vfs.ErrNotDir, ErrNotDir},
	{vfs.ErrIsDir, ErrIsDir},
	{vfs.ErrNotEmpty, ErrNotEmpty},
	{vfs.ErrAccess, ErrAcces},
	{vfs.ErrPerm, ErrPerm},
	{vfs.ErrProtected, ErrPerm},
	{vfs.ErrInvalid, ErrInval},
	{vfs.ErrNameTooLong, ErrNameTooLong},
	{vfs.ErrNoSpace, ErrNoSpc},
	{vfs.ErrReadOnly, ErrROFS},
	{vfs.ErrStale, ErrStale},
	{vfs.ErrCorrupt, ErrIO},
	{vfs.ErrIO, ErrIO},
	{vfs.ErrFileTooLarge, ErrFBig},
	{vfs.ErrTooManyLinks, ErrMLink},
	{vfs.ErrNotSupported, ErrNotSupp},
	{vfs.ErrBusy, ErrJukebox},
	{vfs.ErrNoAttr, ErrNoEnt},
	{vfs.ErrAttrTooLarge, ErrInval},
	{vfs.ErrRange, ErrInval},
	{vfs.ErrNoData, ErrNXIO},
	{vfs.ErrBadHandle, ErrInval},
	{vfs.ErrWouldBlock, ErrJukebox},
	{vfs.ErrDeadlock, ErrInval},
	{vfs.ErrNoLocks, ErrJukebox},
	{vfs.ErrInterrupted, ErrJukebox},
	{vfs.ErrTimeout, ErrJukebox},
	{vfs.ErrUnavailable, ErrJukebox},
	{vfs.ErrConflict, ErrJukebox},
	{vfs.ErrClosed, ErrJukebox}, // shutting down: the client finds the next process
	{vfs.ErrTooLarge, ErrFBig},

	{vfs.ErrNoSuchBucket, ErrNoEnt},
	{vfs.ErrBucketExists, ErrExist},
	{vfs.ErrBucketOwned, ErrExist},
	{vfs.ErrBucketNotEmpty, ErrNotEmpty},
	{vfs.ErrBadBucketName, ErrInval},
	{vfs.ErrACLsDisabled, ErrInval},
	{vfs.ErrACLGrants, ErrInval},
	{vfs.ErrWriteOffset, ErrInval},
	{vfs.ErrAppendMeta, ErrInval},
	{vfs.ErrReservedName, ErrPerm},
	{vfs.ErrNoSuchKey, ErrNoEnt},
	{vfs.ErrKeyTooLong, ErrNameTooLong},
	{vfs.ErrNoSuchUpload, ErrNoEnt},
	{vfs.ErrBadPart, ErrInval},
	{vfs.ErrPartOrder, ErrInval},
	{vfs.ErrPartTooSmall, ErrInval},
	{vfs.ErrBadPartNumber, ErrInval},
	{vfs.ErrObjectTooLarge, ErrFBig},
	{vfs.ErrPrecondition, ErrNotSync},
	{vfs.ErrNotModified, ErrInval},
	{vfs.ErrBadRange, ErrInval},
	{vfs.ErrBadDigest, ErrIO},
	{vfs.ErrShortBody, ErrIO},
	{vfs.ErrLongBody, ErrIO},
	{vfs.ErrNoSuchUser, ErrAcces},
	{vfs.ErrUserExists, ErrExist},
	{vfs.ErrUIDTaken, ErrExist},
	{vfs.ErrSealed, ErrAcces},
}

// statusOf returns the status that an error is answered with.
func statusOf(err error) Status {
	if err == nil {
		return OK
	}
	var s Status
	if errors.As(err, &s) {
		return s
	}
	for _, e := range errorTable {
		if errors.Is(err, e.err) {
			return e.status
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrJukebox
	}
	return ErrServerFault
}

// dropped reports whether err leaves the call without a reply: the arguments
// are garbage, or the server is going away.
func dropped(err error) bool {
	return errors.Is(err, rpc.ErrGarbageArgs) || errors.Is(err, rpc.ErrDrop)
}
