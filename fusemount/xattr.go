package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// Read-only attributes that answer what people ask about a file.
const (
	xattrKey     = "ogw.key"     // bucket/key under which S3 and REST have it
	xattrETag    = "ogw.etag"    // as S3 shows it
	xattrWhereis = "ogw.whereis" // a line for each extent: range, kind, blob, holders
	ownPrefix    = "ogw."
)

// GetXAttr returns an attribute, or with an empty dest its size.
func (f *rawFS) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	ctx := f.request(cancel, h)
	defer ctx.end()
	ino := f.ino(h.NodeId)
	var value []byte
	var err error
	if strings.HasPrefix(name, ownPrefix) {
		value, err = f.ownXattr(ino, name)
	} else {
		value, err = f.fs.GetXattr(ctx, cred(h), ino, name)
	}
	if err != nil {
		return 0, f.status("getxattr", h, err)
	}
	return fill(dest, value)
}

// fill copies a value that fits, or tells the size that would.
func fill(dest, value []byte) (uint32, fuse.Status) {
	n := uint32(len(value))
	if len(dest) < len(value) {
		return n, fuse.ERANGE
	}
	copy(dest, value)
	return n, fuse.OK
}

// ListXAttr returns the names, each ended by a NUL.
func (f *rawFS) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	ctx := f.request(cancel, h)
	defer ctx.end()
	names, err := f.fs.ListXattr(ctx, cred(h), f.ino(h.NodeId))
	if err != nil {
		return 0, f.status("listxattr", h, err)
	}
	var list bytes.Buffer
	for _, n := range names {
		list.WriteString(n)
		list.WriteByte(0)
	}
	return fill(dest, list.Bytes())
}

// SetXAttr stores an attribute.
func (f *rawFS) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	if strings.HasPrefix(name, ownPrefix) {
		return fuse.EPERM
	}
	if strings.HasPrefix(name, "system.posix_acl_") {
		f.privs.moved()
	}
	ino := f.ino(in.NodeId)
	err := f.fs.SetXattr(f.once(ctx, &in.InHeader), cred(&in.InHeader), ino, vfs.Xattr{Name: name, Value: bytes.Clone(data)}, vfs.XattrFlags(in.Flags))
	if errors.Is(err, vfs.ErrDone) {
		err = nil
	}
	if err == nil && in.SetXAttrFlags&fuse.SETXATTR_ACL_KILL_SGID != 0 {
		err = f.dropSetGID(ino)
	}
	return f.status("setxattr", &in.InHeader, err)
}

// RemoveXAttr removes an attribute.
func (f *rawFS) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	if strings.HasPrefix(name, ownPrefix) {
		return fuse.EPERM
	}
	return f.status("removexattr", h, f.fs.RemoveXattr(f.once(ctx, h), cred(h), f.ino(h.NodeId), name))
}

// ownXattr computes one of the read-only attributes.
func (f *rawFS) ownXattr(ino vfs.Ino, name string) ([]byte, error) {
	switch name {
	case xattrKey, xattrETag, xattrWhereis:
	default:
		return nil, vfs.ErrNoAttr
	}
	key, err := f.fs.KeyOf(f.ctx, ino)
	if err != nil || name == xattrKey {
		return []byte(key), err
	}
	info, extents, err := f.fs.Whereis(f.ctx, key)
	if err != nil {
		return nil, err
	}
	if name == xattrETag {
		return []byte(`"` + string(info.ETag) + `"`), nil
	}
	var b bytes.Buffer
	for _, e := range extents {
		fmt.Fprintf(&b, "%d+%d %s %s", e.Off, e.Len, e.Kind, e.Blob)
		for _, n := range e.Nodes {
			fmt.Fprintf(&b, " %s", strings.Join([]string{n.Node, n.Address, n.Path, n.Detail}, ","))
		}
		b.WriteByte('\n')
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
