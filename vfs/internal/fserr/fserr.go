package fserr

import "errors"

// The errors, with the name of the errno where POSIX has one.
var (
	ErrNotExist     = errors.New("no such file or directory")               // ENOENT
	ErrExist        = errors.New("file exists")                             // EEXIST
	ErrNotDir       = errors.New("not a directory")                         // ENOTDIR
	ErrIsDir        = errors.New("is a directory")                          // EISDIR
	ErrNotEmpty     = errors.New("directory not empty")                     // ENOTEMPTY
	ErrAccess       = errors.New("permission denied")                       // EACCES
	ErrPerm         = errors.New("operation not permitted")                 // EPERM
	ErrProtected    = errors.New("immutable or append-only (chattr)")       // EPERM; it is an ErrPerm, too
	ErrInvalid      = errors.New("invalid argument")                        // EINVAL
	ErrNameTooLong  = errors.New("name too long")                           // ENAMETOOLONG
	ErrNoSpace      = errors.New("no space left")                           // ENOSPC
	ErrReadOnly     = errors.New("file system is read-only")                // EROFS
	ErrStale        = errors.New("stale file handle")                       // ESTALE
	ErrIO           = errors.New("input/output error")                      // EIO
	ErrCorrupt      = errors.New("stored data is corrupt")                  // EIO
	ErrFileTooLarge = errors.New("file too large")                          // EFBIG
	ErrTooManyLinks = errors.New("too many links")                          // EMLINK
	ErrNotSupported = errors.New("operation not supported")                 // ENOTSUP
	ErrBusy         = errors.New("resource busy")                           // EBUSY
	ErrNoAttr       = errors.New("no such attribute")                       // ENODATA
	ErrAttrTooLarge = errors.New("attribute too large")                     // E2BIG
	ErrRange        = errors.New("result does not fit")                     // ERANGE
	ErrNoData       = errors.New("no data or hole behind this offset")      // ENXIO
	ErrBadHandle    = errors.New("file not open for this operation")        // EBADF
	ErrTimeout      = errors.New("timed out")                               // ETIMEDOUT
	ErrUnavailable  = errors.New("storage unavailable")                     // EIO, EAGAIN
	ErrConflict     = errors.New("too many conflicting changes, try again") // EAGAIN
	ErrClosed       = errors.New("file system is shut down")                // ESHUTDOWN
	ErrTooLarge     = errors.New("change too large for one transaction")    // E2BIG

	// Errors of object operations.
	ErrNoSuchBucket   = errors.New("no such bucket")
	ErrBucketExists   = errors.New("bucket exists already")
	ErrBucketOwned    = errors.New("bucket exists already and is yours")
	ErrBucketNotEmpty = errors.New("bucket not empty")
	ErrBadBucketName  = errors.New("illegal bucket name: it takes 3 to 255 of a-z 0-9 . - _, begins and ends with a letter or digit, and is no IPv4 address")
	ErrReservedName   = errors.New("name is reserved for the service") // EPERM
	ErrACLsDisabled   = errors.New("the bucket does not allow ACLs")
	ErrACLGrants      = errors.New("the bucket's ACL grants rights to others")
	ErrWriteOffset    = errors.New("the offset is not the size of the object")
	ErrAppendMeta     = errors.New("metadata, tags or an ACL with what is appended")
	ErrNoSuchKey      = errors.New("no such key")
	ErrKeyTooLong     = errors.New("key too long")
	ErrNoSuchUpload   = errors.New("no such multipart upload")
	ErrBadPart        = errors.New("part not found or its ETag differs")
	ErrPartOrder      = errors.New("parts not in ascending order")
	ErrPartTooSmall   = errors.New("part too small")
	ErrBadPartNumber  = errors.New("part number out of range")
	ErrObjectTooLarge = errors.New("object too large")
	ErrPrecondition   = errors.New("precondition failed")
	ErrNotModified    = errors.New("not modified")
	ErrBadRange       = errors.New("range not satisfiable")
	ErrBadDigest      = errors.New("digest does not match the content")
	ErrShortBody      = errors.New("body shorter than its stated length")
	ErrLongBody       = errors.New("body longer than its stated length")
	ErrNoSuchUser     = errors.New("no such user")
	ErrUserExists     = errors.New("user exists already")
	ErrUIDTaken       = errors.New("uid was another user's")
	ErrSealed         = errors.New("the secret is sealed with a cluster key that is not there")
)
