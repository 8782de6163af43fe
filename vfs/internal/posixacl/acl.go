package posixacl

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	XattrAccess  = "system.posix_acl_access"
	XattrDefault = "system.posix_acl_default"
)

// ACL is a POSIX access control list in the order of Linux's extended
// attribute: owner, users, group, groups, mask, other.
type ACL []Entry

type Entry struct {
	Tag  uint16
	Perm uint16
	ID   uint32
}

// Tags and layout as in linux/posix_acl_xattr.h: a version of 4 bytes, then
// entries of 8 bytes, all little-endian.
const (
	UserObj  = 0x01
	User     = 0x02
	GroupObj = 0x04
	Group    = 0x08
	Mask     = 0x10
	Other    = 0x20

	aclVersion    = 2
	aclHeadBytes  = 4
	aclEntryBytes = 8
	NoID          = ^uint32(0)
)

// Parse decodes and checks an attribute value. It returns nil for an empty
// list, fserr.ErrNotSupported for another version, fserr.ErrInvalid.
func Parse(b []byte) (ACL, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < aclHeadBytes || (len(b)-aclHeadBytes)%aclEntryBytes != 0 {
		return nil, fmt.Errorf("%w: ACL of %d bytes", fserr.ErrInvalid, len(b))
	}
	if v := binary.LittleEndian.Uint32(b); v != aclVersion {
		return nil, fmt.Errorf("%w: ACL of version %d", fserr.ErrNotSupported, v)
	}
	var a ACL
	for b = b[aclHeadBytes:]; len(b) > 0; b = b[aclEntryBytes:] {
		a = append(a, Entry{
			Tag:  binary.LittleEndian.Uint16(b),
			Perm: binary.LittleEndian.Uint16(b[2:]),
			ID:   binary.LittleEndian.Uint32(b[4:]),
		})
	}
	if len(a) == 0 {
		return nil, nil
	}
	return a, a.valid()
}

// valid checks that all entries are there, once and in order.
func (a ACL) valid() error {
	bad := fmt.Errorf("%w: ACL entries missing, repeated or out of order", fserr.ErrInvalid)
	var seen, last uint16
	for _, e := range a {
		repeats := e.Tag == User || e.Tag == Group
		switch e.Tag {
		case UserObj, User, GroupObj, Group, Mask, Other:
		default:
			return bad
		}
		if e.Perm&^7 != 0 || e.Tag < last || e.Tag == last && !repeats {
			return bad
		}
		seen |= e.Tag
		last = e.Tag
	}
	const base = UserObj | GroupObj | Other
	if seen&base != base || seen&(User|Group) != 0 && seen&Mask == 0 {
		return bad
	}
	return nil
}

func (a ACL) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range a {
		if e.Tag != User && e.Tag != Group {
			e.ID = NoID
		}
		b = binary.LittleEndian.AppendUint16(b, e.Tag)
		b = binary.LittleEndian.AppendUint16(b, e.Perm)
		b = binary.LittleEndian.AppendUint32(b, e.ID)
	}
	return b
}

// Extended reports whether a says more than nine permission bits do.
func (a ACL) Extended() bool { return len(a) > 3 }

// Find returns the first entry with a tag, or nil.
func (a ACL) Find(tag uint16) *Entry {
	for i := range a {
		if a[i].Tag == tag {
			return &a[i]
		}
	}
	return nil
}

// groupClass is the entry that the group bits of the mode stand for.
func (a ACL) groupClass() *Entry {
	if m := a.Find(Mask); m != nil {
		return m
	}
	return a.Find(GroupObj)
}

// Mode returns the nine permission bits of a.
func (a ACL) Mode() uint32 {
	return uint32(a.Find(UserObj).Perm)<<6 | uint32(a.groupClass().Perm)<<3 | uint32(a.Find(Other).Perm)
}

// withMode returns a with its base entries set to the nine bits (chmod).
func (a ACL) withMode(mode uint32) ACL {
	a = append(ACL(nil), a...)
	a.Find(UserObj).Perm = uint16(mode >> 6 & 7)
	a.groupClass().Perm = uint16(mode >> 3 & 7)
	a.Find(Other).Perm = uint16(mode & 7)
	return a
}

// Get reads an ACL; nil if there is none.
func Get(r cluster.Reader, ino record.Ino, name string) (ACL, error) {
	b, err := r.Get(record.XattrKey(ino, name))
	if err != nil || b == nil {
		return nil, err
	}
	a, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w: ACL of inode %d", fserr.ErrCorrupt, ino)
	}
	return a, nil
}

// Inherit gives n, made in d, what d's default ACL says: the ACL takes the
// place of the umask. It returns false if there is none.
func Inherit(t cluster.Txn, d, n *record.Inode) (bool, error) {
	if !d.Has(record.FlagACL) || n.IsSymlink() {
		return false, nil
	}
	def, err := Get(t, d.Ino, XattrDefault)
	if err != nil || def == nil {
		return false, err
	}
	if n.IsDir() {
		if err := t.Set(record.XattrKey(n.Ino, XattrDefault), def.Encode()); err != nil {
			return false, err
		}
		n.Set(record.FlagXattrs|record.FlagACL, true)
	}
	n.Mode = n.Mode&^0o777 | n.Mode&def.Mode()&0o777
	access := def.withMode(n.Mode)
	if !access.Extended() {
		return true, nil
	}
	n.Set(record.FlagXattrs|record.FlagACL, true)
	return true, t.Set(record.XattrKey(n.Ino, XattrAccess), access.Encode())
}

// Chmod brings n's access ACL in line with its new mode.
func Chmod(t cluster.Txn, n *record.Inode) error {
	if !n.Has(record.FlagACL) {
		return nil
	}
	a, err := Get(t, n.Ino, XattrAccess)
	if err != nil || a == nil {
		return err
	}
	return t.Set(record.XattrKey(n.Ino, XattrAccess), a.withMode(n.Mode).Encode())
}
