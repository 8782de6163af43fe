package vfs

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxOrphanQueue bounds the memory of the queue; beyond it, orphans are
	// left to the collector.
	maxOrphanQueue = 1 << 16
	// orphanGather is how long the first orphan waits for others, since a
	// transaction for each would double the cost of the removal of its name:
	// together they add a third.
	orphanGather = 10 * time.Millisecond
	// orphanBatch is how many go in one transaction, where an engine does not
	// limit those.
	orphanBatch = 128
)

// orphanQueue holds orphans that lost their last use, for removal in the
// background.
type orphanQueue struct {
	wake chan struct{}

	mu   sync.Mutex
	on   bool // somebody serves it
	list []Ino
	// scan tells that the store may have orphans that nobody will queue: of an
	// earlier process, or of a removal that failed.
	scan bool
}

func (q *orphanQueue) init() {
	q.wake = make(chan struct{}, 1)
	q.scan = true
}

// add queues ino.
func (q *orphanQueue) add(ino Ino) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.on || len(q.list) >= maxOrphanQueue {
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
func (q *orphanQueue) take(n int) []Ino {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.list))
	batch := slices.Clone(q.list[:n])
	if q.list = q.list[n:]; len(q.list) == 0 {
		q.list = nil
	}
	return batch
}

// again has the next pass of the collector look at all orphans.
func (q *orphanQueue) again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.scan = true
}

// takeScan tells whether the collector has to look at all orphans.
func (q *orphanQueue) takeScan() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	scan := q.scan
	q.scan = false
	return scan
}

// serve has remove remove what is queued, until ctx ends, at most batch
// together. What is left then, the collector finds after the next start.
func (q *orphanQueue) serve(ctx context.Context, batch int, remove func(context.Context, []Ino) error) {
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
		case <-time.After(orphanGather):
		}
		for inos := q.take(batch); len(inos) > 0 && ctx.Err() == nil; inos = q.take(batch) {
			if err := remove(ctx, inos); err != nil {
				q.again()
			}
		}
	}
}
