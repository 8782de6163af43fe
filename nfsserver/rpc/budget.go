package rpc

import (
	"context"
	"sync"
)

// budget is a counting semaphore over bytes, first come, first served, so
// that a large request is not starved by small ones.
type budget struct {
	mu      sync.Mutex
	free    int
	waiters []*budgetWaiter
}

type budgetWaiter struct {
	n     int
	ready chan struct{}
}

func newBudget(n int) *budget { return &budget{free: n} }

// acquire takes n bytes, or returns ctx's error. n must not exceed the whole.
func (b *budget) acquire(ctx context.Context, n int) error {
	b.mu.Lock()
	if len(b.waiters) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return nil
	}
	w := &budgetWaiter{n, make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		b.abandon(w)
		return ctx.Err()
	}
}

func (b *budget) release(n int) {
	b.mu.Lock()
	b.free += n
	b.grant()
	b.mu.Unlock()
}

func (b *budget) grant() {
	for len(b.waiters) > 0 && b.free >= b.waiters[0].n {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.free -= w.n
		close(w.ready)
	}
}

func (b *budget) abandon(w *budgetWaiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, o := range b.waiters {
		if o == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.grant() // a smaller one behind w may fit
			return
		}
	}
	b.free += w.n // granted meanwhile
	b.grant()
}
