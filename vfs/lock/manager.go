package lock

import (
	"context"
	"slices"
	"sync"
)

// Manager holds all locks of a process that knows of all. It implements Locks.
type Manager struct {
	mu      sync.Mutex
	files   map[uint64]*File
	tally   *Tally
	grace   int                // BeginGrace without EndGrace
	waiters map[uint64]*waiter // by ticket
	ticket  uint64             // the last one
	waiting map[Owner][]uint64 // files, one for each request in space Range
	closing map[closer]*closing
	soons   map[string]int     // requests that wait for closes, by Owner.Client
	journal map[string]Journal // by Owner.Client
}

// waiter is a request that is not granted yet, or was granted to a remote client, which may
// not know it. done is called once, without Manager.mu.
type waiter struct {
	file   uint64
	ticket uint64 // 0: it was granted at once
	done   func(error)
	grant  *grant
}

func (w *waiter) waits() bool { return w != nil && w.ticket != 0 }

// verdict is what a waiter gets once the mutex is released.
type verdict struct {
	w   *waiter
	err error
}

// New returns an empty Manager. max bounds locks and waiters; 0 means
// DefaultMaxLocks.
func New(max int) *Manager {
	return &Manager{files: make(map[uint64]*File), tally: NewTally(max),
		waiters: make(map[uint64]*waiter), waiting: make(map[Owner][]uint64),
		closing: make(map[closer]*closing), soons: make(map[string]int), journal: make(map[string]Journal)}
}

// Count implements Locks.
func (m *Manager) Count() int { return m.tally.Total() }

// ClientCount implements Locks.
func (m *Manager) ClientCount(client string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tally.Of(client)
}

// SetAccount implements Locks.
func (m *Manager) SetAccount(client, account string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tally.SetAccount(client, account)
}

// Test implements Locks.
func (m *Manager) Test(_ context.Context, ino uint64, s Space, l Lock) (holder Lock, held bool, err error) {
	if err := l.Normalize(s); err != nil {
		return Lock{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[ino]; f != nil {
		if b := f.Blocker(s, &l); b != nil {
			return *b, true, nil
		}
	}
	return Lock{}, false, nil
}

// TryLock implements Locks.
func (m *Manager) TryLock(_ context.Context, ino uint64, s Space, l Lock) error {
	_, err := m.request(ino, s, l, nil)
	return err
}

// Reclaim implements Locks: it is TryLock during a grace period.
func (m *Manager) Reclaim(_ context.Context, ino uint64, s Space, l Lock) error {
	if err := l.Normalize(s); err != nil {
		return err
	}
	m.mu.Lock()
	_, told, err := m.grantLocked(ino, s, l, nil)
	m.mu.Unlock()
	tell(told)
	return err
}

// Lock implements Locks.
func (m *Manager) Lock(ctx context.Context, ino uint64, s Space, l Lock) error {
	result := make(chan error, 1)
	w, err := m.request(ino, s, l, func(err error) { result <- err })
	if err != nil || !w.waits() {
		return err
	}
	return Await(ctx, result, func() bool { return m.cancel(w) })
}

// LockFunc implements Locks.
func (m *Manager) LockFunc(_ context.Context, ino uint64, s Space, l Lock, done func(error)) (cancel func() bool, waiting bool, err error) {
	w, err := m.request(ino, s, l, done)
	if err != nil || w == nil {
		return func() bool { return false }, false, err
	}
	return func() bool { return m.cancel(w) }, w.waits(), nil
}

// Unlock implements Locks.
func (m *Manager) Unlock(_ context.Context, ino uint64, s Space, l Lock) error {
	if err := l.Normalize(s); err != nil {
		return err
	}
	if m.Count() == 0 {
		return nil
	}
	m.mu.Lock()
	f := m.files[ino]
	if f == nil {
		m.mu.Unlock()
		return nil
	}
	if f.Splits(s, &l) && m.tally.Full(l.Owner.Client, 1) {
		m.mu.Unlock()
		return ErrNoLocks
	}
	m.change(ino, f, s, l.Owner.Client, func() { f.Unset(s, l.Owner, l.Start, l.End) })
	told := m.wake(ino, f)
	m.mu.Unlock()
	tell(told)
	return nil
}

// ReleaseOwner implements Locks.
func (m *Manager) ReleaseOwner(ino uint64, s Space, owner Owner) {
	_ = m.Unlock(context.Background(), ino, s, Lock{Owner: owner, End: EOF}) // the whole range never splits
}

// ReleaseClient implements Locks.
func (m *Manager) ReleaseClient(client string) {
	_ = m.Rebooted(context.Background(), client, 0) // never fails
}

// Rebooted implements Locks.
func (m *Manager) Rebooted(_ context.Context, client string, keep uint32) error {
	m.mu.Lock()
	var told []verdict
	var changed []uint64
	for ino, f := range m.files {
		had := f.Len()
		for s := range f.Held {
			before := len(f.Held[s])
			if !f.UnsetClient(Space(s), client, keep) {
				continue
			}
			m.tally.Add(client, len(f.Held[s])-before)
			if j := m.journal[client]; j != nil {
				j(ino, Space(s), f.Of(Space(s), client))
			}
		}
		for _, w := range append([]Waiter(nil), f.Waiting...) {
			if w.Lock.Before(client, keep) {
				told = append(told, verdict{m.remove(ino, f, w.Ticket), ErrInterrupted})
			}
		}
		if f.Len() < had {
			changed = append(changed, ino)
		}
	}
	// Nobody may be told of a deadlock that is over as soon as the client is gone everywhere.
	slices.Sort(changed)
	for _, ino := range changed {
		told = append(told, m.wake(ino, m.files[ino])...)
	}
	for k, c := range m.closing {
		if k.owner.Client == client {
			close(c.ended)
			delete(m.closing, k)
		}
	}
	m.mu.Unlock()
	tell(told)
	return nil
}

// request grants l, or queues it if done is not nil; the waiter returned is
// nil if nothing waits, nor can be given up.
func (m *Manager) request(ino uint64, s Space, l Lock, done func(error)) (*waiter, error) {
	if err := l.Normalize(s); err != nil {
		return nil, err
	}
	m.mu.Lock()
	w, told, err := m.requestLocked(ino, s, l, done)
	m.mu.Unlock()
	tell(told)
	return w, err
}

func (m *Manager) requestLocked(ino uint64, s Space, l Lock, done func(error)) (w *waiter, told []verdict, err error) {
	switch {
	case !m.inGrace(s):
		return m.grantLocked(ino, s, l, done)
	case done == nil:
		return nil, nil, ErrGrace
	case m.tally.Full(l.Owner.Client, 1):
		return nil, nil, ErrNoLocks
	}
	return m.enqueue(ino, m.fileOf(ino), s, l, done), nil, nil
}

// grantLocked is requestLocked without regard to a grace period.
func (m *Manager) grantLocked(ino uint64, s Space, l Lock, done func(error)) (w *waiter, told []verdict, err error) {
	f, granted := m.fileOf(ino), false
	// A conversion can split a range in three: two more than before.
	if m.tally.Full(l.Owner.Client, 2) && !f.Replaces(s, l.Owner) {
		m.drop(ino, f)
		return nil, nil, ErrNoLocks
	}
	var before []Lock
	unaware := done != nil && l.Owner.Remote()
	if unaware {
		before = f.Owned(s, &l)
	}
	m.change(ino, f, s, l.Owner.Client, func() { granted = f.Try(s, l) })
	switch {
	case granted && unaware:
		w = &waiter{file: ino, grant: &grant{s, l, before}}
	case granted:
	case done == nil:
		err = ErrWouldBlock
	case s == Range && m.deadlocks(f, &l):
		err = ErrDeadlock
	default:
		w = m.enqueue(ino, f, s, l, done)
	}
	return w, m.wake(ino, f), err
}

// fileOf returns the locks of a file; the caller drops what stays empty.
func (m *Manager) fileOf(ino uint64) *File {
	f := m.files[ino]
	if f == nil {
		f = &File{}
		m.files[ino] = f
	}
	return f
}

func (m *Manager) enqueue(ino uint64, f *File, s Space, l Lock, done func(error)) *waiter {
	m.ticket++
	w := &waiter{file: ino, ticket: m.ticket, done: done}
	m.waiters[w.ticket] = w
	f.Waiting = append(f.Waiting, Waiter{s, l, w.ticket})
	m.tally.Add(l.Owner.Client, 1)
	if s == Range {
		m.waiting[l.Owner] = append(m.waiting[l.Owner], ino)
	}
	return w
}

// cancel takes w out of its queue and reports whether it was still there. What a remote
// client was granted instead is undone.
func (m *Manager) cancel(w *waiter) (waited bool) {
	m.mu.Lock()
	var told []verdict
	if f := m.files[w.file]; f != nil {
		if waited = m.remove(w.file, f, w.ticket) != nil; waited {
			m.drop(w.file, f)
		} else if g := w.grant; g != nil {
			w.grant = nil
			m.change(w.file, f, g.space, g.lock.Owner.Client, func() { g.undo(f) })
			told = m.wake(w.file, f)
		}
	}
	m.mu.Unlock()
	tell(told)
	return waited
}

// change runs fn, which changes what a client holds in a space, keeps count, and records
// it.
func (m *Manager) change(ino uint64, f *File, s Space, client string, fn func()) {
	before := len(f.Held[s])
	fn()
	m.tally.Add(client, len(f.Held[s])-before)
	if j := m.journal[client]; j != nil {
		j(ino, s, f.Of(s, client))
	}
}

// wake grants what can be granted in f, then ends those whose waiting came
// to close a cycle. It drops f if nothing is left.
func (m *Manager) wake(ino uint64, f *File) (told []verdict) {
	for {
		had := f.Len()
		w, before, ok := f.GrantNext(m.inGrace)
		if !ok {
			break
		}
		client := w.Lock.Owner.Client
		m.tally.Add(client, f.Len()-had+1) // forget counts the waiter
		if j := m.journal[client]; j != nil {
			j(ino, w.Space, f.Of(w.Space, client))
		}
		kept := m.forget(ino, &w)
		if w.Lock.Owner.Remote() {
			kept.grant = &grant{w.Space, w.Lock, before}
		}
		told = append(told, verdict{kept, nil})
	}
	for i := 0; i < len(f.Waiting); {
		if w := &f.Waiting[i]; w.Space == Range && m.deadlocks(f, &w.Lock) {
			told = append(told, verdict{m.remove(ino, f, w.Ticket), ErrDeadlock})
			continue
		}
		i++
	}
	m.drop(ino, f)
	return told
}

// deadlocks reports whether an owner whose request l waits in f would wait for itself.
func (m *Manager) deadlocks(f *File, l *Lock) bool {
	found, _ := f.Deadlocks(l, func(owners []Owner) (list []*File, _ error) {
		listed := make(map[uint64]bool)
		for _, o := range owners {
			for _, ino := range m.waiting[o] {
				if !listed[ino] {
					listed[ino] = true
					list = append(list, m.files[ino])
				}
			}
		}
		return list, nil
	})
	return found
}

// remove takes a waiter out of the queues; nil if it was not there.
func (m *Manager) remove(ino uint64, f *File, ticket uint64) *waiter {
	w, ok := f.Remove(ticket)
	if !ok {
		return nil
	}
	return m.forget(ino, &w)
}

// forget ends what is kept of one that is not in its File's queue any more.
func (m *Manager) forget(ino uint64, w *Waiter) *waiter {
	owner := w.Lock.Owner
	m.tally.Add(owner.Client, -1)
	if w.Space == Range {
		own := m.waiting[owner]
		for i, of := range own {
			if of == ino {
				own = append(own[:i:i], own[i+1:]...)
				break
			}
		}
		if len(own) == 0 {
			delete(m.waiting, owner)
		} else {
			m.waiting[owner] = own
		}
	}
	kept := m.waiters[w.Ticket]
	delete(m.waiters, w.Ticket)
	return kept
}

func (m *Manager) drop(ino uint64, f *File) {
	if f.Len() == 0 {
		delete(m.files, ino)
	}
}

func tell(told []verdict) {
	for _, v := range told {
		v.w.done(v.err)
	}
}

// SetJournal implements Locks.
func (m *Manager) SetJournal(client string, j Journal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j == nil {
		delete(m.journal, client)
		return
	}
	m.journal[client] = j
}
