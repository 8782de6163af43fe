package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

const (
	// limitedRefRuns is how many references one transaction makes in an
	// engine with limits.
	limitedRefRuns = 16
	// limitedCutExtents is how many extents one cuts there: each costs up to
	// nine operations if it releases a source.
	limitedCutExtents = 8
	// maxDetachAttempts bounds how often a change finds the content shared
	// again after it was detached.
	maxDetachAttempts = 8
)

func (fs *FS) refRunLimit() int {
	if extents.PerTxn(fs.kv) == extents.LimitedTxn {
		return limitedRefRuns
	}
	return maxRefRuns
}

func (fs *FS) cutLimit() int {
	if extents.PerTxn(fs.kv) == extents.LimitedTxn {
		return limitedCutExtents
	}
	return extents.UnlimitedTxn
}

// errDetach: the content is shared, and of more references than this
// transaction may make.
var errDetach = errors.New("content must be detached first")

// trimError: more lies behind a size than this transaction may cut.
type trimError struct{ size int64 }

func (e *trimError) Error() string { return fmt.Sprintf("content must be trimmed to %d first", e.size) }

// updateFile is update for changes of ino's content: what does not fit one
// transaction is prepared in others, each of which leaves a consistent file.
func (fs *FS) updateFile(ctx context.Context, ino Ino, fn func(t cluster.Txn, o *op) error) error {
	token := takeToken(ctx) // for the last transaction: then all is done
	for attempt := 0; ; attempt++ {
		err := fs.update(token.again(ctx), fn)
		var trim *trimError
		switch {
		case attempt == maxDetachAttempts:
			return err
		case errors.Is(err, errDetach):
			err = fs.detach(ctx, ino)
		case errors.As(err, &trim):
			err = fs.trim(ctx, ino, trim.size)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// detach gives ino a content of its own that refers to the shared one, in as
// many transactions as it takes.
func (fs *FS) detach(ctx context.Context, ino Ino) error {
	id, err := fs.ids.Take(ctx)
	if err != nil {
		return err
	}
	c := &content{id: ContentID(id)}
	var source ContentID
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		source = 0
		n, err := record.GetInode(t, ino)
		if err != nil || !n.Has(record.FlagShared) {
			return err
		}
		source = n.Content
		if err := t.Set(record.RefKey(source, c.id), []byte{}); err != nil {
			return err
		}
		fs.staged.Add(c.id)
		return t.Set(record.ContentKey(c.id), record.Content{Staging: true, MadeNS: o.nowNS}.Encode())
	})
	if err != nil || source == 0 {
		return err
	}
	c.staged = true
	// The source does not change any more: it is shared, and held from here.
	own, err := fs.stageRefs(ctx, c.id, source)
	if err == nil {
		err = fs.update(ctx, func(t cluster.Txn, o *op) error { return o.adopt(t, ino, c, source, own) })
	}
	if err != nil && !errors.Is(err, ErrUnavailable) {
		fs.discard(ctx, c)
	}
	return err
}

// stageRefs stores references to all of source under content id. own tells
// that some of them are to source itself, and not to what it refers to.
func (fs *FS) stageRefs(ctx context.Context, id, source ContentID) (own bool, err error) {
	for off := int64(0); off < MaxFileBytes; {
		var list []record.Extent
		var more bool
		err := fs.view(ctx, func(r cluster.Reader) (err error) {
			list, more, err = extents.Load(r, source, off, MaxFileBytes, extents.LimitedTxn)
			return err
		})
		if err != nil {
			return own, err
		}
		if len(list) == 0 {
			break
		}
		end := list[len(list)-1].End()
		runs := refRuns(source, list, off, end)
		for i := 0; i < len(runs); i += limitedRefRuns {
			part := runs[i:min(i+limitedRefRuns, len(runs))]
			err := fs.update(ctx, func(t cluster.Txn, o *op) error {
				for j := range part {
					if err := t.Set(record.RefKey(part[j].Src, id), []byte{}); err != nil {
						return err
					}
				}
				return putExtents(t, id, part)
			})
			if err != nil {
				return own, err
			}
			for j := range part {
				own = own || part[j].Src == source
			}
		}
		if !more {
			break
		}
		off = end
	}
	return own, nil
}

// adopt makes the staged references ino's content.
func (o *op) adopt(t cluster.Txn, ino Ino, c *content, source ContentID, own bool) error {
	n, err := record.GetInode(t, ino)
	if err != nil {
		return err
	}
	if n.Content != source {
		return fmt.Errorf("%w: inode %d", ErrConflict, ino)
	}
	used := n.Used
	if err := o.storeContent(t, c); err != nil {
		return err
	}
	if err := o.dropContent(t, n); err != nil {
		return err
	}
	if !own {
		if err := o.releaseRef(t, source, c.id); err != nil {
			return err
		}
	}
	n.Content, n.Used = c.id, used
	n.Set(record.FlagRefs, true)
	o.stored(ino)
	return record.PutInode(t, n)
}

// trim makes ino smaller step by step until what is left behind size fits
// one transaction.
func (fs *FS) trim(ctx context.Context, ino Ino, size int64) error {
	for more := true; more; {
		err := fs.update(ctx, func(t cluster.Txn, o *op) (err error) {
			n, err := record.GetInode(t, ino)
			if err != nil {
				return err
			}
			more, err = o.trimSome(t, n, size)
			if err != nil {
				return err
			}
			return record.PutInode(t, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// trimSome cuts the last extents behind size.
func (o *op) trimSome(t cluster.Txn, n *record.Inode, size int64) (more bool, err error) {
	if n.Content == 0 || n.Has(record.FlagShared) || n.Size <= size {
		return false, nil
	}
	cut, k, limit := n.Size, 0, o.fs.cutLimit()
	opt := cluster.ScanOptions{Limit: limit, Reverse: true, KeysOnly: true}
	err = t.Scan(record.ExtentKey(n.Content, size), record.ExtentKey(n.Content, n.Size), opt, func(key, _ []byte) (err error) {
		_, cut, err = record.ParseExtentKey(key)
		k++
		return err
	})
	if err != nil || k < limit {
		return false, err // the rest is the caller's
	}
	if _, _, err := o.cutRange(t, n, cut, n.Size, limit, nil); err != nil {
		return false, err
	}
	n.Size, n.CRC = cut, 0
	n.Set(record.FlagCRC, false)
	o.contentChanged(n)
	return true, nil
}
