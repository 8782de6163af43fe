package share

import (
	"context"
	"sync"

	"ogw/vfs/clients/subscriber"
)

// Pool is a number of units that clients hold for a while. It is safe for
// concurrent use.
type Pool struct {
	mu      sync.Mutex
	size    int
	free    int
	floor   int
	holders map[subscriber.Key]*Holder
	ring    []*Holder // those with waiters, the next in turn first
	// starved reports whether the next in turn waits for its floor: nobody else
	// gets any before.
	starved bool
}

// NewPool returns a pool of size units, of which every client may hold floor
// at any time, if they are there. What is acquired at once must not exceed
// the floor, nor the floor the size.
func NewPool(size, floor int) *Pool {
	return &Pool{size: size, free: size, floor: min(floor, size), holders: make(map[subscriber.Key]*Holder)}
}

// Holder is a client's part of a Pool.
type Holder struct {
	pool    *Pool
	key     subscriber.Key
	users   int
	held    int
	waiters []*waiter // first come, first served
}

type waiter struct {
	n     int
	ready chan struct{}
}

// Join returns the client's Holder. Leave must follow, after all was released.
func (p *Pool) Join(k subscriber.Key) *Holder {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.holders[k]
	if h == nil {
		h = &Holder{pool: p, key: k}
		p.holders[k] = h
	}
	h.users++
	return h
}

// Leave ends one Join.
func (h *Holder) Leave() {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(h.pool.holders, h.key)
	}
}

// TryAcquire takes n units if the client may have them now.
func (h *Holder) TryAcquire(n int) bool {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	return h.try(n)
}

// Acquire takes n units, or returns ctx's error.
func (h *Holder) Acquire(ctx context.Context, n int) error {
	p := h.pool
	p.mu.Lock()
	if h.try(n) {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{n, make(chan struct{})}
	if h.waiters = append(h.waiters, w); len(h.waiters) == 1 {
		p.ring = append(p.ring, h)
		p.grant() // it may be the next in turn
	}
	p.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		h.abandon(w)
		return ctx.Err()
	}
}

// Release gives n units back.
func (h *Holder) Release(n int) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.give(n)
}

// Free returns how many units nobody holds.
func (p *Pool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

func (h *Holder) try(n int) bool {
	if len(h.waiters) > 0 || h.pool.starved || !h.may(n) {
		return false
	}
	h.take(n)
	return true
}

func (h *Holder) may(n int) bool { return may(n, h.held, h.pool.free, h.pool.floor) }

func (h *Holder) take(n int) {
	h.held += n
	h.pool.free -= n
}

func (h *Holder) give(n int) {
	h.held -= n
	h.pool.free += n
	h.pool.grant()
}

// grant gives what is free to those who wait, each client in its turn.
func (p *Pool) grant() {
	p.starved = false
	for passed := 0; passed < len(p.ring); {
		h := p.ring[0]
		w := h.waiters[0]
		if w.n > p.free && h.held+w.n <= p.floor {
			p.starved = true
			return
		}
		p.ring = p.ring[1:]
		if h.may(w.n) {
			h.take(w.n)
			h.waiters = h.waiters[1:]
			close(w.ready)
			passed = 0
		} else {
			passed++
		}
		if len(h.waiters) > 0 {
			p.ring = append(p.ring, h)
		}
	}
}

// abandon takes back a wish, or what it was granted meanwhile.
func (h *Holder) abandon(w *waiter) {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range h.waiters {
		if o != w {
			continue
		}
		h.waiters = append(h.waiters[:i], h.waiters[i+1:]...)
		if len(h.waiters) == 0 {
			p.forget(h)
		}
		p.grant() // others may fit now
		return
	}
	h.give(w.n)
}

// forget takes h out of the ring.
func (p *Pool) forget(h *Holder) {
	for i, o := range p.ring {
		if o == h {
			p.ring = append(p.ring[:i], p.ring[i+1:]...)
			return
		}
	}
}
