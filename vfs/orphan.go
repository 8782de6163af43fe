package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/orphans"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/xattr"
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

// Unused implements session.Inodes. Where others may use it, the collector asks them.
func (s orphanStore) Unused(ino Ino) {
	if s.fs.session.Alone() {
		s.fs.orphans.Add(ino)
	}
}

func (o *op) orphanValue() []byte { return record.EncodeOrphan(o.fs.session.ID(), o.nowNS) }

// makeOrphan records that n has no links but is, or may be, open or held (its nlink
// is 0); the caller stores n. endOrphan takes that back (a link to a file without a
// name).
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
		if _, _, err := xattr.Remove(t, n.Ino, math.MaxInt32); err != nil {
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

// deletePrefix removes all keys with prefix. Links of one inode are few: they are
// limited.
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

// mayUse returns ErrStale for an inode without links whose use would begin only now, so
// that the others do not know of it. admitted reports whether a use goes on that began
// when it had links.
func (fs *FS) mayUse(n *record.Inode, admitted bool) error {
	if n.Nlink > 0 || admitted || fs.session.Alone() {
		return nil
	}
	return fmt.Errorf("inode %d has no links: %w", n.Ino, ErrStale)
}

// orphan is an inode without links, and its record; nil: whichever it has.
type orphan struct {
	ino   Ino
	value []byte
}

// removeOrphan deletes ino if it is an orphan that nobody here uses.
func (fs *FS) removeOrphan(ctx context.Context, ino Ino) error {
	return fs.removeOrphans(ctx, []orphan{{ino: ino}})
}

// removeOrphans deletes those of a list that are orphans still which nobody here uses: in
// one transaction, but for those with more attributes than that removes, which stay
// orphans until the last one. Nobody has to be notified: who knew them forgot them.
func (fs *FS) removeOrphans(ctx context.Context, list []orphan) (err error) {
	for len(list) > 0 && err == nil {
		list, err = fs.removeSome(ctx, list)
	}
	return err
}

// removeSome is one transaction of removeOrphans. It returns those that are left.
func (fs *FS) removeSome(ctx context.Context, list []orphan) (left []orphan, err error) {
	keys := make([][]byte, 0, 2*len(list))
	for _, x := range list {
		keys = append(keys, record.OrphanKey(x.ino), record.InodeKey(x.ino))
	}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		left = nil
		room := orphanAttrs(fs.kv, len(list))
		vs, err := t.GetMany(keys)
		if err != nil {
			return err
		}
		for i := range list {
			ino, orphan, inode := list[i].ino, vs[2*i], vs[2*i+1]
			if orphan == nil || list[i].value != nil && !bytes.Equal(orphan, list[i].value) {
				continue // it has, or had, a link again
			}
			var n *record.Inode
			if inode != nil {
				if n, err = record.DecodeInode(ino, inode); err != nil {
					continue // it stays, and a check reports it
				}
			}
			if o.removals.Begin(ino) {
				continue // used again; who ends that comes here
			}
			if n != nil && n.Nlink == 0 {
				more, err := o.deleteAttrs(t, n, &room)
				if err != nil {
					return err
				}
				if more {
					left = append(left, list[i])
					continue
				}
				if err := o.deleteInode(t, n); err != nil {
					return err
				}
			}
			if err := t.Delete(record.OrphanKey(ino)); err != nil {
				return err
			}
		}
		return nil
	})
	return left, err
}

// deleteAttrs removes extended attributes of an orphan as far as there is room for them,
// and reports whether there are more.
func (o *op) deleteAttrs(t cluster.Txn, n *record.Inode, room *int) (more bool, err error) {
	if !n.Has(record.FlagXattrs) {
		return false, nil
	}
	removed, more, err := xattr.Remove(t, n.Ino, *room)
	*room -= removed
	n.Set(record.FlagXattrs, more) // so deleteInode does not look for them
	return more, err
}

// orphanAttrs is how many extended attributes one transaction removes together with a
// number of orphans, whatever an earlier version let one have.
func orphanAttrs(kv cluster.KV, orphans int) int {
	if ops := kv.Limits().Ops; ops > 0 {
		return max((ops-orphanOps*orphans)/2, 1) // each is met and deleted
	}
	return math.MaxInt32
}

// closeOrphan removes ino if it has no links; looking costs no transaction. What others
// may use is the collector's.
func (fs *FS) closeOrphan(ctx context.Context, ino Ino) error {
	if !fs.session.Alone() {
		return nil
	}
	orphan := false
	err := fs.peek(cluster.Relaxed(ctx), func(r cluster.Reader) error {
		b, err := r.Get(record.OrphanKey(ino))
		orphan = b != nil
		return err
	})
	if err != nil || !orphan {
		return err
	}
	return fs.removeOrphan(cluster.Relaxed(ctx), ino)
}

// removeQueued removes what the queue held of late.
func (fs *FS) removeQueued(ctx context.Context, inos []Ino) error {
	list := make([]orphan, len(inos))
	for i, ino := range inos {
		list[i].ino = ino
	}
	err := fs.removeOrphans(cluster.Relaxed(ctx), list)
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

const (
	// orphanPage is how many orphans the collector looks at in one snapshot, and
	// sharedOrphanPage where it waits for others, for seconds, to remove them.
	orphanPage       = 256
	sharedOrphanPage = 8192
	// sharedOrphanPages is how many of these pages a pass has at the most: more may
	// come all the time, and what they held is removed after them.
	sharedOrphanPages = 4
	// orphanOps is how many operations an orphan takes at the most, its extended
	// attributes not counted.
	orphanOps = 16
	// sharedOrphanBatch is how many of them go in one transaction of an engine that
	// limits those, etcd's 126 operations, with room for some attributes.
	sharedOrphanBatch = 6
)

// collectOrphans removes inodes without links that nobody uses: which processes left
// that are gone, and beside others all. On a store of its own it looks only when there
// may be some (orphans.Queue).
func (fs *FS) collectOrphans(ctx context.Context) (done int, err error) {
	alone := fs.session.Alone()
	if !fs.orphans.TakeScan() && alone {
		return 0, nil
	}
	defer func() {
		if err != nil {
			fs.orphans.Again()
		}
	}()
	from := []byte{record.TabOrphan}
	for page := 0; from != nil && (alone || page < sharedOrphanPages); page++ {
		var list []orphan
		if list, from, err = fs.orphansFrom(ctx, from); err != nil {
			return done, err
		}
		if list, err = fs.unused(ctx, list); err != nil {
			return done, err
		}
		n, err := fs.removeUnused(ctx, list)
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// unused returns those of a list that nobody uses.
func (fs *FS) unused(ctx context.Context, list []orphan) ([]orphan, error) {
	if len(list) > 0 && !fs.session.Alone() {
		held, err := fs.session.Settle(ctx)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(x orphan) bool { return held.Inodes[x.ino] })
	}
	return slices.DeleteFunc(list, func(x orphan) bool { return fs.session.Open.MarkOrphan(x.ino) }), nil
}

// removeUnused removes a list in as many transactions as it takes.
func (fs *FS) removeUnused(ctx context.Context, list []orphan) (done int, err error) {
	return content.Together(fs.kv, list, func(part []orphan) (int, error) { return fs.removeBatches(ctx, part) })
}

// removeBatches is removeUnused, one transaction after the other.
func (fs *FS) removeBatches(ctx context.Context, list []orphan) (done int, err error) {
	batch := 1
	if !fs.session.Alone() {
		if batch = orphans.Batch; fs.kv.Limits().Ops > 0 {
			batch = sharedOrphanBatch
		}
	}
	for part := range slices.Chunk(list, batch) {
		n, err := fs.removeEach(ctx, part)
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// removeEach is removeOrphans that passes over one which cannot be removed, so that it
// keeps nothing else.
func (fs *FS) removeEach(ctx context.Context, list []orphan) (done int, err error) {
	err = fs.removeOrphans(ctx, list)
	switch {
	case err == nil:
		return len(list), nil
	case !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrCorrupt):
		return 0, err
	case len(list) == 1:
		fs.contents.Leave(fmt.Errorf("inode %d: %w", list[0].ino, err))
		return 0, nil
	}
	for i := range list {
		n, err := fs.removeEach(ctx, list[i:i+1])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// orphansFrom returns a page of orphans, from a key on, and where the next one begins,
// nil at the end.
func (fs *FS) orphansFrom(ctx context.Context, from []byte) (list []orphan, next []byte, err error) {
	page := orphanPage
	if !fs.session.Alone() {
		page = sharedOrphanPage
	}
	err = fs.view(ctx, func(r cluster.Reader) error {
		list, next = nil, nil
		seen := 0
		return r.Scan(from, []byte{record.TabOrphan + 1}, cluster.ScanOptions{Limit: page}, func(k, v []byte) error {
			if seen++; seen == page {
				next = append(bytes.Clone(k), 0)
			}
			if _, _, err := record.DecodeOrphan(v); err != nil || len(k) != 9 {
				return nil //nolint:nilerr // it stays, and a check reports it
			}
			list = append(list, orphan{record.InoOfKey(k), bytes.Clone(v)})
			return nil
		})
	})
	return list, next, err
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
