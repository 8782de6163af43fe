package vfs

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
)

const (
	// maxBehind bounds the files that are closed and not stored: a close waits while
	// there are so many. With the smallest buffer each, they take half of
	// DefaultDirtyBytes.
	maxBehind = 1024
	// behindBatch is how many closed files are stored without waiting for more: enough
	// to share a sync, few enough that closing goes on meanwhile.
	behindBatch = 64
	// behindTick is how often closed files are stored where they are few. Their commits
	// are durable within cluster.RelaxedBound.
	behindTick = 500 * time.Millisecond
	// syncParallel is how many files are flushed at a time, for this and for SyncAll.
	syncParallel = 8
)

// behindFile is a file that was closed while what was written to it was in memory.
type behindFile interface {
	// storeBehind stores what was written, as durably as ctx asks. What is lost for good
	// it reports to the log, and returns nil.
	storeBehind(ctx context.Context) error
	// endBehind follows, once, when nothing is left to store, or nobody will.
	endBehind(ctx context.Context, err error)
}

// behindQueue has the files that were closed before they were stored
// (File.CloseBehind). A pass stores all of them, several at a time, by relaxed commits,
// which share the engine's syncs. What cannot be stored stays, to be tried again; until it
// is, nobody closes a file before it is stored.
type behindQueue struct {
	serves  atomic.Bool   // somebody makes passes
	failing atomic.Bool   // the last pass left something
	wake    chan struct{} // a pass is wanted before its time

	passing sync.Mutex // one pass at a time; before mu

	mu      sync.Mutex
	waiting []behindFile
	taken   int           // by the pass that runs
	freed   chan struct{} // closed when there is room, or a pass failed, since it was taken
}

func (q *behindQueue) init() {
	q.wake, q.freed = make(chan struct{}, 1), make(chan struct{})
}

// open reports whether a file may be closed before it is stored, and else, if that may
// change soon, what to wait for.
func (q *behindQueue) open() (ok bool, freed <-chan struct{}) {
	if !q.serves.Load() || q.failing.Load() {
		return false, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)+q.taken < maxBehind, q.freed
}

// await returns when a file may be closed before it is stored; false: it is to be
// stored first.
func (q *behindQueue) await(ctx context.Context) bool {
	for {
		ok, freed := q.open()
		if ok || freed == nil {
			return ok
		}
		q.hurry()
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// add has f stored by the next pass, and reports whether there is room for it.
func (q *behindQueue) add(f behindFile) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.serves.Load() || len(q.waiting)+q.taken >= maxBehind {
		return false
	}
	q.waiting = append(q.waiting, f)
	if len(q.waiting) >= behindBatch && !q.failing.Load() {
		q.hurry()
	}
	return true
}

func (q *behindQueue) hurry() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pass stores what was closed before it.
func (q *behindQueue) pass(ctx context.Context) error {
	q.passing.Lock()
	defer q.passing.Unlock()
	q.mu.Lock()
	list := q.waiting
	q.waiting, q.taken = nil, len(list)
	q.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	left, err := q.store(cluster.Relaxed(ctx), list)
	q.mu.Lock()
	q.waiting, q.taken = append(left, q.waiting...), 0
	q.failing.Store(len(left) > 0)
	close(q.freed)
	q.freed = make(chan struct{})
	q.mu.Unlock()
	return err
}

// store returns what could not be stored, and why.
func (q *behindQueue) store(ctx context.Context, list []behindFile) (left []behindFile, err error) {
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		next atomic.Int64
	)
	for range min(syncParallel, len(list)) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				e := list[i].storeBehind(ctx)
				if e == nil {
					list[i].endBehind(ctx, nil)
					continue
				}
				mu.Lock()
				left, err = append(left, list[i]), e
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return left, err
}

// run makes passes until ctx ends, sooner when many files wait.
func (q *behindQueue) run(ctx context.Context, log *slog.Logger) {
	q.serves.Store(true)
	tick := time.NewTicker(behindTick)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			q.serves.Store(false)
			return
		case <-tick.C:
		case <-q.wake:
		}
		err := q.pass(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			log.Error("what was written to closed files cannot be stored; it is tried again, and closing a file waits for the store meanwhile",
				"files", q.len(), "err", err)
		}
		failed = err != nil
	}
}

func (q *behindQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) + q.taken
}

// end is a last pass; what it cannot store is lost.
func (q *behindQueue) end(ctx context.Context) error {
	err := q.pass(ctx)
	q.mu.Lock()
	list := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, f := range list {
		f.endBehind(ctx, err)
	}
	return err
}
