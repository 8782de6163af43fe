package vfs

import (
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// The half of the rights that denies: modes and POSIX ACLs that somebody chose
// (moderights.go). For a Local subject all of them count, the root's too.

// counts reports whether n's mode may deny.
func (j *judge) counts(n *record.Inode) bool { return j.s.Local || j.fs.chosen(n) }

// mode returns ErrAccess if n's mode denies a right of mask (Access bits).
func (j *judge) mode(n *record.Inode, mask uint32) error {
	if j.free() || !j.counts(n) {
		return nil
	}
	return perm.Check(j.r, j.s.cred(), n, mask)
}

// dir is mode for a directory, which is only read where its entry does not
// tell enough.
func (j *judge) dir(d keypath.Step, mask uint32) error {
	if j.free() || !j.s.Local && (d.Tells&record.TellsUnchosen != 0 || d.Tells&record.TellsOpen != 0 && mask&AccessWrite == 0) {
		return nil
	}
	n, err := record.GetInode(j.r, d.Ino)
	if err != nil {
		return err
	}
	return j.mode(n, mask)
}

// way returns ErrAccess if a directory of a trail must not be passed.
func (j *judge) way(trail []keypath.Step) error {
	for _, d := range trail {
		if err := j.dir(d, AccessExec); err != nil {
			return err
		}
	}
	return nil
}

// entry returns ErrAccess or ErrPerm if d must not get an entry (n nil), or
// lose that of n.
func (j *judge) entry(d keypath.Step, n *record.Inode) error {
	if n == nil {
		return j.dir(d, AccessWrite|AccessExec)
	}
	if j.free() || !j.s.Local && d.Tells&record.TellsUnchosen != 0 {
		return nil
	}
	dir, err := record.GetInode(j.r, d.Ino)
	if err != nil || !j.counts(dir) {
		return err
	}
	return perm.CheckRemove(j.r, j.s.cred(), dir, n)
}
