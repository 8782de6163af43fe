package fusemount

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// errnos is the one table from errors of the VFS to those of this door. The
// first match counts.
var errnos = [...]struct {
	err error
	no  syscall.Errno
}{
	{vfs.ErrNotExist, syscall.ENOENT},
	{vfs.ErrExist, syscall.EEXIST},
	{vfs.ErrNotDir, syscall.ENOTDIR},
	{vfs.ErrIsDir, syscall.EISDIR},
	{vfs.ErrNotEmpty, syscall.ENOTEMPTY},
	{vfs.ErrAccess, syscall.EACCES},
	{vfs.ErrPerm, syscall.EPERM},
	{vfs.ErrProtected, syscall.EPERM},
	{vfs.ErrInvalid, syscall.EINVAL},
	{vfs.ErrNameTooLong, syscall.ENAMETOOLONG},
	{vfs.ErrNoSpace, syscall.ENOSPC},
	{vfs.ErrReadOnly, syscall.EROFS},
	{vfs.ErrStale, syscall.ESTALE},
	{vfs.ErrCorrupt, syscall.EIO},
	{vfs.ErrIO, syscall.EIO},
	{vfs.ErrFileTooLarge, syscall.EFBIG},
	{vfs.ErrTooManyLinks, syscall.EMLINK},
	{vfs.ErrNotSupported, syscall.EOPNOTSUPP},
	{vfs.ErrBusy, syscall.EBUSY},
	{vfs.ErrNoAttr, syscall.ENODATA},
	{vfs.ErrAttrTooLarge, syscall.E2BIG},
	{vfs.ErrRange, syscall.ERANGE},
	{vfs.ErrNoData, syscall.ENXIO},
	{vfs.ErrBadHandle, syscall.EBADF},
	{vfs.ErrWouldBlock, syscall.EAGAIN},
	{vfs.ErrDeadlock, syscall.EDEADLK},
	{vfs.ErrNoLocks, syscall.ENOLCK},
	{vfs.ErrInterrupted, syscall.EINTR},
	{vfs.ErrTimeout, syscall.ETIMEDOUT},
	{vfs.ErrUnavailable, syscall.EIO},
	{vfs.ErrConflict, syscall.EAGAIN},
	{vfs.ErrClosed, syscall.ESHUTDOWN},
	{vfs.ErrTooLarge, syscall.E2BIG},
	// Errors of object operations reach this door only through the shared
	// core; each has the errno that says the same.
	{vfs.ErrNoSuchBucket, syscall.ENOENT},
	{vfs.ErrBucketExists, syscall.EEXIST},
	{vfs.ErrBucketOwned, syscall.EEXIST},
	{vfs.ErrBucketNotEmpty, syscall.ENOTEMPTY},
	{vfs.ErrBadBucketName, syscall.EINVAL},
	{vfs.ErrACLsDisabled, syscall.EINVAL},
	{vfs.ErrACLGrants, syscall.EINVAL},
	{vfs.ErrWriteOffset, syscall.EINVAL},
	{vfs.ErrAppendMeta, syscall.EINVAL},
	{vfs.ErrReservedName, syscall.EPERM},
	{vfs.ErrNoSuchKey, syscall.ENOENT},
	{vfs.ErrKeyTooLong, syscall.ENAMETOOLONG},
	{vfs.ErrNoSuchUpload, syscall.ENOENT},
	{vfs.ErrBadPart, syscall.EINVAL},
	{vfs.ErrPartOrder, syscall.EINVAL},
	{vfs.ErrPartTooSmall, syscall.EINVAL},
	{vfs.ErrBadPartNumber, syscall.EINVAL},
	{vfs.ErrObjectTooLarge, syscall.EFBIG},
	{vfs.ErrPrecondition, syscall.EAGAIN},
	{vfs.ErrNotModified, syscall.EAGAIN},
	{vfs.ErrBadRange, syscall.EINVAL},
	{vfs.ErrBadDigest, syscall.EIO},
	{vfs.ErrShortBody, syscall.EIO},
	{vfs.ErrLongBody, syscall.EIO},
	{vfs.ErrNoSuchUser, syscall.ENOENT},
	{vfs.ErrUserExists, syscall.EEXIST},
	{vfs.ErrUIDTaken, syscall.EEXIST},
	{vfs.ErrSealed, syscall.EACCES},
	{ledger.ErrFull, syscall.ENFILE},
	{context.Canceled, syscall.EINTR},
	{context.DeadlineExceeded, syscall.ETIMEDOUT},
}

// errnoOf maps an error to its errno; what is not in the table is EIO.
func errnoOf(err error) syscall.Errno {
	for i := range errnos {
		if errors.Is(err, errnos[i].err) {
			return errnos[i].no
		}
	}
	return syscall.EIO
}

// status answers a request: 0 without an error, else its errno. What a
// caller cannot have caused is logged.
func (f *rawFS) status(op string, h *fuse.InHeader, err error) fuse.Status {
	if err == nil || errors.Is(err, vfs.ErrDone) { // by a request that is sent again
		return fuse.OK
	}
	no := errnoOf(err)
	switch no {
	case syscall.EIO, syscall.ENOSPC, syscall.ETIMEDOUT, syscall.ESHUTDOWN, syscall.E2BIG:
		f.opt.Logger.Error("fuse request failed", "op", op, "request", h.Unique, "inode", h.NodeId,
			"uid", h.Uid, "pid", h.Pid, "errno", no.Error(), "err", err)
	}
	return fuse.Status(no)
}
