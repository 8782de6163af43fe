package vfs

import (
	"bytes"
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
)

// xattrVirtual begins the names of attributes that are computed: they can be
// read by name, and are neither listed nor stored, so that copies of files
// do not try to carry them over.
const xattrVirtual = "ogw."

// virtualXattr answers
//
//	ogw.key      the stored path, "bucket/key"
//	ogw.etag     the ETag that the object doors show
//	ogw.whereis  who holds the bytes, a line for each extent and holder:
//	             OFFSET+LENGTH KIND [BLOB NODE ADDRESS PATH DETAIL]
//
// ErrNoAttr for other names.
func (fs *FS) virtualXattr(ctx context.Context, ino Ino, name string) ([]byte, error) {
	switch name {
	case "ogw.key":
		key, err := fs.KeyOf(ctx, ino)
		return []byte(key), err
	case "ogw.etag":
		tag, err := fs.etagOf(ctx, ino)
		return []byte(tag), err
	case "ogw.whereis":
		list, err := fs.whereisInode(ctx, ino)
		return formatLocations(list), err
	}
	return nil, ErrNoAttr
}

// etagOf returns the ETag of ino's content, what was written until now
// included.
func (fs *FS) etagOf(ctx context.Context, ino Ino) (tag ETag, err error) {
	if err := fs.settle(ctx, ino); err != nil {
		return "", err
	}
	err = fs.view(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		if !n.IsRegular() && !n.IsDir() {
			return ErrNoAttr
		}
		tag = objects.ETagOf(n)
		return nil
	})
	return tag, err
}

// formatLocations writes one line for each holder of each extent. What would
// make the value longer than an attribute may be is left out, and the last
// line says so.
func formatLocations(list []ExtentLocation) []byte {
	const rest = "...\n"
	var b bytes.Buffer
	for i := range list {
		size := b.Len()
		x := &list[i]
		head := fmt.Sprintf("%d+%d %s", x.Off, x.Len, x.Kind)
		if len(x.Nodes) == 0 {
			fmt.Fprintf(&b, "%s\n", head)
		}
		for _, n := range x.Nodes {
			fmt.Fprintf(&b, "%s %s", head, x.Blob)
			for _, s := range [...]string{n.Node, n.Address, n.Path, n.Detail} {
				if s != "" {
					fmt.Fprintf(&b, " %s", s)
				}
			}
			b.WriteByte('\n')
		}
		if b.Len() > MaxXattrValueBytes-len(rest) {
			b.Truncate(size)
			b.WriteString(rest)
			break
		}
	}
	return b.Bytes()
}
