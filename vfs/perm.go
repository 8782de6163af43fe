package vfs

import (
	"ogw/cluster"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

// checkAccess returns ErrAccess unless cred has all rights of mask on n. The
// superuser may read and write everything, and execute what anybody may. Nobody
// may write what is immutable: ErrPerm.
func checkAccess(r cluster.Reader, cred *Cred, n *record.Inode, mask uint32) error {
	if mask&AccessWrite != 0 {
		if err := fileFlagsOf(n).checkWritable(); err != nil {
			return err
		}
	}
	if cred.unchecked() || mask == 0 {
		return nil
	}
	if cred.rooted() {
		if mask&AccessExec != 0 && !n.IsDir() && n.Mode&0o111 == 0 {
			return ErrAccess
		}
		return nil
	}
	granted, err := rights(r, cred, n, mask)
	if err != nil {
		return err
	}
	if mask&^granted != 0 {
		return ErrAccess
	}
	return nil
}

// rights returns what n's mode and access ACL grant to cred, of what mask
// asks for.
func rights(r cluster.Reader, cred *Cred, n *record.Inode, mask uint32) (uint32, error) {
	switch {
	case cred.Is(n.UID):
		return n.Mode >> 6 & 7, nil
	case n.Has(record.FlagACL):
		a, err := posixacl.Get(r, n.Ino, posixacl.XattrAccess)
		if err != nil {
			return 0, err
		}
		if a != nil {
			return aclRights(a, cred, n, mask), nil
		}
	}
	if cred.inGroup(n.GID) {
		return n.Mode >> 3 & 7, nil
	}
	return n.Mode & 7, nil
}

// checkSticky returns ErrPerm if the sticky bit of d keeps cred from
// removing or renaming n.
func checkSticky(cred *Cred, d, n *record.Inode) error {
	if d.Mode&ModeSticky == 0 || cred.owns(n) || cred.owns(d) {
		return nil
	}
	return ErrPerm
}

// checkRemove is what removing or renaming the entry of n in d needs.
func checkRemove(r cluster.Reader, cred *Cred, d, n *record.Inode) error {
	if err := checkAccess(r, cred, d, AccessWrite|AccessExec); err != nil {
		return err
	}
	if err := checkSticky(cred, d, n); err != nil {
		return err
	}
	return fileFlagsOf(d).checkTake(fileFlagsOf(n))
}

// aclRights returns what a grants to cred, who is not the owner of n: of the
// entries that match the groups, one must grant all of mask.
func aclRights(a posixacl.ACL, cred *Cred, n *record.Inode, mask uint32) uint32 {
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
			if !cred.inGroup(gid) {
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
