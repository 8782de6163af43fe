package vfs

import (
	"ogw/vfs/internal/fserr"
	"ogw/vfs/lock"
)

// The closed set of errors of this package. They are wrapped with %w and
// tested with errors.Is; each door has one table that maps them to its own
// codes. The name of the errno stands where POSIX has one.
var (
	ErrNotExist     = fserr.ErrNotExist     // ENOENT
	ErrExist        = fserr.ErrExist        // EEXIST
	ErrNotDir       = fserr.ErrNotDir       // ENOTDIR
	ErrIsDir        = fserr.ErrIsDir        // EISDIR
	ErrNotEmpty     = fserr.ErrNotEmpty     // ENOTEMPTY
	ErrAccess       = fserr.ErrAccess       // EACCES
	ErrPerm         = fserr.ErrPerm         // EPERM
	ErrProtected    = fserr.ErrProtected    // EPERM; it is an ErrPerm, too
	ErrInvalid      = fserr.ErrInvalid      // EINVAL
	ErrNameTooLong  = fserr.ErrNameTooLong  // ENAMETOOLONG
	ErrNoSpace      = fserr.ErrNoSpace      // ENOSPC
	ErrReadOnly     = fserr.ErrReadOnly     // EROFS
	ErrStale        = fserr.ErrStale        // ESTALE
	ErrIO           = fserr.ErrIO           // EIO
	ErrCorrupt      = fserr.ErrCorrupt      // EIO
	ErrFileTooLarge = fserr.ErrFileTooLarge // EFBIG
	ErrTooManyLinks = fserr.ErrTooManyLinks // EMLINK
	ErrNotSupported = fserr.ErrNotSupported // ENOTSUP
	ErrBusy         = fserr.ErrBusy         // EBUSY
	ErrNoAttr       = fserr.ErrNoAttr       // ENODATA
	ErrAttrTooLarge = fserr.ErrAttrTooLarge // E2BIG
	ErrRange        = fserr.ErrRange        // ERANGE
	ErrNoData       = fserr.ErrNoData       // ENXIO
	ErrBadHandle    = fserr.ErrBadHandle    // EBADF
	ErrWouldBlock   = lock.ErrWouldBlock    // EAGAIN
	ErrDeadlock     = lock.ErrDeadlock      // EDEADLK
	ErrNoLocks      = lock.ErrNoLocks       // ENOLCK
	ErrInterrupted  = lock.ErrInterrupted   // EINTR
	ErrTimeout      = fserr.ErrTimeout      // ETIMEDOUT
	ErrUnavailable  = fserr.ErrUnavailable  // EIO, EAGAIN
	ErrConflict     = fserr.ErrConflict     // EAGAIN
	ErrClosed       = fserr.ErrClosed       // ESHUTDOWN
	ErrTooLarge     = fserr.ErrTooLarge     // E2BIG

	// Errors of object operations.
	ErrNoSuchBucket   = fserr.ErrNoSuchBucket
	ErrBucketExists   = fserr.ErrBucketExists
	ErrBucketOwned    = fserr.ErrBucketOwned
	ErrBucketNotEmpty = fserr.ErrBucketNotEmpty
	ErrBadBucketName  = fserr.ErrBadBucketName
	ErrReservedName   = fserr.ErrReservedName // EPERM
	ErrACLsDisabled   = fserr.ErrACLsDisabled
	ErrACLGrants      = fserr.ErrACLGrants
	ErrWriteOffset    = fserr.ErrWriteOffset
	ErrAppendMeta     = fserr.ErrAppendMeta
	ErrNoSuchKey      = fserr.ErrNoSuchKey
	ErrKeyTooLong     = fserr.ErrKeyTooLong
	ErrNoSuchUpload   = fserr.ErrNoSuchUpload
	ErrBadPart        = fserr.ErrBadPart
	ErrPartOrder      = fserr.ErrPartOrder
	ErrPartTooSmall   = fserr.ErrPartTooSmall
	ErrBadPartNumber  = fserr.ErrBadPartNumber
	ErrObjectTooLarge = fserr.ErrObjectTooLarge
	ErrPrecondition   = fserr.ErrPrecondition
	ErrNotModified    = fserr.ErrNotModified
	ErrBadRange       = fserr.ErrBadRange
	ErrBadDigest      = fserr.ErrBadDigest
	ErrShortBody      = fserr.ErrShortBody
	ErrLongBody       = fserr.ErrLongBody
	ErrNoSuchUser     = fserr.ErrNoSuchUser
	ErrUserExists     = fserr.ErrUserExists
	ErrUIDTaken       = fserr.ErrUIDTaken
	ErrSealed         = fserr.ErrSealed
)
