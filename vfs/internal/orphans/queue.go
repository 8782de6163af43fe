// Package orphans queues the inodes without links that lost their last use.
package orphans

import (
	"context"
	"slices"
	"sync"
	"time"

	"ogw/vfs/internal/record"
)

const (
	// maxQueue bounds the memory of the queue; beyond it, orphans are
	// left to the collector.
	maxQueue = 1 << 16
	// gather is how long the first orphan waits for others, since a
	// transaction for each would double the cost of the removal of its name:
	// together they add a third.
	gather = 10 * time.Millisecond
	// Batch is how many go in one transaction, where an engine does not
	// limit those.
	Batch = 128
)

// Queue holds orphans that lost their last use, for removal in the
// background.
type Queue struct {
	wake chan struct{}

	mu   sync.Mutex
	on   bool // somebody serves it
	list []record.Ino
	// scan reports whether the store may have orphans that nobody will queue: of an
	// earlier process, or of a removal that failed.
	scan bool
}

// NewQueue returns an empty queue, which nobody serves.
func NewQueue() *Queue { return &Queue{wake: make(chan struct{}, 1), scan: true} }

// Add queues ino.
func (q *Queue) Add(ino record.Ino) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.on || len(q.list) >= maxQueue {
		q.scan = true
		return
	}
	q.list = append(q.list, ino)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes up to n from the queue.
func (q *Queue) take(n int) []record.Ino {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.list))
	batch := slices.Clone(q.list[:n])
	if q.list = q.list[n:]; len(q.list) == 0 {
		q.list = nil
	}
	return batch
}

// Again has the next pass of the collector look at all orphans.
func (q *Queue) Again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.scan = true
}

// TakeScan reports whether the collector has to look at all orphans.
func (q *Queue) TakeScan() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	scan := q.scan
	q.scan = false
	return scan
}

// Serve has remove remove what is queued, until ctx ends, at most batch
// together. What is left then, the collector finds after the next start.
func (q *Queue) Serve(ctx context.Context, batch int, remove func(context.Context, []record.Ino) error) {
	q.mu.Lock()
	q.on = true
	q.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
		for inos := q.take(batch); len(inos) > 0 && ctx.Err() == nil; inos = q.take(batch) {
			if err := remove(ctx, inos); err != nil {
				q.Again()
			}
		}
	}
}
