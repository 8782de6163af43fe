package lock

import (
	"context"
	"errors"
	"time"
)

// closingWait bounds how long those who conflict with a lock wait for the end of
// a close. It takes milliseconds; a copy of the descriptor may stay open for
// ever.
const closingWait = 100 * time.Millisecond

// Closing notes that one descriptor of owner, an open file, was closed, maybe
// its last: its locks may be gone for programs, though nobody said so yet.
// Closed must follow when it is known. ReleaseOwner does not end it.
func (m *Manager) Closing(owner Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.closing[owner]; c != nil {
		c.until = time.Time{}
	} else {
		m.closing[owner] = &closing{ended: make(chan struct{})}
	}
}

// Closed ends Closing, which need not have been called: the locks of owner
// are released, or it is in use again.
func (m *Manager) Closed(owner Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.closing[owner]; c != nil {
		close(c.ended)
		delete(m.closing, owner)
	}
}

// TryLockSoon is TryLock that gives the owner of a lock in the way a moment to
// be closed, if it may be about to.
func (m *Manager) TryLockSoon(ctx context.Context, ino uint64, s Space, l Lock) (err error) {
	m.soon(ctx, ino, s, l, func() bool {
		err = m.TryLock(ino, s, l)
		return !errors.Is(err, ErrWouldBlock)
	})
	return err
}

// TestSoon is Test that does the same.
func (m *Manager) TestSoon(ctx context.Context, ino uint64, s Space, l Lock) (holder Lock, held bool, err error) {
	m.soon(ctx, ino, s, l, func() bool {
		holder, held, err = m.Test(ino, s, l)
		return !held
	})
	return holder, held, err
}

// soon calls try until it returns true, again after each close in the way,
// within closingWait.
func (m *Manager) soon(ctx context.Context, ino uint64, s Space, l Lock, try func() bool) {
	if try() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closingWait)
	defer cancel()
	for {
		ended, wait, blocked := m.closingBlocker(ino, s, l)
		if blocked && wait <= 0 {
			return
		}
		if blocked {
			select {
			case <-ended:
			case <-time.After(wait):
				return
			case <-ctx.Done():
				return
			}
		}
		if try() {
			return
		}
	}
}

// closingBlocker reports whether a lock is in the way of l, how long to wait for
// the end of its owner's Closing, 0 if it stays, and what is closed then.
func (m *Manager) closingBlocker(ino uint64, s Space, l Lock) (ended <-chan struct{}, wait time.Duration, blocked bool) {
	if m.InGrace() || l.normalize(s) != nil {
		return nil, 0, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[ino]
	if f == nil {
		return nil, 0, false
	}
	b := firstBlocker(f.held[s], &l)
	if b == nil {
		return nil, 0, false
	}
	c := m.closing[b.Owner]
	if c == nil {
		return nil, 0, true
	}
	if c.until.IsZero() {
		c.until = time.Now().Add(closingWait)
	}
	return c.ended, time.Until(c.until), true
}
