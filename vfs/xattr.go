package vfs

import (
	"bytes"
	"context"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/locate"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/xattr"
)

// XattrFlags of SetXattr.
type XattrFlags uint32

const (
	XattrCreate  XattrFlags = 1 // ErrExist if present
	XattrReplace XattrFlags = 2 // ErrNoAttr if absent
)

// GetXattr returns an extended attribute. ErrNoAttr, ErrAccess,
// ErrNotSupported for an unknown namespace.
func (fs *FS) GetXattr(ctx context.Context, cred *Cred, ino Ino, name string) (value []byte, err error) {
	if strings.HasPrefix(name, xattrVirtual) {
		return fs.virtualXattr(ctx, ino, name)
	}
	if err := xattr.CheckName(name); err != nil {
		return nil, err
	}
	revoked := name == xattr.Capability && fs.hasPieces(ino)
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		if err := xattr.CheckRead(r, cred, n, name); err != nil {
			return err
		}
		if !n.Has(record.FlagXattrs) || revoked {
			return ErrNoAttr
		}
		if value, err = r.Get(record.XattrKey(ino, name)); err == nil && value == nil {
			err = ErrNoAttr
		}
		return err
	})
	return bytes.Clone(value), err // others may hold what the store returned
}

// ListXattr returns the names of the extended attributes that cred may see,
// in byte order.
func (fs *FS) ListXattr(ctx context.Context, cred *Cred, ino Ino) (names []string, err error) {
	revoked := fs.hasPieces(ino)
	err = fs.peek(ctx, func(r cluster.Reader) error {
		names = nil
		n, err := record.GetInode(r, ino)
		if err != nil || !n.Has(record.FlagXattrs) {
			return err
		}
		all, err := xattr.Names(r, ino)
		for _, name := range all {
			if xattr.Hidden(cred, name) || name == xattr.Capability && revoked {
				continue
			}
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// Xattr is an extended attribute.
type Xattr struct {
	Name  string // with its namespace, as "user.comment"
	Value []byte
}

// SetXattr stores an extended attribute. ErrExist, ErrNoAttr (see
// XattrFlags), ErrAttrTooLarge, ErrNoSpace when the inode has too many, or of too many bytes,
// ErrPerm, ErrAccess, ErrNotSupported, ErrInvalid for a malformed ACL.
func (fs *FS) SetXattr(ctx context.Context, cred *Cred, ino Ino, a Xattr, flags XattrFlags) error {
	if strings.HasPrefix(a.Name, xattrVirtual) {
		return ErrPerm
	}
	if err := xattr.CheckName(a.Name); err != nil {
		return err
	}
	if flags&^(XattrCreate|XattrReplace) != 0 {
		return ErrInvalid
	}
	if len(a.Value) > MaxXattrValueBytes {
		return ErrAttrTooLarge
	}
	value := append([]byte{}, a.Value...) // the store keeps it, the caller reuses it
	if err := fs.flushForCapability(ctx, ino, a.Name); err != nil {
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		n, err := o.xattrInode(t, cred, ino, a.Name)
		if err != nil {
			return err
		}
		old, err := t.Get(record.XattrKey(ino, a.Name))
		if err != nil {
			return err
		}
		switch {
		case flags&XattrCreate != 0 && old != nil:
			return ErrExist
		case flags&XattrReplace != 0 && old == nil:
			return ErrNoAttr
		case xattr.IsACL(a.Name):
			return o.setACL(t, cred, n, Xattr{a.Name, value})
		case old == nil || len(value) > len(old):
			if err := xattr.CheckRoom(t, fs.kv, n, a.Name, value); err != nil {
				return err
			}
		}
		n.Set(record.FlagXattrs, true)
		if err := t.Set(record.XattrKey(ino, a.Name), value); err != nil {
			return err
		}
		return o.putChanged(t, n)
	})
}

// RemoveXattr removes an extended attribute. ErrNoAttr, ErrPerm, ErrAccess,
// ErrNotSupported.
func (fs *FS) RemoveXattr(ctx context.Context, cred *Cred, ino Ino, name string) error {
	if strings.HasPrefix(name, xattrVirtual) {
		return ErrPerm
	}
	if err := xattr.CheckName(name); err != nil {
		return err
	}
	if err := fs.flushForCapability(ctx, ino, name); err != nil {
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		n, err := o.xattrInode(t, cred, ino, name)
		if err != nil {
			return err
		}
		old, err := t.Get(record.XattrKey(ino, name))
		if err != nil {
			return err
		}
		if old == nil {
			return ErrNoAttr
		}
		if xattr.IsACL(name) {
			return o.setACL(t, cred, n, Xattr{Name: name})
		}
		if err := t.Delete(record.XattrKey(ino, name)); err != nil {
			return err
		}
		return o.putChanged(t, n)
	})
}

// flushForCapability comes before a change of capabilities: what was written
// before revokes the old ones only.
func (fs *FS) flushForCapability(ctx context.Context, ino Ino, name string) error {
	if name != xattr.Capability {
		return nil
	}
	return fs.flushInode(ctx, ino)
}

// xattrInode reads the inode whose attribute name cred is about to change.
func (o *op) xattrInode(t cluster.Txn, cred *Cred, ino Ino, name string) (*record.Inode, error) {
	n, err := record.GetInode(t, ino)
	if err != nil {
		return nil, err
	}
	return n, xattr.CheckWrite(t, cred, n, name)
}

// setACL stores or, with an empty value, removes an ACL.
func (o *op) setACL(t cluster.Txn, cred *Cred, n *record.Inode, a Xattr) error {
	changed, err := xattr.SetACL(t, cred, n, a.Name, a.Value)
	if err != nil || !changed {
		return err
	}
	return o.putChanged(t, n)
}

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
		return locate.Format(list, MaxXattrValueBytes), err
	}
	return nil, ErrNoAttr
}

// etagOf returns the ETag of ino's content, what was written until now
// included.
func (fs *FS) etagOf(ctx context.Context, ino Ino) (tag ETag, err error) {
	if err := fs.flushInode(ctx, ino); err != nil {
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
