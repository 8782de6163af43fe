package vfs

import (
	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// chosen reports whether somebody chose n's mode.
func (fs *FS) chosen(n *record.Inode) bool {
	switch {
	case n.Has(record.FlagChosen):
		return true
	case n.Has(record.FlagUnchosen):
		return false
	}
	usual := fs.cfg.FileMode
	if n.IsDir() {
		usual = fs.cfg.DirMode
	}
	return usual&^n.Mode&0o777 != 0 || n.Has(record.FlagACL)
}

// tellEntry brings the entry of a directory in line with its mode, after each
// change of that.
func tellEntry(t cluster.Txn, n *record.Inode) error {
	if !n.IsDir() || n.Ino == RootIno {
		return nil
	}
	e, err := record.GetDentry(t, n.Parent, n.Name, true)
	if err != nil || e == nil || e.Ino != n.Ino || e.Tells == n.EntryTells() {
		return err
	}
	return record.PutDentry(t, n.Parent, record.EntryOf(n))
}
