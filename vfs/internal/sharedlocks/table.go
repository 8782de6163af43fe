package sharedlocks

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// endTimeout bounds how long a close, or an interrupted program, waits for the store to
// know what is given up. After that it is late.
const endTimeout = 5 * time.Second

// maxLate bounds the ranges of a file that programs unlocked and the store does not know of.
// Whole files, of which there are as many as locks, are beside that.
const maxLate = 256

// Config of a Table.
type Config struct {
	KV      cluster.KV // fenced: what commits, or is read, is of a gateway that is there
	Gateway uint64     // this one
	// Doubt is called when a transaction ended without an answer: settled is to be called
	// when none that began before can commit any more.
	Doubt func(settled func())
	Log   *slog.Logger
}

// Table implements lock.Locks over a store.
type Table struct {
	cfg  Config
	ctx  context.Context // of the poller
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	files    map[uint64]*file
	busy     map[uint64]*file // those that the poller is to look at
	tally    *lock.Tally
	journals map[string]lock.Journal
	closings map[uint64]time.Time // until when somebody waits for a close, by LockHolder.Closing
	polling  bool
	nudge    chan struct{}
	recent   time.Time // when one began to wait, or was granted
	failing  bool      // of the poller
}

// New returns a Table. To be closed.
func New(cfg Config) *Table {
	ctx, stop := context.WithCancel(cluster.Relaxed(context.Background()))
	return &Table{cfg: cfg, ctx: ctx, stop: stop, files: make(map[uint64]*file), busy: make(map[uint64]*file),
		tally: lock.NewTally(0), journals: make(map[string]lock.Journal), closings: make(map[uint64]time.Time),
		nudge: make(chan struct{}, 1)}
}

// Close ends what runs in the background. What is held ends with the gateway.
func (t *Table) Close() {
	t.stop()
	t.mu.Lock() // who is about to begin to poll has begun, or sees that
	t.mu.Unlock()
	t.wait.Wait()
}

// change is one transaction.
type change struct {
	// owner, if set, is who asks: what is late of it comes before, and not again after.
	owner *lock.Owner
	// reclaims reports whether what the owner's client has is kept, whoever vouched for it.
	reclaims bool
	do       func(s *state) error
}

// run has a change commit, after what is late, and returns what waiters of this process
// get. By who has the turn. After an error that is the store's it is not known whether it
// did.
func (t *Table) run(ctx context.Context, f *file, c change) (list []verdict, err error) {
	t.mu.Lock()
	before := slices.Clone(f.late)
	t.mu.Unlock()
	keep := ""
	if c.reclaims {
		keep = c.owner.Client
	}
	var s *state
	err = t.cfg.KV.Update(ctx, func(x cluster.Txn) (err error) {
		if s, err = load(x, t.cfg.Gateway, f.ino, keep); err != nil {
			return err
		}
		s.learn()
		for _, u := range before {
			u.apply(s)
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
	for _, u := range before {
		u.applied = true
	}
	f.late = slices.DeleteFunc(f.late, func(u *late) bool {
		return u.applied && (f.doubts == 0 || !u.whole() || c.owner != nil && *c.owner == u.owner)
	})
	f.stale = s.more || f.stale && f.doubts > 0
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

// doubt notes that what a transaction was about may come later. Under mu.
func (t *Table) doubt(f *file, owner *lock.Owner) {
	f.doubts++
	if owner != nil {
		if f.unsure == nil {
			f.unsure = make(map[lock.Owner]bool)
		}
		f.unsure[*owner] = true
	}
	t.cfg.Doubt(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if f.doubts--; f.doubts == 0 {
			f.unsure, f.stale = nil, true
		}
		t.settle(f)
	})
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

// asked is what became of a request.
type asked struct {
	granted bool
	closing uint64 // of who is in the way
	waiter  *waiter
}

// request has a lock granted or, with done, queued.
func (t *Table) request(ctx context.Context, ino uint64, space lock.Space, l lock.Lock, reclaims bool, done func(error)) (a asked, err error) {
	if err := l.Normalize(space); err != nil {
		return a, err
	}
	f, err := t.enter(ctx, ino)
	if err != nil {
		return a, err
	}
	t.mu.Lock()
	full := t.tally.Full(l.Owner.Client, 2)
	if _, known := f.owners[l.Owner]; !full && !known {
		f.owners[l.Owner] = 0
	}
	t.mu.Unlock()
	if full {
		t.leave(f)
		return a, lock.ErrNoLocks
	}
	w := &waiter{ticket: ticket(), space: space, lock: l, done: done}
	list, err := t.run(ctx, f, change{&l.Owner, reclaims, func(s *state) error {
		a = asked{}
		return w.request(s, &a)
	}})
	t.mu.Lock()
	switch {
	case err == nil && a.waiter != nil:
		f.waiters[w.ticket] = w
		t.recent = time.Now()
	case err != nil && done != nil && unknown(err): // it may wait, for nobody
		f.late = append(f.late, &late{space: space, owner: l.Owner, start: l.Start, end: l.End, ticket: w.ticket})
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

// request asks for the lock within a transaction.
func (w *waiter) request(s *state, a *asked) error {
	o := w.lock.Owner
	s.opened(o)
	w.fresh = w.space == lock.Flock || !slices.ContainsFunc(s.Held[w.space], func(h lock.Lock) bool {
		return h.Owner == o && h.Start <= w.lock.End && w.lock.Start <= h.End
	})
	if h, ok := s.Holders[o]; ok { // reclaimed: all that it has
		h.Gateway = s.me
		s.Holders[o] = h
	}
	if s.Len()+2 > maxFileLocks { // a conversion can split a range in three
		return errTooMany
	}
	if a.granted = s.take(w.space, w.lock); a.granted {
		return nil
	}
	if w.done == nil {
		a.closing = s.Holders[s.Blocker(w.space, &w.lock).Owner].Closing
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
	_, err := t.request(ctx, ino, s, l, false, nil)
	return mapped(err)
}

// Reclaim implements lock.Locks: what the owner has in the file is this gateway's from then
// on, and what others took meanwhile stays theirs.
func (t *Table) Reclaim(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) error {
	_, err := t.request(ctx, ino, s, l, true, nil)
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
	a, err := t.request(ctx, ino, s, l, false, done)
	if err != nil || a.waiter == nil {
		return func() bool { return false }, false, mapped(err)
	}
	return func() bool { return t.cancel(ino, a.waiter) }, true, nil
}

// cancel withdraws a request and reports whether it was still waiting. If the store does not
// say, it is withdrawn late.
func (t *Table) cancel(ino uint64, w *waiter) bool {
	ctx, stop := context.WithTimeout(t.ctx, endTimeout)
	defer stop()
	withdrawn := false
	f, err := t.enter(ctx, ino)
	if err == nil {
		var list []verdict
		list, err = t.run(ctx, f, change{do: func(s *state) error {
			if withdrawn = s.withdraw(w.ticket); withdrawn {
				s.ended[w.ticket] = nil
			}
			return nil
		}})
		defer tell(list)
		defer t.leave(f)
	}
	if err == nil {
		return withdrawn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f = t.files[ino]
	if f == nil || f.waiters[w.ticket] == nil {
		return false
	}
	t.giveUp(f, w)
	t.settle(f)
	return true
}

// giveUp has a request withdrawn late, and what was granted for it given up, unless that
// would take more. Under mu.
func (t *Table) giveUp(f *file, w *waiter) {
	delete(f.waiters, w.ticket)
	f.late = append(f.late, &late{space: w.space, owner: w.lock.Owner, start: w.lock.Start, end: w.lock.End, ticket: w.ticket, fresh: w.fresh})
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
	var before []*late
	if f := t.files[ino]; f != nil {
		before = slices.Clone(f.late)
	}
	t.mu.Unlock()
	err = t.cfg.KV.Peek(ctx, func(r cluster.Reader) error {
		holder, closing, held = lock.Lock{}, 0, false
		s, err := load(r, t.cfg.Gateway, ino, "")
		if err != nil {
			return err
		}
		for _, u := range before {
			u.apply(s)
		}
		if b := s.Blocker(space, &l); b != nil {
			holder, closing, held = *b, s.Holders[b.Owner].Closing, true
		}
		return nil
	})
	return holder, closing, held, err
}

// Unlock implements lock.Locks. If the store does not answer, it is unlocked late.
func (t *Table) Unlock(ctx context.Context, ino uint64, s lock.Space, owner lock.Owner, start, end uint64) error {
	l := lock.Lock{Owner: owner, Start: start, End: end}
	if err := l.Normalize(s); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	u := &late{space: s, owner: owner, start: l.Start, end: l.End}
	t.mu.Lock()
	if !t.knows(ino, owner) {
		t.mu.Unlock()
		return nil
	}
	f := t.files[ino]
	if u.whole() {
		f.late = slices.DeleteFunc(f.late, func(o *late) bool { return o.ticket == 0 && o.owner == owner && o.space == s })
	} else if len(f.late) >= maxLate {
		t.mu.Unlock()
		return lock.ErrNoLocks
	}
	full := t.tally.Full(owner.Client, 1)
	f.late = append(f.late, u)
	t.mu.Unlock()
	err := t.update(ctx, ino, change{do: func(state *state) error {
		if full && !u.whole() && state.Splits(s, owner, l.Start, l.End) {
			return lock.ErrNoLocks
		}
		return nil
	}})
	if err == nil || !lasting(err) { // else the poller tries again
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.late = slices.DeleteFunc(f.late, func(o *late) bool { return o == u })
	t.settle(f)
	return mapped(err)
}

// ReleaseOwner implements lock.Locks.
func (t *Table) ReleaseOwner(ino uint64, s lock.Space, owner lock.Owner) {
	if err := t.Unlock(t.ctx, ino, s, owner, 0, lock.EOF); err != nil {
		t.cfg.Log.Error("locks cannot be given up", "inode", ino, "err", err)
	}
}

// ReleaseClient implements lock.Locks.
func (t *Table) ReleaseClient(client string) {
	var list []verdict
	var files []*file
	t.mu.Lock()
	for _, f := range t.files {
		mine := false
		for _, w := range f.waiters {
			if w.lock.Owner.Client == client {
				t.giveUp(f, w)
				list = append(list, verdict{w, lock.ErrInterrupted})
				mine = true
			}
		}
		for o := range f.owners {
			if o.Client == client {
				f.late = append(f.late, &late{owner: o, space: lock.Range, end: lock.EOF}, &late{owner: o, space: lock.Flock, end: lock.EOF})
				mine = true
			}
		}
		if mine {
			files = append(files, f)
		}
	}
	for _, f := range files {
		t.settle(f)
	}
	t.mu.Unlock()
	tell(list)
	ctx, stop := context.WithTimeout(t.ctx, endTimeout)
	defer stop()
	for _, f := range files {
		if t.update(ctx, f.ino, change{}) != nil {
			return // the poller goes on
		}
	}
}

// Count implements lock.Locks: what this process has.
func (t *Table) Count() int { return t.tally.Total() }

// ClientCount implements lock.Locks.
func (t *Table) ClientCount(client string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tally.Of(client)
}

// SetAccount implements lock.Locks.
func (t *Table) SetAccount(client, account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.SetAccount(client, account)
}

// SetJournal implements lock.Locks.
func (t *Table) SetJournal(client string, j lock.Journal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j == nil {
		delete(t.journals, client)
		return
	}
	t.journals[client] = j
}

// BeginGrace implements lock.Locks: nobody has to take back what the store has.
func (t *Table) BeginGrace() {}

// EndGrace implements lock.Locks.
func (t *Table) EndGrace() {}

// InGrace implements lock.Locks.
func (t *Table) InGrace() bool { return false }

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
			for _, g := range gateways(f) {
				if !there[g] {
					there[g] = false // that is known
				}
			}
			s := &state{FileLocks: f, there: there}
			if err := s.dropDead(""); err != nil {
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
