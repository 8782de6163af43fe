package session

import (
	"context"
	"sync"
)

// Readers are the views that run in this process, by the times in which they
// began. Who has made something unreachable, and waits for the views from before
// (Quiesce), knows that nobody will find it any more.
type Readers struct {
	mu     sync.Mutex
	epoch  uint64         // grows with every Quiesce
	active map[uint64]int // running views by the epoch in which they began
	ended  chan struct{}  // closed when the last view of an older epoch ends
}

func (r *Readers) init() {
	r.active = make(map[uint64]int)
	r.ended = make(chan struct{})
}

// Enter counts a view that begins; Leave takes what it returned.
func (r *Readers) Enter() (epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[r.epoch]++
	return r.epoch
}

// Leave ends a view.
func (r *Readers) Leave(epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[epoch]--; r.active[epoch] > 0 {
		return
	}
	delete(r.active, epoch)
	if epoch < r.epoch {
		close(r.ended)
		r.ended = make(chan struct{})
	}
}

// Quiesce waits until every view that runs now has ended.
func (r *Readers) Quiesce(ctx context.Context) error {
	r.mu.Lock()
	r.epoch++
	now := r.epoch
	for {
		old, ended := r.older(now), r.ended
		r.mu.Unlock()
		if !old {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.mu.Lock()
	}
}

// older reports whether a view runs that began before an epoch. Under r.mu.
func (r *Readers) older(epoch uint64) bool {
	for e := range r.active {
		if e < epoch {
			return true
		}
	}
	return false
}

// Mark begins a time, for Older.
func (r *Readers) Mark() (mark uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
	return r.epoch
}

// Older reports whether a view runs that began before mark.
func (r *Readers) Older(mark uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.older(mark)
}
