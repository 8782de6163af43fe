package lock

import (
	"context"
	"sync"
	"sync/atomic"
)

// DefaultMaxLocks bounds held ranges and waiters of a process together: at
// about 150 bytes each, some 150 MB at the worst.
const DefaultMaxLocks = 1 << 20

// Manager holds all locks of a process. Files are named by number.
type Manager struct {
	max   int
	total atomic.Int64 // held and waiting; written under mu

	mu      sync.Mutex
	files   map[uint64]*file
	waiting map[Owner][]*waiter // in space Range
}

type file struct {
	held    [2][]Lock // by Space
	waiters []*waiter // in order of arrival
}

// waiter is a request that is not granted yet. done is called once, without
// Manager.mu.
type waiter struct {
	file  uint64
	space Space
	lock  Lock
	done  func(error)
}

// verdict is what a waiter is told once the mutex is released.
type verdict struct {
	w   *waiter
	err error
}

// New returns an empty Manager. max bounds locks and waiters; 0 means
// DefaultMaxLocks.
func New(max int) *Manager {
	if max <= 0 {
		max = DefaultMaxLocks
	}
	return &Manager{max: max, files: make(map[uint64]*file), waiting: make(map[Owner][]*waiter)}
}

// Count returns the number of held ranges and waiting requests.
func (m *Manager) Count() int { return int(m.total.Load()) }

// Test returns the lock that would keep l from being granted, the one with
// the lowest start if there are several (F_GETLK).
func (m *Manager) Test(ino uint64, s Space, l Lock) (holder Lock, held bool, err error) {
	if err := l.normalize(s); err != nil {
		return Lock{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[ino]; f != nil {
		if b := firstBlocker(f.held[s], &l); b != nil {
			return *b, true, nil
		}
	}
	return Lock{}, false, nil
}

// TryLock takes or converts a lock, or returns ErrWouldBlock, ErrNoLocks or
// ErrInvalid (F_SETLK, LOCK_NB).
func (m *Manager) TryLock(ino uint64, s Space, l Lock) error {
	_, err := m.request(ino, s, l, nil)
	return err
}

// Lock is TryLock that waits. It returns ErrDeadlock if waiting would never
// end (Range only), and ErrInterrupted when ctx ends first.
func (m *Manager) Lock(ctx context.Context, ino uint64, s Space, l Lock) error {
	result := make(chan error, 1)
	w, err := m.request(ino, s, l, func(err error) { result <- err })
	if err != nil || w == nil {
		return err
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	if m.cancel(w) {
		return ErrInterrupted
	}
	return <-result // resolved meanwhile
}

// LockFunc is Lock for callers that cannot wait (NLM_LOCK with block). If
// the lock is granted at once, waiting is false and done is never called.
// Else done is called exactly once, with nil when the lock is held, unless
// cancel returns true before.
func (m *Manager) LockFunc(ino uint64, s Space, l Lock, done func(error)) (cancel func() bool, waiting bool, err error) {
	w, err := m.request(ino, s, l, done)
	if err != nil || w == nil {
		return func() bool { return false }, false, err
	}
	return func() bool { return m.cancel(w) }, true, nil
}

// Unlock gives up a range, which need not be held (F_UNLCK, LOCK_UN). It
// fails with ErrNoLocks if a range would split and MaxLocks is reached.
func (m *Manager) Unlock(ino uint64, s Space, owner Owner, start, end uint64) error {
	l := Lock{Owner: owner, Start: start, End: end}
	if err := l.normalize(s); err != nil {
		return err
	}
	if m.total.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	f := m.files[ino]
	if f == nil {
		m.mu.Unlock()
		return nil
	}
	if m.splits(f.held[s], &l) && int(m.total.Load()) >= m.max {
		m.mu.Unlock()
		return ErrNoLocks
	}
	m.replace(f, s, unset(f.held[s], owner, l.Start, l.End))
	told := m.wake(ino, f)
	m.mu.Unlock()
	tell(told)
	return nil
}

// ReleaseOwner gives up all that owner holds in one file and space, at the
// close of a file. It costs nothing while there are no locks at all.
func (m *Manager) ReleaseOwner(ino uint64, s Space, owner Owner) {
	_ = m.Unlock(ino, s, owner, 0, EOF) // the whole range never splits
}

// ReleaseClient gives up all that a client holds, and ends its waiting
// requests with ErrInterrupted: a mount went away, an NFS client rebooted.
func (m *Manager) ReleaseClient(client string) {
	m.mu.Lock()
	var told []verdict
	for ino, f := range m.files {
		for s := range f.held {
			kept := f.held[s][:0]
			for _, h := range f.held[s] {
				if h.Owner.Client != client {
					kept = append(kept, h)
				}
			}
			gone := len(f.held[s]) - len(kept)
			clear(f.held[s][len(kept):])
			f.held[s] = kept
			m.total.Add(-int64(gone))
		}
		for _, w := range append([]*waiter(nil), f.waiters...) {
			if w.lock.Owner.Client == client {
				m.remove(f, w)
				told = append(told, verdict{w, ErrInterrupted})
			}
		}
		told = append(told, m.wake(ino, f)...)
	}
	m.mu.Unlock()
	tell(told)
}

// request grants l, or queues it if done is not nil; the waiter returned is
// nil if nothing waits.
func (m *Manager) request(ino uint64, s Space, l Lock, done func(error)) (*waiter, error) {
	if err := l.normalize(s); err != nil {
		return nil, err
	}
	m.mu.Lock()
	w, told, err := m.requestLocked(ino, s, l, done)
	m.mu.Unlock()
	tell(told)
	return w, err
}

func (m *Manager) requestLocked(ino uint64, s Space, l Lock, done func(error)) (w *waiter, told []verdict, err error) {
	// A conversion can split a range in three: two more than before.
	if int(m.total.Load())+2 > m.max {
		return nil, nil, ErrNoLocks
	}
	f := m.files[ino]
	if f == nil {
		f = &file{}
		m.files[ino] = f
	}
	if s == Flock {
		m.replace(f, s, unset(f.held[s], l.Owner, 0, EOF))
	}
	switch {
	case firstBlocker(f.held[s], &l) == nil:
		m.replace(f, s, set(f.held[s], l))
	case done == nil:
		err = ErrWouldBlock
	case s == Range && m.deadlocks(l.Owner, f, &l):
		err = ErrDeadlock
	default:
		w = &waiter{file: ino, space: s, lock: l, done: done}
		f.waiters = append(f.waiters, w)
		m.total.Add(1)
		if s == Range {
			m.waiting[l.Owner] = append(m.waiting[l.Owner], w)
		}
	}
	return w, m.wake(ino, f), err
}

// cancel takes w out of its queue and tells whether it was still there.
func (m *Manager) cancel(w *waiter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[w.file]
	if f == nil || !m.remove(f, w) {
		return false
	}
	m.drop(w.file, f)
	return true
}

// replace stores the held locks of one space and keeps count.
func (m *Manager) replace(f *file, s Space, held []Lock) {
	// held may share its array with the old slice: count by length only.
	m.total.Add(int64(len(held) - len(f.held[s])))
	f.held[s] = held
}

func (m *Manager) splits(held []Lock, l *Lock) bool {
	for i := range held {
		if h := &held[i]; h.Owner == l.Owner && h.Start < l.Start && h.End > l.End {
			return true
		}
	}
	return false
}

// wake grants what can be granted in f, then ends those whose waiting came
// to close a cycle. It drops f if nothing is left.
func (m *Manager) wake(ino uint64, f *file) (told []verdict) {
	for i := 0; i < len(f.waiters); {
		w := f.waiters[i]
		if firstBlocker(f.held[w.space], &w.lock) != nil {
			i++
			continue
		}
		m.remove(f, w)
		m.replace(f, w.space, set(f.held[w.space], w.lock))
		told = append(told, verdict{w, nil})
		i = 0 // a conversion to shared may let an earlier one through
	}
	for i := 0; i < len(f.waiters); {
		w := f.waiters[i]
		if w.space == Range && m.deadlocks(w.lock.Owner, f, &w.lock) {
			m.remove(f, w)
			told = append(told, verdict{w, ErrDeadlock})
			continue
		}
		i++
	}
	m.drop(ino, f)
	return told
}

// deadlocks tells whether an owner whose request l waits in f would wait for
// itself: some holder that blocks l waits, directly or not, for owner.
func (m *Manager) deadlocks(owner Owner, f *file, l *Lock) bool {
	seen := make(map[Owner]bool)
	var blocked func(f *file, l *Lock) bool
	blocked = func(f *file, l *Lock) bool {
		held := f.held[Range]
		for i := range held {
			h := held[i].Owner
			if !held[i].blocks(l) || seen[h] {
				continue
			}
			if h == owner {
				return true
			}
			seen[h] = true
			for _, w := range m.waiting[h] {
				if blocked(m.files[w.file], &w.lock) {
					return true
				}
			}
		}
		return false
	}
	return blocked(f, l)
}

// remove takes w out of the queues and tells whether it was there.
func (m *Manager) remove(f *file, w *waiter) bool {
	i := index(f.waiters, w)
	if i < 0 {
		return false
	}
	f.waiters = append(f.waiters[:i:i], f.waiters[i+1:]...)
	m.total.Add(-1)
	if w.space == Range {
		own := m.waiting[w.lock.Owner]
		if j := index(own, w); j >= 0 {
			own = append(own[:j:j], own[j+1:]...)
		}
		if len(own) == 0 {
			delete(m.waiting, w.lock.Owner)
		} else {
			m.waiting[w.lock.Owner] = own
		}
	}
	return true
}

func (m *Manager) drop(ino uint64, f *file) {
	if len(f.held[Range])+len(f.held[Flock])+len(f.waiters) == 0 {
		delete(m.files, ino)
	}
}

func index(ws []*waiter, w *waiter) int {
	for i := range ws {
		if ws[i] == w {
			return i
		}
	}
	return -1
}

func tell(told []verdict) {
	for _, v := range told {
		v.w.done(v.err)
	}
}
