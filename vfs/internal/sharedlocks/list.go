package sharedlocks

import (
	"context"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// List implements lock.Locks.
func (t *Table) List(ctx context.Context, max int, keep func(*lock.Entry) bool) (list []lock.Entry, more bool, err error) {
	err = t.cfg.KV.View(ctx, func(r cluster.Reader) error {
		b := lock.NewListing(max, keep)
		there, err := present(r)
		if err != nil {
			return err
		}
		from, to := record.Table(record.TabLock)
		err = r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			f, err := record.DecodeFileLocks(v)
			if err != nil {
				return nil //nolint:nilerr // Check reports it
			}
			s := &state{FileLocks: f, there: there}
			if err := s.dropMissing(there); err != nil {
				return err
			}
			waiting := slices.Clone(f.Waiting)
			b.Add(uint64(record.InoOfKey(k)), &f.File, func(e *lock.Entry) {
				if e.Waiting { // in their order
					e.Gateway, waiting = f.Waits[waiting[0].Ticket], waiting[1:]
				} else {
					e.Gateway = f.Holders[e.Lock.Owner].Gateway
				}
				if e.Gateway == t.cfg.Gateway {
					e.Gateway = 0
				}
			})
			return nil
		})
		list, more = b.Sorted()
		return err
	})
	return list, more, mapped(err)
}

// present are the gateways that are there; all others are not.
func present(r cluster.Reader) (there map[uint64]bool, err error) {
	all, err := record.Gateways(r)
	there = map[uint64]bool{0: true}
	for i := range all {
		there[all[i].ID] = true
	}
	return there, err
}

// gone returns which gateways vouch for something of a file and are not there.
func (t *Table) gone(ctx context.Context, ino uint64) (list []uint64, err error) {
	err = t.cfg.KV.Peek(ctx, func(r cluster.Reader) error {
		there, err := present(r)
		if err != nil {
			return err
		}
		v, err := r.Get(record.LockKey(ino))
		if err != nil {
			return err
		}
		f, err := record.DecodeFileLocks(v)
		if err == nil {
			list = missing(f, there)
		}
		return err
	})
	return list, err
}
