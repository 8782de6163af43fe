package vfs

import (
	"context"
)

// Rename moves an entry, directories with all below, in one transaction.
func (fs *FS) Rename(ctx context.Context, cred *Cred, from Ino, name string, to Ino, newName string, flags RenameFlags) error {
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
