package vfs

import (
	"context"
)

// Lookup returns the attributes of the entry that the POSIX doors show as
// name; "." and ".." work. ErrNotExist, ErrNotDir, ErrAccess, ErrNameTooLong.
func (fs *FS) Lookup(ctx context.Context, cred *Cred, dir Ino, name string) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// GetAttr returns the attributes of ino, unflushed writes of this process
// included. ErrStale if it is gone.
func (fs *FS) GetAttr(ctx context.Context, ino Ino) (Attr, error) { return Attr{}, ErrNotSupported }

// SetAttr changes attributes (chmod, chown, truncate, utimensat) and returns
// the new ones.
func (fs *FS) SetAttr(ctx context.Context, cred *Cred, ino Ino, set SetAttr) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// Access checks cred's rights on ino, ACLs included; ErrAccess.
func (fs *FS) Access(ctx context.Context, cred *Cred, ino Ino, mask uint32) error {
	return ErrNotSupported
}

// CreateOptions of Create.
type CreateOptions struct {
	Mode  uint32    // permissions, before the umask
	Flags OpenFlags // of the file returned; OpenTrunc cuts an existing file
	// Exclusive fails with ErrExist if the name exists.
	Exclusive bool
	// Verifier, with Exclusive: an existing file that was made with the same
	// verifier and not changed since is success (RFC 1813 section 3.3.8).
	Verifier *uint64
	// NoOpen makes the file without opening it; the returned File is nil.
	NoOpen bool
	// SetAttr is applied to a file that is made (not to an existing one,
	// except Size), within the same transaction.
	SetAttr SetAttr
}

// Create makes a regular file, or opens an existing one unless Exclusive.
// created tells which.
func (fs *FS) Create(ctx context.Context, cred *Cred, dir Ino, name string, o CreateOptions) (a Attr, f *File, created bool, err error) {
	return Attr{}, nil, false, ErrNotSupported
}

// Mkdir makes a directory. At the top, with a legal bucket name, that makes a
// bucket, owned by cred.
func (fs *FS) Mkdir(ctx context.Context, cred *Cred, dir Ino, name string, mode uint32) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// Mknod makes a special file, or a regular one; mode holds the type.
func (fs *FS) Mknod(ctx context.Context, cred *Cred, dir Ino, name string, mode, rdev uint32) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// Symlink makes a symbolic link.
func (fs *FS) Symlink(ctx context.Context, cred *Cred, dir Ino, name, target string) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// Readlink returns the target of a symbolic link.
func (fs *FS) Readlink(ctx context.Context, ino Ino) (string, error) { return "", ErrNotSupported }

// Link makes a hard link to anything but a directory.
func (fs *FS) Link(ctx context.Context, cred *Cred, ino, dir Ino, name string) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// Unlink removes an entry that is not a directory.
func (fs *FS) Unlink(ctx context.Context, cred *Cred, dir Ino, name string) error {
	return ErrNotSupported
}

// Rmdir removes an empty directory.
func (fs *FS) Rmdir(ctx context.Context, cred *Cred, dir Ino, name string) error {
	return ErrNotSupported
}

// Rename moves an entry, directories with all below, in one transaction.
func (fs *FS) Rename(ctx context.Context, cred *Cred, from Ino, name string, to Ino, newName string, flags RenameFlags) error {
	return ErrNotSupported
}

// ReadDir calls fn for the entries of dir behind position after ("" for the
// start), without "." and "..", until fn returns an error (cluster.ErrStop:
// without one). fn may call back into the FS. Entries that exist throughout
// are shown exactly once, whatever comes and goes meanwhile.
func (fs *FS) ReadDir(ctx context.Context, cred *Cred, dir Ino, after string, attrs bool, fn func(DirEntry) error) error {
	return ErrNotSupported
}

// Resolve walks a slash-separated POSIX path from the root, following
// symbolic links (of the last component only with follow).
func (fs *FS) Resolve(ctx context.Context, cred *Cred, path string, follow bool) (Attr, error) {
	return Attr{}, ErrNotSupported
}

// KeyOf returns the stored path of ino: "bucket/key". A directory's ends in "/".
func (fs *FS) KeyOf(ctx context.Context, ino Ino) (string, error) { return "", ErrNotSupported }

// XattrFlags of SetXattr.
type XattrFlags uint32

const (
	XattrCreate  XattrFlags = 1 // ErrExist if present
	XattrReplace XattrFlags = 2 // ErrNoAttr if absent
)

// GetXattr returns an extended attribute; ErrNoAttr.
func (fs *FS) GetXattr(ctx context.Context, cred *Cred, ino Ino, name string) ([]byte, error) {
	return nil, ErrNotSupported
}

// SetXattr stores an extended attribute.
func (fs *FS) SetXattr(ctx context.Context, cred *Cred, ino Ino, name string, value []byte, flags XattrFlags) error {
	return ErrNotSupported
}

// RemoveXattr removes an extended attribute.
func (fs *FS) RemoveXattr(ctx context.Context, cred *Cred, ino Ino, name string) error {
	return ErrNotSupported
}

// ListXattr returns the names of the extended attributes that cred may see.
func (fs *FS) ListXattr(ctx context.Context, cred *Cred, ino Ino) ([]string, error) {
	return nil, ErrNotSupported
}

// StatFS tells the size of the whole.
func (fs *FS) StatFS(ctx context.Context) (StatFS, error) { return StatFS{}, ErrNotSupported }
