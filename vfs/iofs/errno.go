package iofs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"ogw/vfs"
)

// errnos is the one table from the errors of package vfs to those of package
// os. Errors of object operations do not occur here.
var errnos = [...]struct {
	err   error
	errno syscall.Errno
}{
	{vfs.ErrNotExist, syscall.ENOENT},
	{vfs.ErrExist, syscall.EEXIST},
	{vfs.ErrNotDir, syscall.ENOTDIR},
	{vfs.ErrIsDir, syscall.EISDIR},
	{vfs.ErrNotEmpty, syscall.ENOTEMPTY},
	{vfs.ErrAccess, syscall.EACCES},
	{vfs.ErrPerm, syscall.EPERM},
	{vfs.ErrReservedName, syscall.EPERM},
	{vfs.ErrInvalid, syscall.EINVAL},
	{vfs.ErrNameTooLong, syscall.ENAMETOOLONG},
	{vfs.ErrNoSpace, syscall.ENOSPC},
	{vfs.ErrReadOnly, syscall.EROFS},
	{vfs.ErrStale, syscall.ESTALE},
	{vfs.ErrFileTooLarge, syscall.EFBIG},
	{vfs.ErrTooManyLinks, syscall.EMLINK},
	{vfs.ErrNotSupported, syscall.ENOTSUP},
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
	{vfs.ErrConflict, syscall.EAGAIN},
	{vfs.ErrClosed, syscall.ESHUTDOWN},
	{vfs.ErrTooLarge, syscall.E2BIG},
	{vfs.ErrCorrupt, syscall.EIO},
	{vfs.ErrUnavailable, syscall.EIO},
	{vfs.ErrIO, syscall.EIO},
}

// Errno returns the error of package os that stands for err: a
// syscall.Errno, or err itself for what has none (the context's errors,
// io.EOF).
func Errno(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	return err
}

// PathError returns err as package os would, nil if err is nil.
func PathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: Errno(err)}
}
