package content

import (
	"bytes"
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// releaseLater has the collector look whether user still needs its hold on source:
// that takes all extents of user, and a transaction has no room for so many.
func (ch *Change) releaseLater(t cluster.Txn, user, source record.ContentID) error {
	return ch.Enqueue(t, record.QueueEntry{Kind: record.QueueHold, Content: user, Seq: uint64(source)})
}

// collectHolds ends the holds of one content that none of its extents needs.
func (s *Store) collectHolds(ctx context.Context, user record.ContentID, list []record.QueueEntry) error {
	unused := make(map[record.ContentID][]byte) // sources, with the hold's value
	err := s.View(ctx, func(r cluster.Reader) error {
		clear(unused)
		for i := range list {
			source := record.ContentID(list[i].Seq)
			v, err := r.Get(record.RefKey(source, user))
			if err != nil {
				return err
			}
			if v != nil {
				unused[source] = v
			}
		}
		return forgetNamed(r, user, unused)
	})
	if err != nil {
		return err
	}
	for i := range list {
		source := record.ContentID(list[i].Seq)
		err := s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error {
			if seen, ok := unused[source]; ok {
				v, err := t.Get(record.RefKey(source, user))
				if err != nil {
					return err
				}
				if bytes.Equal(v, seen) { // else somebody needs it again
					if err := ch.ReleaseRef(t, source, user); err != nil {
						return err
					}
				}
			}
			return t.Delete(list[i].Key())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetNamed removes from sources what an extent of user refers to.
func forgetNamed(r cluster.Reader, user record.ContentID, sources map[record.ContentID][]byte) error {
	if len(sources) == 0 {
		return nil
	}
	return r.Scan(record.ExtentPrefix(user), record.ExtentPrefix(user+1), cluster.ScanOptions{}, func(k, v []byte) error {
		_, e, err := record.ParseExtent(k, v)
		if err != nil {
			return err
		}
		if e.Kind == record.ExtentRef {
			if delete(sources, e.Src); len(sources) == 0 {
				return cluster.ErrStop
			}
		}
		return nil
	})
}
