package sharedlocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/lock"
)

// change is one transaction.
type change struct {
	// owner, if set, is who asks: what is late of it comes before, and not again after.
	owner *lock.Owner
	// reclaims reports whether what the owner's client has is kept, whoever vouched for it.
	reclaims bool
	gone     []uint64 // gateways that seem to be gone, and vouch for something
	do       func(s *state) error
}

// run has a change commit, after what is late, and returns what waiters of this process
// get. By who has the turn. After an error that is the store's it is not known whether it
// did.
func (t *Table) run(ctx context.Context, f *file, c change) (list []verdict, err error) {
	t.mu.Lock()
	if c.gone != nil {
		f.gone = c.gone
	}
	before, settled, doubt, going, gone := f.dues(), f.settled, f.doubt, slices.Clone(t.going), f.gone
	t.mu.Unlock()
	keep := ""
	if c.reclaims {
		keep = c.owner.Client
	}
	var s *state
	var applied []*late
	err = t.cfg.KV.Update(ctx, func(x cluster.Txn) (err error) {
		if s, err = load(x, t.cfg.Gateway, f.ino, keep, gone); err != nil {
			return err
		}
		// What may still be committed must find another value than it read.
		s.force = doubt
		s.going = going
		s.learn()
		applied = applied[:0]
		for _, u := range before {
			if u.ticket == 0 || s.mayMove() { // else the next transaction goes on
				u.apply(s, u.spares)
				applied = append(applied, u.late)
			}
		}
		if c.do != nil {
			if err := c.do(s); err != nil {
				return err
			}
		}
		if err := s.wake(); err != nil {
			return err
		}
		return s.store(x)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if unknown(err) {
			t.doubt(f, c.owner)
		}
		return nil, err
	}
	for _, u := range applied {
		u.applied = true
	}
	// What was settled meanwhile may have come after this one read.
	open := f.doubt || f.settled != settled
	f.late = slices.DeleteFunc(f.late, func(u *late) bool {
		return u.applied && (!open || !u.whole() && !f.unsure[u.owner] || c.owner != nil && *c.owner == u.owner && u.ticket == 0)
	})
	t.machines.count(s.lockers, s.Lockers())
	if !s.more {
		f.gone = nil
	}
	f.stale = s.more || f.settled != settled || f.stale && f.doubt
	return t.absorb(f, s.FileLocks, s.ended), nil
}

// unknown reports whether an error leaves open what became of a transaction.
func unknown(err error) bool {
	return errors.Is(err, cluster.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lasting reports whether to try again is in vain.
func lasting(err error) bool {
	return errors.Is(err, lock.ErrNoLocks) || errors.Is(err, fserr.ErrCorrupt)
}

// failures are those of files, of which there may be many: the first one, and how many there were.
type failures struct {
	first error
	n     int
}

func (f *failures) add(err error) {
	f.first = cmp.Or(f.first, err)
	f.n++
}

// err is nil if there were none.
func (f *failures) err() error {
	if f.n > 1 {
		return fmt.Errorf("%w, and so %d more files", f.first, f.n-1)
	}
	return f.first
}

// doubt notes that what a transaction was about may come later. However many there are, one
// question at a time is asked for a file. Under mu.
func (t *Table) doubt(f *file, owner *lock.Owner) {
	if owner != nil {
		if f.unsure == nil {
			f.unsure = make(map[lock.Owner]bool)
		}
		f.unsure[*owner] = true
	}
	if f.again = f.doubt; !f.doubt {
		f.doubt = true
		t.cfg.Doubt(func() { t.sure(f) })
	}
}

// sure comes when no transaction of before the last question can commit any more.
func (t *Table) sure(f *file) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.again {
		f.again = false
		t.cfg.Doubt(func() { t.sure(f) })
		return
	}
	f.doubt, f.unsure, f.stale = false, nil, true
	f.settled++
	t.settle(f)
}

// update is run for who has no turn yet.
func (t *Table) update(ctx context.Context, ino uint64, c change) error {
	f, err := t.enter(ctx, ino)
	if err != nil {
		return err
	}
	list, err := t.run(ctx, f, c)
	t.leave(f)
	tell(list)
	return err
}
