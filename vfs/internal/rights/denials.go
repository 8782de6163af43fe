package rights

import (
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// The half of the rights that denies: modes and POSIX ACLs that somebody chose
// (chosen.go). For a Local subject all of them count, the root's too.

// counts reports whether n's mode may deny.
func (j *Judge) counts(n *record.Inode) bool { return j.Subject.Local || j.rules.chosen(n) }

// Mode returns ErrAccess if n's mode denies a right of mask (Access bits).
func (j *Judge) Mode(n *record.Inode, mask uint32) error {
	if j.Free() || !j.counts(n) {
		return nil
	}
	return perm.Check(j.R, CredOf(j.Subject), n, mask)
}

// Dir is Mode for a directory, which is only read where its entry does not
// tell enough.
func (j *Judge) Dir(d keypath.Step, mask uint32) error {
	if j.Free() || !j.Subject.Local && (d.DirBits&record.DirUnchosen != 0 || d.DirBits&record.DirOpen != 0 && mask&perm.AccessWrite == 0) {
		return nil
	}
	n, err := record.GetInode(j.R, d.Ino)
	if err != nil {
		return err
	}
	return j.Mode(n, mask)
}

// way returns ErrAccess if a directory of a trail must not be passed.
func (j *Judge) way(trail []keypath.Step) error {
	for _, d := range trail {
		if err := j.Dir(d, perm.AccessExec); err != nil {
			return err
		}
	}
	return nil
}

// Entry returns ErrAccess or ErrPerm if d must not get an entry (n nil), or
// lose that of n.
func (j *Judge) Entry(d keypath.Step, n *record.Inode) error {
	if n == nil {
		return j.Dir(d, perm.AccessWrite|perm.AccessExec)
	}
	if j.Free() || !j.Subject.Local && d.DirBits&record.DirUnchosen != 0 {
		return nil
	}
	dir, err := record.GetInode(j.R, d.Ino)
	if err != nil || !j.counts(dir) {
		return err
	}
	return perm.CheckRemove(j.R, CredOf(j.Subject), dir, n)
}
