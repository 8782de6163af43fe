package diskspace

import (
	"log/slog"
	"sync"
	"time"

	"ogw/cluster/local/internal/fileio"
)

const (
	// reserveFileEvery is how often a reserve file that was given up is tried anew.
	reserveFileEvery = time.Second
	// It is given up in so many steps, none shorter than what a new log and
	// a flush on a small disk take: a neighbour may take each.
	reserveFileSteps   = 8
	reserveFileStepMin = 2 << 20
)

// ReserveFile is a file that holds space which no other process can take. When the
// log meets a full disk it gives back a step of it, so that deletes go on; when
// there is room again it grows back.
type ReserveFile struct {
	disk  fileio.Disk
	path  string
	space *Guard
	log   *slog.Logger

	mu   sync.Mutex
	size int64 // length of the file
	held int64 // of it, what takes space: a copy of the file may have holes
	made int64 // the size that it was last made with; 0: it is to be made

	quit chan struct{}
	done chan struct{}
}

// NewReserveFile finds the file at path, if it is there; Start sees to its
// length and its blocks. What it holds is space for deletes.
func NewReserveFile(d fileio.Disk, path string, space *Guard, log *slog.Logger) *ReserveFile {
	r := &ReserveFile{disk: d, path: path, space: space, log: log, quit: make(chan struct{}), done: make(chan struct{})}
	r.find()
	space.Held = r.Held
	return r
}

// find looks at the file. It is called with mu held.
func (r *ReserveFile) find() {
	r.size, r.held = 0, 0
	size, err := r.disk.Length(r.path)
	if err != nil {
		return
	}
	r.size = size
	r.count()
}

// count looks how much of the file takes space. It is called with mu held.
func (r *ReserveFile) count() {
	r.held = 0
	if held, err := r.disk.Held(r.path); err == nil {
		r.held = min(held, r.size)
	}
}

// Held returns the space that release can give.
func (r *ReserveFile) Held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Release gives back a step; false if nothing is left.
func (r *ReserveFile) Release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == 0 {
		return false
	}
	left := max(0, r.size-max(reserveFileStepMin, ReserveFileBytes(r.space.DiskBytes())/reserveFileSteps))
	if err := r.disk.Truncate(r.path, left); err != nil {
		r.log.Error("cannot give up the reserve of a full disk", "path", r.path, "err", err)
		return false
	}
	r.size, r.made = left, 0
	r.count()
	r.log.Warn("the disk is full: a part of the reserve is given up for deletes", "left", r.held)
	return true
}

func (r *ReserveFile) Start() { go r.run() }

func (r *ReserveFile) run() {
	defer close(r.done)
	tick := time.NewTicker(reserveFileEvery)
	defer tick.Stop()
	failing := false
	for {
		err := r.renew()
		if err != nil && !failing {
			r.log.Warn("cannot make the reserve for a full disk; it is tried again", "err", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-r.quit:
			return
		}
	}
}

// renew makes the file as long as the disk asks for, with all its blocks, if there is room.
func (r *ReserveFile) renew() error {
	want := ReserveFileBytes(r.space.DiskBytes())
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case want == r.size && (want <= r.held || want == r.made):
		return nil
	case want < r.size: // the disk shrank
		err := r.disk.Truncate(r.path, want)
		r.find()
		return err
	case !r.space.Roomy(want-r.held, ForDeletes):
		return nil
	}
	if err := r.make(want); err != nil {
		return err
	}
	if r.made = want; r.held < r.size {
		r.log.Warn("the file system keeps less space for the reserve than it was asked for: deletes may fail on a full disk",
			"path", r.path, "bytes", r.held, "asked", r.size)
	}
	return nil
}

// make has the file system give the file its blocks. It is called with mu held.
func (r *ReserveFile) make(want int64) error {
	f, err := r.disk.OpenSegment(r.path)
	if err != nil {
		return err
	}
	err = f.Allocate(want)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	r.find()
	return err
}

func (r *ReserveFile) Stop() {
	close(r.quit)
	<-r.done
}
