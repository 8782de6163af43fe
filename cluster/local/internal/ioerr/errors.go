// Package ioerr puts errors of the operating system and of Pebble in the terms
// of the cluster's contract.
package ioerr

import (
	"errors"
	"fmt"
	"io/fs"

	"ogw/cluster"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sys/unix"
)

// sentinels are never mapped again.
var sentinels = []error{
	cluster.ErrNoSpace, cluster.ErrReadOnly, cluster.ErrUnavailable, cluster.ErrCorrupt, cluster.ErrClosed,
	cluster.ErrNotFound, cluster.ErrExists, cluster.ErrInvalid, cluster.ErrFormat, cluster.ErrLocked,
	cluster.ErrExposed,
}

// Map wraps an error of the operating system or of Pebble with the
// sentinel that fits.
func Map(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range sentinels {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: %w", cluster.ErrNoSpace, err)
	case errors.Is(err, unix.EROFS), errors.Is(err, pebble.ErrReadOnly):
		return fmt.Errorf("%w: %w", cluster.ErrReadOnly, err)
	case errors.Is(err, pebble.ErrClosed):
		return fmt.Errorf("%w: %w", cluster.ErrClosed, err)
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %w", cluster.ErrCorrupt, err)
	case errors.Is(err, fs.ErrPermission):
		return permissionError{err}
	default:
		return fmt.Errorf("%w: %w", cluster.ErrUnavailable, err)
	}
}

// permissionError is a cluster.ErrReadOnly that does not blame the medium.
type permissionError struct{ err error }

// Error implements error.
func (e permissionError) Error() string {
	return "no permission to use the files of the cluster: " + e.err.Error()
}

// Unwrap returns the class and the cause.
func (e permissionError) Unwrap() []error { return []error{cluster.ErrReadOnly, e.err} }

// Unreadable reports whether the medium, or the file system, cannot give back what
// was written: a bad sector is EIO, and past the page cache ENODATA or EILSEQ;
// file systems that find damage themselves say EUCLEAN or EBADMSG.
func Unreadable(err error) bool {
	for _, errno := range []unix.Errno{unix.EIO, unix.ENODATA, unix.EILSEQ, unix.EUCLEAN, unix.EBADMSG} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// MapOpen is Map for Pebble's start: what is not the operating
// system's, Pebble found in its files, or did not find.
func MapOpen(err error) error {
	var errno unix.Errno
	if mapped := Map(err); !errors.Is(mapped, cluster.ErrUnavailable) || errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist) {
		return mapped
	}
	return fmt.Errorf("%w: %w", cluster.ErrCorrupt, err)
}

// IsFull reports whether the disk, or a quota, is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// OutOfFiles reports whether the process, or the system, may open no more files.
func OutOfFiles(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }
