package content

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// stagingPage is how many contents are looked at in one snapshot.
const stagingPage = 256

// collectStaging queues contents that were staged and never published. Those
// that this process stages are left alone, whatever the clock says.
func (s *Store) collectStaging(ctx context.Context) error {
	var old []record.ContentID
	var left uint64 // later on it is no smaller
	if err := s.View(ctx, func(r cluster.Reader) (err error) {
		left, err = s.Session.Left(r)
		return err
	}); err != nil {
		return err
	}
	from := []byte{record.TabContent}
	for {
		var n int
		err := s.View(ctx, func(r cluster.Reader) error {
			n = 0
			return r.Scan(from, []byte{record.TabContent + 1}, cluster.ScanOptions{Limit: stagingPage}, func(k, v []byte) error {
				n++
				from = append(append(from[:0:0], k...), 0)
				rec, err := record.DecodeContent(v)
				if err != nil || len(k) != 9 {
					s.Leave(fmt.Errorf("%w: content record %x", fserr.ErrCorrupt, k))
					return nil //nolint:nilerr // it is told
				}
				c := record.ContentID(record.InoOfKey(k))
				if rec.Staging && uint64(c) < left && !s.Staged.Has(c) {
					old = append(old, c)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if n < stagingPage || len(old) >= stagingPage {
			break
		}
	}
	for _, c := range old {
		if err := s.dropStaged(ctx, c); err != nil && !errors.Is(err, fserr.ErrStale) {
			return err
		}
	}
	return nil
}

// dropStaged hands a staged content to the collector.
func (s *Store) dropStaged(ctx context.Context, c record.ContentID) error {
	return s.Update(ctx, func(t cluster.Txn, ch *Change) error {
		b, err := t.Get(record.ContentKey(c))
		if err != nil || b == nil {
			return err // published meanwhile
		}
		rec, err := record.DecodeContent(b)
		if err != nil || !rec.Staging {
			return err
		}
		if err := t.Delete(record.ContentKey(c)); err != nil {
			return err
		}
		return ch.Enqueue(t, record.QueueEntry{Kind: record.QueueContent, Content: c})
	})
}
