package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/orphans"
	"ogw/vfs/internal/record"
)

// orphanStore is what the table of open inodes needs of the namespace.
type orphanStore struct{ fs *FS }

// Look implements session.Inodes.
func (s orphanStore) Look(ctx context.Context, ino Ino) (stored, orphan bool, err error) {
	err = s.fs.peek(ctx, func(r cluster.Reader) error {
		vs, err := r.GetMany([][]byte{record.InodeKey(ino), record.OrphanKey(ino)})
		if err == nil {
			stored, orphan = vs[0] != nil, vs[1] != nil
		}
		return err
	})
	return stored, orphan, err
}

// Unused implements session.Inodes.
func (s orphanStore) Unused(ino Ino) { s.fs.orphans.Add(ino) }

func (o *op) orphanValue() []byte { return record.EncodeOrphan(o.fs.session.ID(), o.nowNS) }

// makeOrphan records that n has no links but is open or held in this process
// (its nlink is 0); the caller stores n. endOrphan takes that back (a link to a
// file without a name).
func (o *op) makeOrphan(t cluster.Txn, n *record.Inode) error {
	return t.Set(record.OrphanKey(n.Ino), o.orphanValue())
}

func (o *op) endOrphan(t cluster.Txn, n *record.Inode) error {
	return t.Delete(record.OrphanKey(n.Ino))
}

// deleteInode removes n, which has no links: attributes, link and directory
// records, and its content.
func (o *op) deleteInode(t cluster.Txn, n *record.Inode) error {
	if err := o.contents.Drop(t, n); err != nil {
		return err
	}
	if n.Has(record.FlagXattrs) {
		if err := deletePrefix(t, record.XattrPrefix(n.Ino)); err != nil {
			return err
		}
	}
	if n.Has(record.FlagLinks) {
		if err := deletePrefix(t, record.LinkPrefix(n.Ino)); err != nil {
			return err
		}
	}
	if n.IsDir() {
		if err := t.Delete(record.DirTimeKey(n.Ino)); err != nil {
			return err
		}
	}
	return t.Delete(record.InodeKey(n.Ino))
}

// deletePrefix removes all keys with prefix. Attributes and links of one
// inode are few: both are limited.
func deletePrefix(t cluster.Txn, prefix []byte) error {
	var keys [][]byte
	err := t.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		keys = append(keys, append([]byte(nil), k...))
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := t.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// removeOrphan deletes ino if it is an orphan that nobody here uses.
func (fs *FS) removeOrphan(ctx context.Context, ino Ino) error {
	return fs.removeOrphans(ctx, []Ino{ino})
}

// removeOrphans deletes, in one transaction, those of inos that are orphans
// which nobody here uses. Nobody has to be notified: who knew them forgot them.
func (fs *FS) removeOrphans(ctx context.Context, inos []Ino) error {
	keys := make([][]byte, 0, 2*len(inos))
	for _, ino := range inos {
		keys = append(keys, record.OrphanKey(ino), record.InodeKey(ino))
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		vs, err := t.GetMany(keys)
		if err != nil {
			return err
		}
		for i, ino := range inos {
			orphan, inode := vs[2*i], vs[2*i+1]
			if orphan == nil || o.removals.Begin(ino) {
				continue // used again; who ends that comes here
			}
			if inode != nil {
				n, err := record.DecodeInode(ino, inode)
				if err != nil {
					return err
				}
				if n.Nlink == 0 {
					if err := o.deleteInode(t, n); err != nil {
						return err
					}
				}
			}
			if err := t.Delete(record.OrphanKey(ino)); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeQueued removes what the queue held of late.
func (fs *FS) removeQueued(ctx context.Context, inos []Ino) error {
	err := fs.removeOrphans(cluster.Relaxed(ctx), inos)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		fs.log.Warn("unlinked files are left to the collector", "inodes", len(inos), "err", err)
	}
	return err
}

// orphanBatchOf is how many orphans one transaction of an engine removes.
func orphanBatchOf(kv cluster.KV) int {
	if kv.Limits().Ops > 0 {
		return 1
	}
	return orphans.Batch
}

// orphanPage is how many the collector looks at in one snapshot.
const orphanPage = 256

// collectOrphans removes what processes left that are gone: inodes without links
// that nobody uses. On a store of its own it looks only when there may be some
// (orphans.Queue).
func (fs *FS) collectOrphans(ctx context.Context) (done int, err error) {
	if !fs.orphans.TakeScan() && fs.session.Alone() {
		return 0, nil
	}
	defer func() {
		if err != nil {
			fs.orphans.Again()
		}
	}()
	from := []byte{record.TabOrphan}
	for from != nil {
		var left []Ino
		if left, from, err = fs.leftOrphans(ctx, from); err != nil {
			return done, err
		}
		for _, ino := range left {
			if fs.session.Open.MarkOrphan(ino) {
				continue
			}
			if err = fs.removeOrphan(ctx, ino); err != nil {
				return done, err
			}
			done++
		}
	}
	return done, nil
}

// leftOrphans looks at some orphans, from a key on. It returns those of processes that
// are gone, and where it goes on, nil at the end.
func (fs *FS) leftOrphans(ctx context.Context, from []byte) (left []Ino, next []byte, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		by := make(map[uint64][]Ino) // processes
		left, next = nil, nil
		n := 0
		err := r.Scan(from, []byte{record.TabOrphan + 1}, cluster.ScanOptions{Limit: orphanPage}, func(k, v []byte) error {
			process, _, err := record.DecodeOrphan(v)
			if err != nil || len(k) != 9 {
				return fmt.Errorf("%w: orphan key %x", ErrCorrupt, k)
			}
			by[process] = append(by[process], record.InoOfKey(k))
			if n++; n == orphanPage {
				next = append(bytes.Clone(k), 0)
			}
			return nil
		})
		for process, inos := range by {
			gone := false
			if err == nil {
				gone, err = fs.session.Gone(r, process)
			}
			if gone {
				left = append(left, inos...)
			}
		}
		return err
	})
	return left, next, err
}

// Orphans calls fn with every inode that has no links and was in use when it
// lost its last one.
func (fs *FS) Orphans(ctx context.Context, fn func(Ino) error) error {
	var list []Ino
	from, to := record.Table(record.TabOrphan)
	err := fs.view(ctx, func(r cluster.Reader) error {
		list = list[:0]
		return r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
			if len(k) != 9 {
				return fmt.Errorf("%w: orphan key %x", ErrCorrupt, k)
			}
			list = append(list, record.InoOfKey(k))
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, ino := range list {
		if err := fn(ino); err != nil {
			return err
		}
	}
	return nil
}
