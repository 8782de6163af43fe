package content

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// maxDetachAttempts bounds how often a change finds the content shared
	// again after it was detached.
	maxDetachAttempts = 8
)

// Fit runs update, which changes ino's content in a transaction: what does not
// fit one is prepared in others, each of which leaves a consistent file.
func (s *Store) Fit(ctx context.Context, ino record.Ino, update func() error) error {
	for attempt := 0; ; attempt++ {
		err := update()
		var trim *trimError
		switch {
		case attempt == maxDetachAttempts:
			return err
		case errors.Is(err, ErrDetach):
			err = s.detach(ctx, ino)
		case errors.As(err, &trim):
			err = s.trim(ctx, ino, trim.size)
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
func (s *Store) detach(ctx context.Context, ino record.Ino) (err error) {
	use := s.IDs.Begin()
	defer func() {
		if errors.Is(err, fserr.ErrUnavailable) {
			use.Doubt()
		}
		use.End()
	}()
	id, err := s.IDs.Take(ctx)
	if err != nil {
		return err
	}
	c := &Written{ID: record.ContentID(id)}
	var source record.ContentID
	err = s.Update(ctx, func(t cluster.Txn, ch *Change) error {
		source = 0
		n, err := record.GetInode(t, ino)
		if err != nil || !n.Has(record.FlagShared) {
			return err
		}
		source = n.Content
		if err := hold(t, source, c.ID); err != nil {
			return err
		}
		s.Staged.Add(c.ID)
		return t.Set(record.ContentKey(c.ID), record.Content{Staging: true, MadeNS: ch.nowNS}.Encode())
	})
	if err != nil || source == 0 {
		return err
	}
	c.Staged = true
	// The source does not change any more: it is shared, and held from here.
	own, err := s.stageRefs(ctx, c.ID, source)
	if err == nil {
		err = s.Update(ctx, func(t cluster.Txn, ch *Change) error { return ch.adopt(t, ino, c, source, own) })
	}
	if err != nil && !errors.Is(err, fserr.ErrUnavailable) {
		s.Discard(ctx, c)
	}
	return err
}

// stageRefs stores references to all of source under content id. own reports
// that some of them are to source itself, and not to what it refers to.
func (s *Store) stageRefs(ctx context.Context, id, source record.ContentID) (own bool, err error) {
	for off := int64(0); off < record.MaxFileBytes; {
		var list []record.Extent
		var more bool
		err := s.View(ctx, func(r cluster.Reader) (err error) {
			list, more, err = extents.Load(r, source, off, record.MaxFileBytes, extents.LimitedTxn)
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
			err := s.Update(ctx, func(t cluster.Txn, ch *Change) error {
				for j := range part {
					if err := hold(t, part[j].Src, id); err != nil {
						return err
					}
				}
				return PutExtents(t, id, part)
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
func (ch *Change) adopt(t cluster.Txn, ino record.Ino, c *Written, source record.ContentID, own bool) error {
	n, err := record.GetInode(t, ino)
	if err != nil {
		return err
	}
	if n.Content != source {
		return fmt.Errorf("%w: inode %d", fserr.ErrConflict, ino)
	}
	used := n.Used
	if err := ch.store(t, c); err != nil {
		return err
	}
	if err := ch.Drop(t, n); err != nil {
		return err
	}
	if !own {
		if err := ch.ReleaseRef(t, source, c.ID); err != nil {
			return err
		}
	}
	n.Content, n.Used = c.ID, used
	n.Set(record.FlagRefs, true)
	ch.op.Stored(ino)
	return record.PutInode(t, n)
}

// trim makes ino smaller step by step until what is left behind size fits
// one transaction.
func (s *Store) trim(ctx context.Context, ino record.Ino, size int64) error {
	for more := true; more; {
		err := s.Update(ctx, func(t cluster.Txn, ch *Change) (err error) {
			n, err := record.GetInode(t, ino)
			if err != nil {
				return err
			}
			more, err = ch.trimSome(t, n, size)
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
func (ch *Change) trimSome(t cluster.Txn, n *record.Inode, size int64) (more bool, err error) {
	if n.Content == 0 || n.Has(record.FlagShared) || n.Size <= size {
		return false, nil
	}
	cut, k, limit := n.Size, 0, ch.s.cutLimit()
	opt := cluster.ScanOptions{Limit: limit, Reverse: true, KeysOnly: true}
	err = t.Scan(record.ExtentKey(n.Content, size), record.ExtentKey(n.Content, n.Size), opt, func(key, _ []byte) (err error) {
		_, cut, err = record.ParseExtentKey(key)
		k++
		return err
	})
	if err != nil || k < limit {
		return false, err // the rest is the caller's
	}
	if _, _, err := ch.cut(t, n, cut, n.Size, Bounds{Extents: limit}); err != nil {
		return false, err
	}
	n.Size, n.CRC = cut, 0
	n.Set(record.FlagCRC, false)
	ch.Changed(n)
	return true, nil
}
