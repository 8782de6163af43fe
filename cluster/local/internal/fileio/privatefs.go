package fileio

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Modes of what is made in a data folder: nobody else reads it, or learns
// what there is, whatever the umask and the mode of the folder above are.
const (
	FileMode   = 0o600
	FolderMode = 0o700
)

// PrivateFS is the operating system's file system for the metadata: what it
// makes is private, where Pebble would leave that to the umask, and it follows
// no symbolic link. Only we can make links in these folders, so a look before
// the open is enough.
type PrivateFS struct{ vfs.FS }

// Create implements vfs.FS. What is there is removed, never opened.
func (fs PrivateFS) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	return private(fs.FS.Create(name, why))
}

// ReuseForWrite implements vfs.FS.
func (fs PrivateFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	if err := noLink("open", old); err != nil {
		return nil, err
	}
	return private(fs.FS.ReuseForWrite(old, name, why))
}

// OpenReadWrite implements vfs.FS.
func (fs PrivateFS) OpenReadWrite(name string, why vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := noLink("open", name); err != nil {
		return nil, err
	}
	return private(fs.FS.OpenReadWrite(name, why, opts...))
}

// Open implements vfs.FS.
func (fs PrivateFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := noLink("open", name); err != nil {
		return nil, err
	}
	return fs.FS.Open(name, opts...)
}

// MkdirAll implements vfs.FS.
func (fs PrivateFS) MkdirAll(dir string, _ os.FileMode) error { return MkdirPrivate(fs.FS, dir) }

// Lock implements vfs.FS. The file is made here: closing any descriptor of a
// file that is locked would end the lock.
func (fs PrivateFS) Lock(name string) (io.Closer, error) {
	f, err := OpenPrivate(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return fs.FS.Lock(name)
}

// Unwrap implements vfs.FS.
func (fs PrivateFS) Unwrap() vfs.FS { return fs.FS }

// private gives a file that was opened for writing its mode, by descriptor.
func private(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	if err := fchmod(int(f.Fd()), FileMode); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return f, nil
}

// OpenPrivate opens a file, no symbolic link; one that it makes is private.
func OpenPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, FileMode)
	if err != nil || flags&os.O_CREATE == 0 {
		return f, err
	}
	if err := fchmod(int(f.Fd()), FileMode); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// MkdirPrivate makes dir and what is above it.
func MkdirPrivate(fs vfs.FS, dir string) error {
	if err := noLink("mkdir", dir); err != nil {
		return err
	}
	if err := fs.MkdirAll(dir, FolderMode); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	return fchmod(fd, FolderMode)
}

// fchmod leaves file systems without modes as they are; the start logged it.
func fchmod(fd int, mode uint32) error {
	err := unix.Fchmod(fd, mode)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return os.NewSyscallError("fchmod", err)
}

// noLink refuses a symbolic link, as O_NOFOLLOW does.
func noLink(op, name string) error {
	info, err := os.Lstat(name)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		return &os.PathError{Op: op, Path: name, Err: unix.ELOOP}
	}
	return nil
}
