package vfs

import (
	"encoding/binary"
	"fmt"

	"ogw/vfs/internal/record"

	"ogw/cluster"
)

const (
	xattrAccessACL  = "system.posix_acl_access"
	xattrDefaultACL = "system.posix_acl_default"
)

// acl is a POSIX access control list in the order of Linux's extended
// attribute: owner, users, group, groups, mask, other.
type acl []aclEntry

type aclEntry struct {
	tag  uint16
	perm uint16
	id   uint32
}

// Tags and layout as in linux/posix_acl_xattr.h: a version of 4 bytes, then
// entries of 8 bytes, all little-endian.
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20

	aclVersion    = 2
	aclHeadBytes  = 4
	aclEntryBytes = 8
	aclNoID       = ^uint32(0)
)

// parseACL decodes and checks an attribute value. It returns nil for an empty
// list, ErrNotSupported for another version, ErrInvalid.
func parseACL(b []byte) (acl, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < aclHeadBytes || (len(b)-aclHeadBytes)%aclEntryBytes != 0 {
		return nil, fmt.Errorf("%w: ACL of %d bytes", ErrInvalid, len(b))
	}
	if v := binary.LittleEndian.Uint32(b); v != aclVersion {
		return nil, fmt.Errorf("%w: ACL of version %d", ErrNotSupported, v)
	}
	var a acl
	for b = b[aclHeadBytes:]; len(b) > 0; b = b[aclEntryBytes:] {
		a = append(a, aclEntry{
			tag:  binary.LittleEndian.Uint16(b),
			perm: binary.LittleEndian.Uint16(b[2:]),
			id:   binary.LittleEndian.Uint32(b[4:]),
		})
	}
	if len(a) == 0 {
		return nil, nil
	}
	return a, a.valid()
}

// valid checks that all entries are there, once and in order.
func (a acl) valid() error {
	bad := fmt.Errorf("%w: ACL entries missing, repeated or out of order", ErrInvalid)
	var seen, last uint16
	for _, e := range a {
		repeats := e.tag == aclUser || e.tag == aclGroup
		switch e.tag {
		case aclUserObj, aclUser, aclGroupObj, aclGroup, aclMask, aclOther:
		default:
			return bad
		}
		if e.perm&^7 != 0 || e.tag < last || e.tag == last && !repeats {
			return bad
		}
		seen |= e.tag
		last = e.tag
	}
	const base = aclUserObj | aclGroupObj | aclOther
	if seen&base != base || seen&(aclUser|aclGroup) != 0 && seen&aclMask == 0 {
		return bad
	}
	return nil
}

func (a acl) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range a {
		if e.tag != aclUser && e.tag != aclGroup {
			e.id = aclNoID
		}
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

// extended tells whether a says more than nine permission bits do.
func (a acl) extended() bool { return len(a) > 3 }

// find returns the first entry with a tag, or nil.
func (a acl) find(tag uint16) *aclEntry {
	for i := range a {
		if a[i].tag == tag {
			return &a[i]
		}
	}
	return nil
}

// groupClass is the entry that the group bits of the mode stand for.
func (a acl) groupClass() *aclEntry {
	if m := a.find(aclMask); m != nil {
		return m
	}
	return a.find(aclGroupObj)
}

// mode returns the nine permission bits of a.
func (a acl) mode() uint32 {
	return uint32(a.find(aclUserObj).perm)<<6 | uint32(a.groupClass().perm)<<3 | uint32(a.find(aclOther).perm)
}

// withMode returns a with its base entries set to the nine bits (chmod).
func (a acl) withMode(mode uint32) acl {
	a = append(acl(nil), a...)
	a.find(aclUserObj).perm = uint16(mode >> 6 & 7)
	a.groupClass().perm = uint16(mode >> 3 & 7)
	a.find(aclOther).perm = uint16(mode & 7)
	return a
}

// rights returns what a grants to cred, who is not the owner of n: of the
// entries that match the groups, one must grant all of mask.
func (a acl) rights(cred *Cred, n *record.Inode, mask uint32) uint32 {
	limit := uint32(7)
	if m := a.find(aclMask); m != nil {
		limit = uint32(m.perm)
	}
	var inGroup bool
	for _, e := range a {
		perm := uint32(e.perm)
		switch e.tag {
		case aclUser:
			if e.id == cred.UID {
				return perm & limit
			}
		case aclGroupObj, aclGroup:
			gid := e.id
			if e.tag == aclGroupObj {
				gid = n.GID
			}
			if !cred.inGroup(gid) {
				continue
			}
			inGroup = true
			if mask&^(perm&limit) == 0 {
				return perm & limit
			}
		case aclOther:
			if !inGroup {
				return perm
			}
		}
	}
	return 0
}

// getACL reads an ACL; nil if there is none.
func getACL(r cluster.Reader, ino Ino, name string) (acl, error) {
	b, err := r.Get(record.XattrKey(ino, name))
	if err != nil || b == nil {
		return nil, err
	}
	a, err := parseACL(b)
	if err != nil {
		return nil, fmt.Errorf("%w: ACL of inode %d", ErrCorrupt, ino)
	}
	return a, nil
}

// inheritACL gives n, made in d, what d's default ACL says: the ACL takes the
// place of the umask. It returns false if there is none.
func inheritACL(t cluster.Txn, d, n *record.Inode) (bool, error) {
	if !d.Has(record.FlagACL) || n.IsSymlink() {
		return false, nil
	}
	def, err := getACL(t, d.Ino, xattrDefaultACL)
	if err != nil || def == nil {
		return false, err
	}
	if n.IsDir() {
		if err := t.Set(record.XattrKey(n.Ino, xattrDefaultACL), def.encode()); err != nil {
			return false, err
		}
		n.Set(record.FlagXattrs|record.FlagACL, true)
	}
	n.Mode = n.Mode&^0o777 | n.Mode&def.mode()&0o777
	access := def.withMode(n.Mode)
	if !access.extended() {
		return true, nil
	}
	n.Set(record.FlagXattrs|record.FlagACL, true)
	return true, t.Set(record.XattrKey(n.Ino, xattrAccessACL), access.encode())
}

// chmodACL brings n's access ACL in line with its new mode.
func chmodACL(t cluster.Txn, n *record.Inode) error {
	if !n.Has(record.FlagACL) {
		return nil
	}
	a, err := getACL(t, n.Ino, xattrAccessACL)
	if err != nil || a == nil {
		return err
	}
	return t.Set(record.XattrKey(n.Ino, xattrAccessACL), a.withMode(n.Mode).encode())
}
