package perm

import (
	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

// Access bits of Access, as in access(2).
const (
	AccessExec  uint32 = 1
	AccessWrite uint32 = 2
	AccessRead  uint32 = 4
)

// Check returns ErrAccess unless cred has all rights of mask on n. The
// superuser may read and write everything, and execute what anybody may. Nobody
// may write what is immutable: ErrPerm.
func Check(r cluster.Reader, cred *Cred, n *record.Inode, mask uint32) error {
	if mask&AccessWrite != 0 {
		if err := FlagsOf(n).CheckWritable(); err != nil {
			return err
		}
	}
	if cred.Unchecked() || mask == 0 {
		return nil
	}
	if cred.Rooted() {
		if mask&AccessExec != 0 && !n.IsDir() && n.Mode&0o111 == 0 {
			return fserr.ErrAccess
		}
		return nil
	}
	granted, err := granted(r, cred, n, mask)
	if err != nil {
		return err
	}
	if mask&^granted != 0 {
		return fserr.ErrAccess
	}
	return nil
}

// granted returns what n's mode and access ACL grant to cred, of what mask
// asks for.
func granted(r cluster.Reader, cred *Cred, n *record.Inode, mask uint32) (uint32, error) {
	switch {
	case cred.Is(n.UID):
		return n.Mode >> 6 & 7, nil
	case n.Has(record.FlagACL):
		a, err := posixacl.Get(r, n.Ino, posixacl.XattrAccess)
		if err != nil {
			return 0, err
		}
		if a != nil {
			return GrantedByACL(a, cred, n, mask), nil
		}
	}
	if cred.InGroup(n.GID) {
		return n.Mode >> 3 & 7, nil
	}
	return n.Mode & 7, nil
}

// checkSticky returns ErrPerm if the sticky bit of d keeps cred from
// removing or renaming n.
func checkSticky(cred *Cred, d, n *record.Inode) error {
	if d.Mode&record.ModeSticky == 0 || cred.Owns(n) || cred.Owns(d) {
		return nil
	}
	return fserr.ErrPerm
}

// CheckRemove is what removing or renaming the entry of n in d needs.
func CheckRemove(r cluster.Reader, cred *Cred, d, n *record.Inode) error {
	if err := Check(r, cred, d, AccessWrite|AccessExec); err != nil {
		return err
	}
	if err := checkSticky(cred, d, n); err != nil {
		return err
	}
	return FlagsOf(d).CheckTake(FlagsOf(n))
}

// GrantedByACL returns what a grants to cred, who is not the owner of n: of the
// entries that match the groups, one must grant all of mask.
func GrantedByACL(a posixacl.ACL, cred *Cred, n *record.Inode, mask uint32) uint32 {
	limit := uint32(7)
	if m := a.Find(posixacl.Mask); m != nil {
		limit = uint32(m.Perm)
	}
	var inGroup bool
	for _, e := range a {
		perm := uint32(e.Perm)
		switch e.Tag {
		case posixacl.User:
			if cred.Is(e.ID) {
				return perm & limit
			}
		case posixacl.GroupObj, posixacl.Group:
			gid := e.ID
			if e.Tag == posixacl.GroupObj {
				gid = n.GID
			}
			if !cred.InGroup(gid) {
				continue
			}
			inGroup = true
			if mask&^(perm&limit) == 0 {
				return perm & limit
			}
		case posixacl.Other:
			if !inGroup {
				return perm
			}
		}
	}
	return 0
}

// DropSetID takes off the bits that would run a changed program with the rights
// of its owner. setgid without group execution is no such bit.
func DropSetID(mode uint32) uint32 {
	mode &^= record.ModeSetUID
	if mode&0o010 != 0 {
		mode &^= record.ModeSetGID
	}
	return mode
}
