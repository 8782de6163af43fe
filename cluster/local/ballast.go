package local

import (
	"log/slog"
	"path/filepath"
	"sync"
	"time"
)

const (
	ballastFile = "reserve"
	// ballastEvery is how often a ballast that was given up is tried anew.
	ballastEvery = time.Second
	// It is given up in so many steps, none shorter than what a new log and
	// a flush on a small disk take: a neighbour may take each.
	ballastSteps   = 8
	ballastStepMin = 2 << 20
)

// ballast is a file that holds space which no other process can take. When the
// log meets a full disk it gives back a step of it, so that deletes go on; when
// there is room again it grows back.
type ballast struct {
	disk  disk
	dir   string
	space *spaceGuard
	log   *slog.Logger

	mu    sync.Mutex
	bytes int64

	quit chan struct{}
	done chan struct{}
}

// newBallast finds the file that is there; start sees to its length.
func newBallast(d disk, dir string, space *spaceGuard, log *slog.Logger) *ballast {
	b := &ballast{disk: d, dir: dir, space: space, log: log, quit: make(chan struct{}), done: make(chan struct{})}
	b.find()
	return b
}

func (b *ballast) path() string { return filepath.Join(b.dir, ballastFile) }

func (b *ballast) find() {
	b.bytes = 0
	if bytes, err := b.disk.length(b.path()); err == nil {
		b.bytes = bytes
	}
}

// held returns the space that release can give.
func (b *ballast) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// release gives back a step; false if nothing is left.
func (b *ballast) release() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes == 0 {
		return false
	}
	left := max(0, b.bytes-max(ballastStepMin, reservesOf(b.space.total.Load()).ballast/ballastSteps))
	if err := b.disk.truncate(b.path(), left); err != nil {
		b.log.Error("cannot give up the reserve of a full disk", "path", b.path(), "err", err)
		return false
	}
	b.log.Warn("the disk is full: a part of the reserve is given up for deletes", "left", left)
	b.bytes = left
	return true
}

func (b *ballast) start() { go b.run() }

func (b *ballast) run() {
	defer close(b.done)
	tick := time.NewTicker(ballastEvery)
	defer tick.Stop()
	failing := false
	for {
		err := b.renew()
		if err != nil && !failing {
			b.log.Warn("cannot make the reserve for a full disk; it is tried again", "err", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-b.quit:
			return
		}
	}
}

// renew makes the file as long as the disk asks for, if there is room.
func (b *ballast) renew() error {
	want := reservesOf(b.space.total.Load()).ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case want == b.bytes:
		return nil
	case want < b.bytes: // the disk shrank
		err := b.disk.truncate(b.path(), want)
		b.find()
		return err
	case !b.space.roomy(want-b.bytes, growReserve):
		return nil
	}
	f, err := b.disk.openSegment(b.path())
	if err != nil {
		return err
	}
	err = f.allocate(want)
	if err == nil {
		err = f.sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	b.find()
	return err
}

func (b *ballast) stop() {
	close(b.quit)
	<-b.done
}
