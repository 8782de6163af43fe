package sharedlocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// errOlder means that a gateway may be there which would take a share reservation for damage.
var errOlder = fmt.Errorf("%w: a gateway of a version that does not know share reservations is there, or may come", cluster.ErrUnavailable)

// asked is what became of a request.
type asked struct {
	granted bool
	closing uint64  // of who is in the way
	waiter  *waiter // that waits
	untold  *waiter // that was granted at once, and can be given up
	crowd   bool    // there are gateways that were not asked for
}

// wish is a request.
type wish struct {
	ino      uint64
	space    lock.Space
	lock     lock.Lock
	reclaims bool        // it is the owner's of before a restart
	done     func(error) // nil: it does not wait
	gone     []uint64    // as in change
}

// request has a lock granted or queued. Who does not wait is not refused for what a gateway
// left that is gone, however many there are.
func (t *Table) request(ctx context.Context, q wish) (a asked, err error) {
	for {
		a, err = t.requestOnce(ctx, q)
		if !a.crowd || !errors.Is(err, lock.ErrWouldBlock) {
			return a, err
		}
		var e error
		if q.gone, e = t.gone(ctx, q.ino); e != nil || len(q.gone) == 0 {
			return a, cmp.Or(e, err)
		}
	}
}

func (t *Table) requestOnce(ctx context.Context, q wish) (a asked, err error) {
	if err := q.lock.Normalize(q.space); err != nil {
		return a, err
	}
	if q.space == lock.Share && t.cfg.Rules() < record.RulesShares {
		return a, errOlder
	}
	l, done := q.lock, q.done
	f, err := t.enter(ctx, q.ino)
	if err != nil {
		return a, err
	}
	full, err := t.admit(ctx, f, &q)
	if err != nil {
		t.leave(f)
		return a, err
	}
	w := &waiter{ticket: ticket(), space: q.space, lock: l, done: done}
	var last *state
	list, err := t.run(ctx, f, change{owner: &l.Owner, reclaims: q.reclaims, gone: q.gone, do: func(s *state) error {
		a, last = asked{crowd: s.crowd}, s
		if full && !s.Replaces(q.space, l.Owner) {
			return lock.ErrNoLocks
		}
		return w.request(s, &a)
	}})
	if err == nil && a.waiter != nil { // what the same transaction granted others may have ended it
		if why, over := last.ended[w.ticket]; over {
			a.waiter, err = nil, why
		}
	}
	t.mu.Lock()
	if err == nil && a.granted {
		f.granted(q.space, &l)
	}
	switch {
	case err == nil && a.waiter != nil:
		f.waiters[w.ticket] = w
		t.recent = time.Now()
	case err != nil && done != nil && unknown(err): // it may wait for nobody, or be granted to nobody
		f.late = append(f.late, &late{space: q.space, owner: l.Owner, start: l.Start, end: l.End, ticket: w.ticket, fresh: l.Owner.Remote()})
	case err != nil && f.owners[l.Owner] == 0 && !f.unsure[l.Owner]:
		delete(f.owners, l.Owner)
	}
	t.mu.Unlock()
	t.leave(f)
	tell(list)
	switch {
	case err != nil:
	case a.granted || a.waiter != nil:
	default:
		err = lock.ErrWouldBlock
	}
	return a, err
}

// admit reports, as an error, whether there is no room for a request; or it is full, and the
// store has to say whether it takes any. Of owners of this process
// it is noted that they may have something; what remote clients have knows the store alone.
func (t *Table) admit(ctx context.Context, f *file, q *wish) (full bool, err error) {
	o := q.lock.Owner
	if o.Remote() {
		full, err = t.machineFull(ctx, o.Client)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	full = full || !o.Remote() && t.tally.Full(o.Client, 2)
	switch _, known := f.owners[o]; {
	case err != nil:
		return full, err
	case full && q.space != lock.Share || q.done != nil && len(f.late) >= maxLate:
		return full, lock.ErrNoLocks
	case !known && !o.Remote():
		f.owners[o] = 0
	}
	return full, nil
}

// machineFull reports whether a remote client's machine may have no more.
func (t *Table) machineFull(ctx context.Context, client string) (bool, error) {
	name := lock.MachineOf(client)
	t.mu.Lock()
	full, due := t.machines.full(name)
	t.mu.Unlock()
	if !due {
		return full, nil
	}
	total := 0
	if err := lockers(ctx, t.cfg.KV, name, func(_ string, _ uint64, n int) { total += n }); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machines.learn(name, total)
	full, _ = t.machines.full(name)
	return full, nil
}

// request asks for the lock within a transaction.
func (w *waiter) request(s *state, a *asked) error {
	o := w.lock.Owner
	s.opened(o)
	s.supersede(w.space, &w.lock)
	before := s.Owned(w.space, &w.lock)
	w.fresh = o.Remote() || w.space == lock.Flock || len(before) == 0
	if h, ok := s.Holders[o]; ok { // reclaimed: all that it has
		h.Gateway = voucher(s.me, o)
		s.Holders[o] = h
	}
	switch {
	case w.space == lock.Share: // store looks at it, if it is not there yet
		s.share = true
	case s.Len()+2 > maxFileLocks: // a conversion can split a range in three
		return errTooMany
	}
	if a.granted = s.take(w.space, w.lock); a.granted {
		switch {
		case !o.Remote():
		case w.done == nil:
			noteTold(s.FileLocks, w.space, &w.lock)
		case noteGranted(s.FileLocks, w.space, &w.lock, w.ticket, before):
			a.untold = w
		}
		return nil
	}
	if w.done == nil {
		a.closing = closeOf(s.FileLocks, s.Blocker(w.space, &w.lock).Owner)
		return nil
	}
	if w.space == lock.Range {
		if found, err := s.deadlocks(&w.lock); err != nil {
			return err
		} else if found {
			return lock.ErrDeadlock
		}
	}
	s.wait(w.space, w.lock, w.ticket)
	a.waiter = w
	return nil
}

// ticket returns a number that nothing else has.
func ticket() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

// TryLock implements lock.Locks.
func (t *Table) TryLock(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) error {
	_, err := t.request(ctx, wish{ino: ino, space: s, lock: l})
	return mapped(err)
}

// Reclaim implements lock.Locks: what the owner has in the file is this gateway's from then
// on, and what others took meanwhile stays theirs.
func (t *Table) Reclaim(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) error {
	_, err := t.request(ctx, wish{ino: ino, space: s, lock: l, reclaims: true})
	return mapped(err)
}

// mapped returns an error of the store as one of vfs, or else of package lock.
func mapped(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(lock.ErrInterrupted, err)
	}
	return fserr.Map(err)
}

// Lock implements lock.Locks.
func (t *Table) Lock(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) error {
	result := make(chan error, 1)
	cancel, waiting, err := t.LockFunc(ctx, ino, s, l, func(err error) { result <- err })
	if err != nil || !waiting {
		return err
	}
	return lock.Await(ctx, result, cancel)
}

// LockFunc implements lock.Locks.
func (t *Table) LockFunc(ctx context.Context, ino uint64, s lock.Space, l lock.Lock, done func(error)) (cancel func() bool, waiting bool, err error) {
	a, err := t.request(ctx, wish{ino: ino, space: s, lock: l, done: done})
	w := cmp.Or(a.waiter, a.untold)
	if err != nil || w == nil {
		return func() bool { return false }, false, mapped(err)
	}
	return func() bool { return t.cancel(ino, w) }, a.waiter != nil, nil
}

// Test implements lock.Locks.
func (t *Table) Test(ctx context.Context, ino uint64, space lock.Space, l lock.Lock) (holder lock.Lock, held bool, err error) {
	holder, _, held, err = t.test(ctx, ino, space, l)
	return holder, held, mapped(err)
}

func (t *Table) test(ctx context.Context, ino uint64, space lock.Space, l lock.Lock) (holder lock.Lock, closing uint64, held bool, err error) {
	if err := l.Normalize(space); err != nil {
		return holder, 0, false, err
	}
	t.mu.Lock()
	var before []due
	if f := t.files[ino]; f != nil {
		before = f.dues()
	}
	t.mu.Unlock()
	err = t.cfg.KV.Peek(ctx, func(r cluster.Reader) error {
		holder, closing, held = lock.Lock{}, 0, false
		s, err := load(r, t.cfg.Gateway, ino, "", nil)
		if err == nil && s.crowd {
			var there map[uint64]bool
			if there, err = present(r); err == nil {
				err = s.dropMissing(there)
			}
		}
		if err != nil {
			return err
		}
		for _, u := range before {
			u.apply(s, u.spares)
		}
		if b := s.Blocker(space, &l); b != nil {
			holder, closing, held = *b, closeOf(s.FileLocks, b.Owner), true
		}
		return nil
	})
	return holder, closing, held, err
}
