package lock

import (
	"context"
	"sync"
	"sync/atomic"
)

// DefaultMaxLocks bounds held ranges and waiters of a process together: at
// about 150 bytes each, some 150 MB at the worst.
const DefaultMaxLocks = 1 << 20

// DefaultMaxClientLocks bounds those of one client, so that it leaves some to
// the others. Databases hold a few per file, and mail servers one.
const DefaultMaxClientLocks = 1 << 18

// minClientLocks are what every client may have as long as there are any: with
// more, a client has no more than is still free, so that those who come later
// find something, however many have their part.
const minClientLocks = 1 << 10

// Manager holds all locks of a process. Files are named by number.
type Manager struct {
	max       int
	maxClient int
	total     atomic.Int64 // held and waiting; written under mu

	mu      sync.Mutex
	files   map[uint64]*file
	clients map[string]int      // held and waiting by Owner.Client
	account map[string]string   // of clients that have one part together
	parts   map[string]int      // held and waiting by account, or else by client
	grace   int                 // BeginGrace without EndGrace
	waiting map[Owner][]*waiter // in space Range
	closing map[Owner]*closing
	journal map[string]Journal // by Owner.Client
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

// verdict is what a waiter gets once the mutex is released.
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
	return &Manager{max: max, maxClient: min(max, DefaultMaxClientLocks),
		files: make(map[uint64]*file), clients: make(map[string]int),
		account: make(map[string]string), parts: make(map[string]int), waiting: make(map[Owner][]*waiter),
		closing: make(map[Owner]*closing), journal: make(map[string]Journal)}
}

// Count returns the number of held ranges and waiting requests.
func (m *Manager) Count() int { return int(m.total.Load()) }

// ClientCount returns how many of them are a client's.
func (m *Manager) ClientCount(client string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients[client]
}

// SetAccount makes a client share one part of the locks with all others of an
// account ("": no account). It is set before the client's first lock and until
// after its last.
func (m *Manager) SetAccount(client, account string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if account == "" {
		delete(m.account, client)
	} else {
		m.account[client] = account
	}
}

func (m *Manager) partOf(client string) string {
	if account, ok := m.account[client]; ok {
		return account
	}
	return client
}

// count notes n more locks and waiters of a client.
func (m *Manager) count(client string, n int) {
	m.total.Add(int64(n))
	if m.clients[client] += n; m.clients[client] == 0 {
		delete(m.clients, client)
	}
	part := m.partOf(client)
	if m.parts[part] += n; m.parts[part] == 0 {
		delete(m.parts, part)
	}
}

// full reports whether a client may not have n more.
func (m *Manager) full(client string, n int) bool {
	free, part := m.max-int(m.total.Load()), m.parts[m.partOf(client)]+n
	return n > free || part > min(m.maxClient, max(free, minClientLocks))
}

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

// Reclaim is TryLock during a grace period, for a lock that was held before
// the restart.
func (m *Manager) Reclaim(ino uint64, s Space, l Lock) error {
	if err := l.normalize(s); err != nil {
		return err
	}
	m.mu.Lock()
	_, told, err := m.grantLocked(ino, s, l, nil)
	m.mu.Unlock()
	tell(told)
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
	return <-result // resolved concurrently
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
	if m.splits(f.held[s], &l) && m.full(owner.Client, 1) {
		m.mu.Unlock()
		return ErrNoLocks
	}
	m.replace(ino, f, s, owner.Client, unset(f.held[s], owner, l.Start, l.End))
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
			m.count(client, -gone)
			if gone > 0 {
				m.record(ino, Space(s), client, kept)
			}
		}
		for _, w := range append([]*waiter(nil), f.waiters...) {
			if w.lock.Owner.Client == client {
				m.remove(f, w)
				told = append(told, verdict{w, ErrInterrupted})
			}
		}
		told = append(told, m.wake(ino, f)...)
	}
	for owner, c := range m.closing {
		if owner.Client == client {
			close(c.ended)
			delete(m.closing, owner)
		}
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
	switch {
	case !m.inGrace(s):
		return m.grantLocked(ino, s, l, done)
	case done == nil:
		return nil, nil, ErrGrace
	case m.full(l.Owner.Client, 1):
		return nil, nil, ErrNoLocks
	}
	return m.enqueue(ino, m.fileOf(ino), s, l, done), nil, nil
}

// grantLocked is requestLocked without regard to a grace period.
func (m *Manager) grantLocked(ino uint64, s Space, l Lock, done func(error)) (w *waiter, told []verdict, err error) {
	// A conversion can split a range in three: two more than before.
	if m.full(l.Owner.Client, 2) {
		return nil, nil, ErrNoLocks
	}
	f := m.fileOf(ino)
	if s == Flock {
		m.replace(ino, f, s, l.Owner.Client, unset(f.held[s], l.Owner, 0, EOF))
	}
	switch {
	case firstBlocker(f.held[s], &l) == nil:
		m.replace(ino, f, s, l.Owner.Client, set(f.held[s], l))
	case done == nil:
		err = ErrWouldBlock
	case s == Range && m.deadlocks(l.Owner, f, &l):
		err = ErrDeadlock
	default:
		w = m.enqueue(ino, f, s, l, done)
	}
	return w, m.wake(ino, f), err
}

// fileOf returns the locks of a file; the caller drops what stays empty.
func (m *Manager) fileOf(ino uint64) *file {
	f := m.files[ino]
	if f == nil {
		f = &file{}
		m.files[ino] = f
	}
	return f
}

func (m *Manager) enqueue(ino uint64, f *file, s Space, l Lock, done func(error)) *waiter {
	w := &waiter{file: ino, space: s, lock: l, done: done}
	f.waiters = append(f.waiters, w)
	m.count(l.Owner.Client, 1)
	if s == Range {
		m.waiting[l.Owner] = append(m.waiting[l.Owner], w)
	}
	return w
}

// cancel takes w out of its queue and reports whether it was still there.
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

// replace stores the held locks of one space, of which those of client
// changed, and keeps count.
func (m *Manager) replace(ino uint64, f *file, s Space, client string, held []Lock) {
	// held may share its array with the old slice: count by length only.
	m.count(client, len(held)-len(f.held[s]))
	f.held[s] = held
	m.record(ino, s, client, held)
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
		if m.inGrace(w.space) || firstBlocker(f.held[w.space], &w.lock) != nil {
			i++
			continue
		}
		m.remove(f, w)
		m.replace(ino, f, w.space, w.lock.Owner.Client, set(f.held[w.space], w.lock))
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

// deadlocks reports whether an owner whose request l waits in f would wait for
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

// remove takes w out of the queues and reports whether it was there.
func (m *Manager) remove(f *file, w *waiter) bool {
	i := index(f.waiters, w)
	if i < 0 {
		return false
	}
	f.waiters = append(f.waiters[:i:i], f.waiters[i+1:]...)
	m.count(w.lock.Owner.Client, -1)
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

// SetJournal sets the Journal of a client that holds no locks yet; nil ends it.
func (m *Manager) SetJournal(client string, j Journal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j == nil {
		delete(m.journal, client)
		return
	}
	m.journal[client] = j
}

// record gives the client's Journal what it holds among held.
func (m *Manager) record(ino uint64, s Space, client string, held []Lock) {
	j := m.journal[client]
	if j == nil {
		return
	}
	own := make([]Lock, 0, len(held))
	for i := range held {
		if held[i].Owner.Client == client {
			own = append(own, held[i])
		}
	}
	j(ino, s, own)
}
