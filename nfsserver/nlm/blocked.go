package nlm

import (
	"context"

	"ogw/vfs/lock"
)

const (
	// maxBlocked bounds the requests that wait: each keeps a file handle and
	// an owner, some 500 bytes.
	maxBlocked = 16 << 10
	// addressBlocked are what every address may have of them.
	addressBlocked = 64
)

// blockKey identifies a blocked request: the same one comes again while the
// client waits, and in CANCEL.
type blockKey struct {
	ino        uint64
	owner      lock.Owner
	typ        lock.Type
	start, end uint64
}

func keyOf(ino uint64, l lock.Lock) blockKey { return blockKey{ino, l.Owner, l.Type, l.Start, l.End} }

type blockState uint8

const (
	waiting blockState = iota
	granted            // held; the client does not know yet
	ended
)

// blocked is a LOCK that could not be granted at once.
type blocked struct {
	key  blockKey
	host *host
	args lockArgs
	era  uint32 // of the request

	// Guarded by Server.mu.
	state  blockState
	cancel func() bool // of the manager, for a grant, too; nil while the request is being queued
}

// lockOrWait grants a lock, or queues the request.
func (s *Server) lockOrWait(ctx context.Context, h *host, ino uint64, a *lockArgs, l lock.Lock) error {
	key := keyOf(ino, l)
	s.mu.Lock()
	if b := h.waits[key]; b != nil {
		if b.state != granted {
			s.mu.Unlock()
			return statBlocked
		}
		s.endLocked(b) // the client learns it by this answer
		if s.remotes == nil {
			s.mu.Unlock()
			return nil
		} // else it may have given the lock up since, at another gateway
	}
	if !s.waits.Take(h.key, 1) {
		s.mu.Unlock()
		return statNoLocks
	}
	b := &blocked{key: key, host: h, args: a.keep(), era: l.Era}
	h.waits[key] = b
	s.mu.Unlock()

	cancel, queued, err := s.locks.LockFunc(ctx, ino, lock.Range, l, func(err error) { s.resolved(b, err) })
	s.mu.Lock()
	if err == nil && b.state == ended { // cancelled, unlocked or released meanwhile
		s.mu.Unlock()
		cancel()
		return statDenied
	}
	defer s.mu.Unlock()
	if !queued || b.state == granted {
		s.endLocked(b)
		return err
	}
	b.cancel = cancel
	return statBlocked
}

// endLocked takes b off the books.
func (s *Server) endLocked(b *blocked) {
	if b.state == ended {
		return
	}
	b.state = ended
	if b.host.waits[b.key] == b {
		delete(b.host.waits, b.key)
		s.waits.Give(b.host.key, 1)
	}
}

// resolved is called by the manager when a queued request was granted, or never
// will be. Code that ended b in the meantime undoes the grant.
func (s *Server) resolved(b *blocked, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case b.state == ended:
	case err != nil: // a deadlock came to be: the client learns when it asks again
		s.endLocked(b)
	default:
		b.state = granted
		if b.cancel != nil && !s.closed { // else the LOCK call itself answers
			s.wait.Go(func() { s.callBack(b) })
		}
	}
}

// cancel is CANCEL. A grant that the client has not been notified of is given up. Beside
// others the request may wait at another gateway.
func (s *Server) cancel(ctx context.Context, h *host, ino uint64, l lock.Lock) error {
	s.mu.Lock()
	b := h.waits[keyOf(ino, l)]
	if b == nil {
		s.mu.Unlock()
		if s.remotes != nil {
			found, err := s.remotes.Withdraw(ctx, ino, lock.Range, l)
			if found || err != nil {
				return err
			}
		}
		return statDenied
	}
	cancel := b.cancel
	s.endLocked(b)
	s.mu.Unlock()
	if cancel != nil { // else LOCK itself gives up what it got
		cancel()
	}
	return nil
}
