package metafs

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	// stallPoll is how often a write of the log that met a full disk is tried
	// again.
	stallPoll = 50 * time.Millisecond
	// RetryPause is how long Pebble's background work rests after it failed: it
	// would try again at once.
	RetryPause = time.Second
	// Pebble's names for what it writes files for.
	forFlush       vfs.DiskWriteCategory = "pebble-memtable-flush"
	forCompaction  vfs.DiskWriteCategory = "pebble-compaction"
	forBlobRewrite vfs.DiskWriteCategory = "pebble-blob-file-rewrite"
	forManifest    vfs.DiskWriteCategory = "pebble-manifest"
	// manifestAhead is the space that the manifest has in advance, for
	// thousands of edits: while a write of it waits, Pebble's readers would
	// wait too. Logs are reserved by Pebble.
	manifestAhead = 1 << 20
)

// SpaceWait is what Pebble's writes do when the disk is full. For Pebble an
// error of the log or of the manifest is the end, and only a new start would
// report the outcome. So these get the reserve, and then wait until there
// is space; meanwhile the store refuses what is new (Health.Err). Flushes get
// the reserve and are tried again by Pebble; compactions must do without.
type SpaceWait struct {
	health  *Health
	space   *diskspace.Guard
	begun   atomic.Bool // Pebble is open
	opened  atomic.Bool // until then nothing waits: a start fails with the reason
	closing chan struct{}
	once    sync.Once

	mu      sync.Mutex
	release []func() bool // what can be given up, in this order; true if it was
}

// NewSpaceWait returns the waiting of a store. What can be given up is reported by
// AddRelease.
func NewSpaceWait(h *Health, space *diskspace.Guard) *SpaceWait {
	return &SpaceWait{health: h, space: space, closing: make(chan struct{})}
}

// PebbleIsOpen records that errors of the log do not end a start any more.
func (w *SpaceWait) PebbleIsOpen() { w.begun.Store(true) }

// StoreIsOpen records that writes may wait.
func (w *SpaceWait) StoreIsOpen() { w.opened.Store(true) }

// AddRelease adds what can be given up, after what was added before; f reports
// whether it was.
func (w *SpaceWait) AddRelease(f func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release = append(w.release, f)
}

func (w *SpaceWait) giveUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.release {
		if f() {
			return true
		}
	}
	return false
}

// Stop ends all waiting, with the error that was waited for to go.
func (w *SpaceWait) Stop() { w.once.Do(func() { close(w.closing) }) }

// Stopped returns a channel that is closed by Stop.
func (w *SpaceWait) Stopped() <-chan struct{} { return w.closing }

// pause returns false when the store is being closed.
func (w *SpaceWait) pause(d time.Duration) bool {
	select {
	case <-w.closing:
		return false
	case <-time.After(d):
		return true
	}
}

// try runs op, again and again while the disk is full.
func (w *SpaceWait) try(why vfs.DiskWriteCategory, op func() error) error {
	err := op()
	if !ioerr.IsFull(err) {
		return err
	}
	compaction := why == forCompaction || why == forBlobRewrite
	for !compaction && ioerr.IsFull(err) && w.giveUp() {
		err = op()
	}
	if !ioerr.IsFull(err) || !w.opened.Load() || compaction || why == forFlush {
		return err
	}
	w.health.stall()
	defer w.health.resume()
	for ioerr.IsFull(err) && w.pause(stallPoll) {
		w.giveUp() // it may be back for a moment
		err = op()
	}
	return err
}

// roomFor refuses compactions while the disk is nearly full: what is left is
// not for them.
func (w *SpaceWait) roomFor(why vfs.DiskWriteCategory) error {
	if why != forCompaction && why != forBlobRewrite || w.space.Roomy(0, diskspace.ForDeletes) {
		return nil
	}
	return &os.PathError{Op: "compaction", Path: w.space.Dir, Err: unix.ENOSPC}
}

// spaceWaitFS is a file system under Pebble.
type spaceWaitFS struct {
	vfs.FS
	wait *SpaceWait
}

// Create implements vfs.FS.
func (fs spaceWaitFS) Create(name string, why vfs.DiskWriteCategory) (f vfs.File, err error) {
	if err := fs.wait.roomFor(why); err != nil {
		return nil, err
	}
	if rest := fs.wait.health.flushRest(); why == forFlush && rest > 0 {
		fs.wait.pause(rest)
	}
	err = fs.wait.try(why, func() (err error) {
		f, err = fs.FS.Create(name, why)
		return err
	})
	return fs.wrap(f, why, err)
}

// ReuseForWrite implements vfs.FS.
func (fs spaceWaitFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = fs.wait.try(why, func() (err error) {
		f, err = fs.FS.ReuseForWrite(old, name, why)
		return err
	})
	return fs.wrap(f, why, err)
}

func (fs spaceWaitFS) wrap(f vfs.File, why vfs.DiskWriteCategory, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &spaceWaitFile{File: f, wait: fs.wait, why: why}, nil
}

// Rename implements vfs.FS.
func (fs spaceWaitFS) Rename(old, name string) error {
	return fs.wait.try(vfs.WriteCategoryUnspecified, func() error { return fs.FS.Rename(old, name) })
}

// Link implements vfs.FS.
func (fs spaceWaitFS) Link(old, name string) error {
	return fs.wait.try(vfs.WriteCategoryUnspecified, func() error { return fs.FS.Link(old, name) })
}

// Unwrap implements vfs.FS.
func (fs spaceWaitFS) Unwrap() vfs.FS { return fs.FS }

type spaceWaitFile struct {
	vfs.File
	wait     *SpaceWait
	why      vfs.DiskWriteCategory
	written  int64
	reserved int64
}

// Write implements vfs.File; what a full disk took before it failed is not
// written again.
func (f *spaceWaitFile) Write(p []byte) (n int, err error) {
	err = f.wait.try(f.why, func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	f.written += int64(n)
	if f.why == forManifest && err == nil {
		f.reserve()
	}
	return n, err
}

// reserve sees to it that the next writes need no space. It is done before the
// disk is full, so that its failure, which the file system may not even know,
// is not an error.
func (f *spaceWaitFile) reserve() {
	if f.reserved-f.written >= manifestAhead/2 {
		return
	}
	err := f.Preallocate(f.reserved, manifestAhead)
	if ioerr.IsFull(err) && f.wait.giveUp() {
		err = f.Preallocate(f.reserved, manifestAhead)
	}
	if ioerr.IsFull(err) {
		return // the next write tries again
	}
	f.reserved += manifestAhead
}
