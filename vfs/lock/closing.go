package lock

import (
	"context"
	"errors"
	"time"
)

const (
	// closingWait bounds how long those who conflict with a lock wait for the end of
	// a close. It takes milliseconds; a copy of the descriptor may stay open for
	// ever.
	closingWait = 100 * time.Millisecond
	// closingTicks divide it: a process that seldom runs, since the machine is busy,
	// hears of the end of a close as much later as it hears of the ticks.
	closingTicks = 10
	// maxSoon bounds the requests of a client that wait so: each has a thread of its mount.
	// Others are refused at once.
	maxSoon = 16
)

// countDown closes over after ticks.
func countDown(over chan struct{}, ticks int) {
	time.AfterFunc(closingWait/closingTicks, func() {
		if ticks == 1 {
			close(over)
		} else {
			countDown(over, ticks-1)
		}
	})
}

// Closing implements Locks.
func (m *Manager) Closing(ino uint64, owner Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closingOf(closer{ino, owner}).over = nil
}

// closingOf returns what is known of a closer, which is about to be closed from now on. m.mu is
// held.
func (m *Manager) closingOf(k closer) *closing {
	c := m.closing[k]
	if c == nil {
		c = &closing{ended: make(chan struct{})}
		m.closing[k] = c
	}
	return c
}

// Untold implements Locks.
func (m *Manager) Untold(ino uint64, owner Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closingOf(closer{ino, owner}).untold = true
}

// Closed implements Locks.
func (m *Manager) Closed(ino uint64, owner Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := closer{ino, owner}
	if c := m.closing[k]; c != nil {
		close(c.ended)
		delete(m.closing, k)
	}
}

// TryLockSoon implements Locks.
func (m *Manager) TryLockSoon(ctx context.Context, ino uint64, s Space, l Lock) (err error) {
	m.soon(ctx, ino, s, l, func() bool {
		err = m.TryLock(ctx, ino, s, l)
		return !errors.Is(err, ErrWouldBlock)
	})
	return err
}

// TestSoon implements Locks.
func (m *Manager) TestSoon(ctx context.Context, ino uint64, s Space, l Lock) (holder Lock, held bool, err error) {
	m.soon(ctx, ino, s, l, func() bool {
		holder, held, err = m.Test(ctx, ino, s, l)
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
	var late chan struct{} // of them all
	for {
		ended, over, blocked := m.closingBlocker(ino, s, l)
		if blocked && ended == nil {
			return
		}
		if blocked {
			if late == nil {
				if !m.mayWaitSoon(l.Owner.Client) {
					return
				}
				defer m.waitedSoon(l.Owner.Client)
				late = make(chan struct{})
				countDown(late, closingTicks)
			}
			select {
			case <-ended:
			case <-over:
				return
			case <-late:
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

// mayWaitSoon counts a request of a client that waits; false, if there are maxSoon.
func (m *Manager) mayWaitSoon(client string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.soons[client] == maxSoon {
		return false
	}
	m.soons[client]++
	return true
}

func (m *Manager) waitedSoon(client string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.soons[client]--; m.soons[client] == 0 {
		delete(m.soons, client)
	}
}

// closingBlocker reports whether a lock is in the way of l. If its owner may be about to
// be closed, ended is closed when it is, and over when nobody waits for that any more (nil: all
// who come do).
func (m *Manager) closingBlocker(ino uint64, s Space, l Lock) (ended, over <-chan struct{}, blocked bool) {
	if m.InGrace() || l.Normalize(s) != nil {
		return nil, nil, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[ino]
	if f == nil {
		return nil, nil, false
	}
	b := f.Blocker(s, &l)
	if b == nil {
		return nil, nil, false
	}
	c := m.closing[closer{ino, b.Owner}]
	if c == nil {
		return nil, nil, true
	}
	if c.untold {
		return c.ended, nil, true
	}
	if c.over == nil {
		c.over = make(chan struct{})
		countDown(c.over, closingTicks)
	}
	select {
	case <-c.over:
		return nil, nil, true
	default:
		return c.ended, c.over, true
	}
}
