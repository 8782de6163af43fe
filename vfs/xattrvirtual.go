package vfs

import "context"

// xattrVirtual begins the names of attributes that are computed: they can be
// read by name, and are neither listed nor stored, so that copies of files
// do not try to carry them over.
const xattrVirtual = "ogw."

// virtualXattr answers
//
//	ogw.key      the stored path, "bucket/key"
func (fs *FS) virtualXattr(ctx context.Context, ino Ino, name string) ([]byte, error) {
	switch name {
	case "ogw.key":
		key, err := fs.KeyOf(ctx, ino)
		return []byte(key), err
	}
	return nil, ErrNoAttr
}
