package local

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"
)

const (
	// reapEvery is how long the file of a deleted blob may stay.
	reapEvery = 500 * time.Millisecond
	// reapQueueMax bounds the queue; beyond it, files are left to the sweep
	// of the next start.
	reapQueueMax = 1 << 20
)

// reaper removes the files that no blob has any more, of deleted blobs and what a crash
// left, once their absence from the index is durable: a power cut must not leave an index
// entry without a file.
type reaper struct {
	unlink func(path string) error
	sync   func() error // makes the index durable
	log    *slog.Logger

	mu    sync.Mutex
	queue map[string]*doomed // by path

	quit chan struct{}
	done chan struct{}
}

// doomed is a file that is to be removed.
type doomed struct {
	mu     sync.Mutex // held while it is
	spared bool       // it is another blob's by now
}

func newReaper(unlink func(string) error, sync func() error, log *slog.Logger) *reaper {
	r := &reaper{unlink: unlink, sync: sync, log: log, queue: make(map[string]*doomed), quit: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

// add has path removed, of which the index knows nothing any more. It returns false where
// it was to be anyway, or cannot be noted.
func (r *reaper) add(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue[path] != nil || len(r.queue) >= reapQueueMax {
		return false
	}
	r.queue[path] = &doomed{}
	return true
}

// spare leaves path to its caller, who has another blob for it, and reports whether it was
// to be removed. If that is under way it is done on return.
func (r *reaper) spare(path string) bool {
	r.mu.Lock()
	d := r.queue[path]
	delete(r.queue, path)
	r.mu.Unlock()
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spared = true
	return true
}

func (r *reaper) run() {
	defer close(r.done)
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.reap()
		case <-r.quit:
			r.reap()
			return
		}
	}
}

// reap removes what was added until now. A path that is spared and added again meanwhile
// waits for the next time: that it left the index need not be durable.
func (r *reaper) reap() {
	r.mu.Lock()
	batch := maps.Clone(r.queue)
	r.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	if r.sync() != nil {
		return // the disk does not answer now, or the store failed, which a start ends: it sweeps
	}
	for path, d := range batch {
		r.remove(path, d)
		r.mu.Lock()
		if r.queue[path] == d {
			delete(r.queue, path)
		}
		r.mu.Unlock()
	}
}

func (r *reaper) remove(path string, d *doomed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spared {
		return
	}
	if err := r.unlink(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("cannot remove the file of a deleted blob", "path", path, "err", err)
	}
}

func (r *reaper) stop() {
	close(r.quit)
	<-r.done
}
