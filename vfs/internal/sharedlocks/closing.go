package sharedlocks

import (
	"context"
	"errors"
	"time"

	"ogw/vfs/lock"
)

const (
	// closingWait bounds how long those who conflict with a lock wait for the end of a close,
	// from the first who does: longer than within one process, since the end goes through
	// the store.
	closingWait = 500 * time.Millisecond
	// closingPoll is between two looks.
	closingPoll = 5 * time.Millisecond
	// maxClosings bounds the closes that are remembered. One that is forgotten may keep
	// somebody waiting again.
	maxClosings = 1024
)

// Closing implements lock.Locks. It is in the store before it returns, if that answers.
func (t *Table) Closing(ino uint64, owner lock.Owner) {
	t.mu.Lock()
	known := t.knows(ino, owner)
	t.mu.Unlock()
	if !known {
		return
	}
	ctx, stop := context.WithTimeout(t.ctx, endTimeout)
	defer stop()
	err := t.update(ctx, ino, change{do: func(s *state) error {
		if h, ok := s.Holders[owner]; ok {
			h.Closing = ticket()
			s.Holders[owner] = h
		}
		return nil
	}})
	if err != nil {
		t.cfg.Log.Warn("that a lock is about to end is not known to others", "inode", ino, "err", err)
	}
}

// Untold implements lock.Locks. One who meets the lock waits, not all: mounts beside others are
// told of each close.
func (t *Table) Untold(ino uint64, owner lock.Owner) { t.Closing(ino, owner) }

// Closed implements lock.Locks. There is nothing to do: the release ended it, or the next
// request does.
func (t *Table) Closed(uint64, lock.Owner) {}

// TryLockSoon implements lock.Locks.
func (t *Table) TryLockSoon(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) (err error) {
	t.soon(ctx, func() uint64 {
		var a asked
		a, err = t.request(ctx, wish{ino: ino, space: s, lock: l})
		if !errors.Is(err, lock.ErrWouldBlock) {
			return 0
		}
		return a.closing
	})
	return mapped(err)
}

// TestSoon implements lock.Locks.
func (t *Table) TestSoon(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) (holder lock.Lock, held bool, err error) {
	t.soon(ctx, func() (closing uint64) {
		holder, closing, held, err = t.test(ctx, ino, s, l)
		return closing
	})
	return holder, held, mapped(err)
}

// soon calls try again and again while it returns which close is in the way, within
// closingWait of the first who met that.
func (t *Table) soon(ctx context.Context, try func() (closing uint64)) {
	begun := time.Now()
	for {
		closing := try()
		if closing == 0 || !t.awaits(closing) || time.Since(begun) >= closingWait {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(closingPoll):
		}
	}
}

// awaits reports whether to wait for a close.
func (t *Table) awaits(closing uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	until, met := t.closings[closing]
	if !met {
		if len(t.closings) >= maxClosings {
			clear(t.closings)
		}
		until = now.Add(closingWait)
		t.closings[closing] = until
	}
	return now.Before(until)
}
