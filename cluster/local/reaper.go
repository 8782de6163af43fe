package local

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"ogw/cluster/local/internal/fileio"
)

const (
	// reapEvery is how long the file of a deleted blob may stay.
	reapEvery = 500 * time.Millisecond
	// reapQueueMax bounds the queue; beyond it, files are left to the sweep
	// of the next start.
	reapQueueMax = 1 << 20
)

// reaper removes the files of deleted blobs, once their absence from the
// index is durable: a power cut must not leave an index entry without a file.
type reaper struct {
	disk fileio.Disk
	sync func() error // makes the index durable
	log  *slog.Logger

	mu    sync.Mutex
	queue map[string]struct{}

	quit chan struct{}
	done chan struct{}
}

func newReaper(d fileio.Disk, sync func() error, log *slog.Logger) *reaper {
	r := &reaper{disk: d, sync: sync, log: log, queue: make(map[string]struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

func (r *reaper) add(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) < reapQueueMax {
		r.queue[path] = struct{}{}
	}
}

// waiting reports whether path is to be removed.
func (r *reaper) waiting(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.queue[path]
	return ok
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

func (r *reaper) reap() {
	r.mu.Lock()
	paths := r.queue
	r.queue = make(map[string]struct{})
	r.mu.Unlock()
	if len(paths) == 0 {
		return
	}
	if err := r.sync(); err != nil {
		return // the store failed; the next start sweeps
	}
	for path := range paths {
		if err := r.disk.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.log.Warn("cannot remove the file of a deleted blob", "path", path, "err", err)
		}
	}
}

func (r *reaper) stop() {
	close(r.quit)
	<-r.done
}
