package vfs

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

// XattrFlags of SetXattr.
type XattrFlags uint32

const (
	XattrCreate  XattrFlags = 1 // ErrExist if present
	XattrReplace XattrFlags = 2 // ErrNoAttr if absent
)

const (
	xattrUser     = "user."
	xattrTrusted  = "trusted."
	xattrSecurity = "security."

	// maxXattrs bounds the extended attributes of one inode, which one
	// transaction must be able to remove.
	maxXattrs = 4096
)

func isACLName(name string) bool {
	return name == posixacl.XattrAccess || name == posixacl.XattrDefault
}

// checkXattrName checks length and namespace. ErrNotSupported for a namespace
// that does not exist, ErrRange for a name that is too long (xattr(7)).
func checkXattrName(name string) error {
	if len(name) > MaxXattrNameBytes {
		return ErrRange
	}
	if strings.IndexByte(name, 0) >= 0 {
		return ErrInvalid
	}
	for _, ns := range [...]string{xattrUser, xattrTrusted, xattrSecurity} {
		if strings.HasPrefix(name, ns) {
			if len(name) == len(ns) {
				return ErrInvalid
			}
			return nil
		}
	}
	if isACLName(name) {
		return nil
	}
	return ErrNotSupported
}

// checkXattrWrite checks cred's right to change attribute name of n.
func checkXattrWrite(r cluster.Reader, cred *Cred, n *record.Inode, name string) error {
	if err := perm.FlagsOf(n).CheckFree(); err != nil {
		return err
	}
	switch {
	case isACLName(name):
		if n.IsSymlink() {
			return ErrNotSupported
		}
		if !cred.Owns(n) {
			return ErrPerm
		}
		return nil
	case strings.HasPrefix(name, xattrUser):
		if !n.IsRegular() && !n.IsDir() {
			return ErrPerm
		}
		if n.IsDir() && n.Mode&ModeSticky != 0 && !cred.Owns(n) {
			return ErrPerm
		}
		return perm.Check(r, cred, n, AccessWrite)
	case !cred.Rooted():
		return ErrPerm
	}
	return nil
}

// checkXattrRead checks cred's right to read attribute name of n.
func checkXattrRead(r cluster.Reader, cred *Cred, n *record.Inode, name string) error {
	switch {
	case strings.HasPrefix(name, xattrUser):
		if !n.IsRegular() && !n.IsDir() {
			return ErrNoAttr
		}
		return perm.Check(r, cred, n, AccessRead)
	case strings.HasPrefix(name, xattrTrusted) && !cred.Rooted():
		return ErrNoAttr
	}
	return nil
}

// GetXattr returns an extended attribute. ErrNoAttr, ErrAccess,
// ErrNotSupported for an unknown namespace.
func (fs *FS) GetXattr(ctx context.Context, cred *Cred, ino Ino, name string) (value []byte, err error) {
	if strings.HasPrefix(name, xattrVirtual) {
		return fs.virtualXattr(ctx, ino, name)
	}
	if err := checkXattrName(name); err != nil {
		return nil, err
	}
	revoked := name == xattrCapability && fs.hasPieces(ino)
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		if err := checkXattrRead(r, cred, n, name); err != nil {
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
		all, err := xattrNames(r, ino)
		for _, name := range all {
			if strings.HasPrefix(name, xattrTrusted) && !cred.Rooted() || name == xattrCapability && revoked {
				continue
			}
			names = append(names, name)
		}
		return err
	})
	return names, err
}

func xattrNames(r cluster.Reader, ino Ino) (names []string, err error) {
	prefix := record.XattrPrefix(ino)
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		names = append(names, string(k[len(prefix):]))
		return nil
	})
	return names, err
}

// Xattr is an extended attribute.
type Xattr struct {
	Name  string // with its namespace, as "user.comment"
	Value []byte
}

// SetXattr stores an extended attribute. ErrExist, ErrNoAttr (see
// XattrFlags), ErrAttrTooLarge, ErrNoSpace when the inode has too many,
// ErrPerm, ErrAccess, ErrNotSupported, ErrInvalid for a malformed ACL.
func (fs *FS) SetXattr(ctx context.Context, cred *Cred, ino Ino, a Xattr, flags XattrFlags) error {
	if strings.HasPrefix(a.Name, xattrVirtual) {
		return ErrPerm
	}
	if err := checkXattrName(a.Name); err != nil {
		return err
	}
	if flags&^(XattrCreate|XattrReplace) != 0 {
		return ErrInvalid
	}
	if len(a.Value) > MaxXattrValueBytes {
		return ErrAttrTooLarge
	}
	value := append([]byte{}, a.Value...) // the store keeps it, the caller reuses it
	if err := fs.settleCapability(ctx, ino, a.Name); err != nil {
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
		case isACLName(a.Name):
			return o.setACL(t, cred, n, a.Name, value)
		case old == nil:
			if err := fs.checkXattrRoom(t, n, a.Name); err != nil {
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
	if err := checkXattrName(name); err != nil {
		return err
	}
	if err := fs.settleCapability(ctx, ino, name); err != nil {
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
		if isACLName(name) {
			return o.setACL(t, cred, n, name, nil)
		}
		if err := t.Delete(record.XattrKey(ino, name)); err != nil {
			return err
		}
		return o.putChanged(t, n)
	})
}

// settleCapability comes before a change of capabilities: what was written
// before revokes the old ones only.
func (fs *FS) settleCapability(ctx context.Context, ino Ino, name string) error {
	if name != xattrCapability {
		return nil
	}
	return fs.settle(ctx, ino)
}

// xattrInode reads the inode whose attribute name cred is about to change.
func (o *op) xattrInode(t cluster.Txn, cred *Cred, ino Ino, name string) (*record.Inode, error) {
	n, err := record.GetInode(t, ino)
	if err != nil {
		return nil, err
	}
	return n, checkXattrWrite(t, cred, n, name)
}

// checkXattrRoom bounds the attributes of one inode, in number and in the
// length of the list of their names.
func (fs *FS) checkXattrRoom(r cluster.Reader, n *record.Inode, name string) error {
	if !n.Has(record.FlagXattrs) {
		return nil
	}
	names, err := xattrNames(r, n.Ino)
	if err != nil {
		return err
	}
	limit := maxXattrs
	if ops := fs.kv.Limits().Ops; ops > 0 {
		limit = min(limit, ops/3) // a removal meets and deletes each, and does the rest
	}
	total := len(name) + 1
	for _, s := range names {
		total += len(s) + 1
	}
	if len(names) >= limit || total > MaxXattrListBytes {
		return fmt.Errorf("%w: %d extended attributes", ErrNoSpace, len(names))
	}
	return nil
}

// setACL stores or, with an empty value, removes an ACL. An access ACL also
// sets the mode; one that says no more than the mode is not stored.
func (o *op) setACL(t cluster.Txn, cred *Cred, n *record.Inode, name string, value []byte) error {
	a, err := posixacl.Parse(value)
	if err != nil {
		return err
	}
	if name == posixacl.XattrDefault && !n.IsDir() {
		if a == nil {
			return nil
		}
		return ErrAccess
	}
	if name == posixacl.XattrAccess && a != nil {
		n.Mode = n.Mode&^0o777 | a.Mode()
		if !cred.Rooted() && !cred.InGroup(n.GID) {
			n.Mode &^= ModeSetGID
		}
		if !a.Extended() {
			a = nil
		}
	}
	if a == nil {
		err = t.Delete(record.XattrKey(n.Ino, name))
	} else {
		n.Set(record.FlagXattrs|record.FlagACL, true)
		err = t.Set(record.XattrKey(n.Ino, name), a.Encode())
	}
	if err != nil {
		return err
	}
	if name == posixacl.XattrAccess {
		n.Choose()
		n.MakeExplicit()
	}
	if err := tellEntry(t, n); err != nil {
		return err
	}
	return o.putChanged(t, n)
}
