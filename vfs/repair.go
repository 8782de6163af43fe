package vfs

import (
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// lostFoundName is the directory of files that no directory holds.
const lostFoundName = "lost+found"

// repairer implements fsck.Repairer within one operation.
type repairer struct{ o *op }

func (r repairer) RemoveContent(t cluster.Txn, id ContentID) error { return r.o.contents.Remove(t, id) }

func (r repairer) Hold(t cluster.Txn, source, user ContentID) error {
	return r.o.contents.HoldAgain(t, source, user)
}

func (r repairer) ReleaseRef(t cluster.Txn, source, user ContentID) error {
	return r.o.contents.ReleaseRef(t, source, user)
}

func (r repairer) Share(t cluster.Txn, n *record.Inode) error { return r.o.contents.Share(t, n) }

func (r repairer) RemoveUnused(t cluster.Txn, n *record.Inode) error {
	r.o.fs.orphans.Again()
	return r.o.makeOrphan(t, n)
}

func (r repairer) DeleteEntry(t cluster.Txn, parent Ino, e *record.Dentry) error {
	return r.o.deleteEntry(t, parent, e)
}

func (r repairer) Adopt(t cluster.Txn, ino Ino) error {
	n, err := record.GetInode(t, ino)
	if err != nil {
		return err
	}
	dir, err := r.lostFound(t)
	if err != nil {
		return err
	}
	if err := deletePrefix(t, record.LinkPrefix(ino)); err != nil {
		return err
	}
	if n.IsDir() {
		r.o.feed.DirMoved(ino)
	}
	n.Parent, n.Name, n.Nlink = dir, fmt.Sprintf("inode-%d", ino), 1
	n.Set(record.FlagLinks, false)
	if err := r.o.addEntry(t, dir, record.EntryOf(n)); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// lostFound returns /lost+found, and makes it if need be.
func (r repairer) lostFound(t cluster.Txn) (Ino, error) {
	dir, err := r.o.makeParents(t, RootIno, []string{lostFoundName}, Root)
	if err != nil {
		return 0, err
	}
	d, err := record.GetInode(t, dir)
	if err != nil {
		return 0, err
	}
	if !d.Has(record.FlagExplicit) {
		d.Set(record.FlagExplicit, true)
		d.Mode = ModeDirectory | 0o700
		d.Choose()
		if err := record.PutInode(t, d); err != nil {
			return 0, err
		}
		if err := record.RefreshEntry(t, d); err != nil {
			return 0, err
		}
	}
	return dir, nil
}
