package local

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	// stallPoll is how often a write of the log that met a full disk is tried
	// again.
	stallPoll = 50 * time.Millisecond
	// fullPause is how long Pebble's background work rests when the disk is
	// full: it would try again at once.
	fullPause = time.Second
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

// patience is what Pebble's writes do when the disk is full. For Pebble an
// error of the log or of the manifest is the end, and only a new start would
// tell what came of it. So these get the reserve, and then wait until there
// is space; meanwhile the store refuses what is new (health.err). Flushes get
// the reserve and are tried again by Pebble; compactions must do without.
type patience struct {
	health  *health
	space   *spaceGuard
	begun   atomic.Bool // Pebble is open
	opened  atomic.Bool // until then nothing waits: a start fails and says why
	closing chan struct{}
	once    sync.Once

	mu      sync.Mutex
	release []func() bool // what can be given up, in this order; true if it was
}

func newPatience(h *health, space *spaceGuard) *patience {
	return &patience{health: h, space: space, closing: make(chan struct{})}
}

func (p *patience) addRelease(f func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release = append(p.release, f)
}

func (p *patience) giveUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.release {
		if f() {
			return true
		}
	}
	return false
}

// stop ends all waiting, with the error that was waited for to go.
func (p *patience) stop() { p.once.Do(func() { close(p.closing) }) }

// pause returns false when the store is being closed.
func (p *patience) pause(d time.Duration) bool {
	select {
	case <-p.closing:
		return false
	case <-time.After(d):
		return true
	}
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// try runs op, again and again while the disk is full.
func (p *patience) try(why vfs.DiskWriteCategory, op func() error) error {
	err := op()
	if !isFull(err) {
		return err
	}
	compaction := why == forCompaction || why == forBlobRewrite
	for !compaction && isFull(err) && p.giveUp() {
		err = op()
	}
	if !isFull(err) || !p.opened.Load() {
		return err
	}
	if compaction || why == forFlush {
		p.pause(fullPause)
		return err
	}
	p.health.stall()
	defer p.health.resume()
	for isFull(err) && p.pause(stallPoll) {
		p.giveUp() // it may be back for a moment
		err = op()
	}
	return err
}

// roomFor lets compactions wait while the disk is nearly full: what is left is
// not for them.
func (p *patience) roomFor(why vfs.DiskWriteCategory) error {
	if why != forCompaction && why != forBlobRewrite || p.space.roomy(0, growReserve) {
		return nil
	}
	if p.opened.Load() {
		p.pause(fullPause)
	}
	return &os.PathError{Op: "compaction", Path: p.space.dir, Err: unix.ENOSPC}
}

// patientFS is a file system under Pebble.
type patientFS struct {
	vfs.FS
	patience *patience
}

// Create implements vfs.FS.
func (fs patientFS) Create(name string, why vfs.DiskWriteCategory) (f vfs.File, err error) {
	if err := fs.patience.roomFor(why); err != nil {
		return nil, err
	}
	err = fs.patience.try(why, func() (err error) {
		f, err = fs.FS.Create(name, why)
		return err
	})
	return fs.wrap(f, why, err)
}

// ReuseForWrite implements vfs.FS.
func (fs patientFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = fs.patience.try(why, func() (err error) {
		f, err = fs.FS.ReuseForWrite(old, name, why)
		return err
	})
	return fs.wrap(f, why, err)
}

func (fs patientFS) wrap(f vfs.File, why vfs.DiskWriteCategory, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &patientFile{File: f, patience: fs.patience, why: why}, nil
}

// Rename implements vfs.FS.
func (fs patientFS) Rename(old, name string) error {
	return fs.patience.try(vfs.WriteCategoryUnspecified, func() error { return fs.FS.Rename(old, name) })
}

// Link implements vfs.FS.
func (fs patientFS) Link(old, name string) error {
	return fs.patience.try(vfs.WriteCategoryUnspecified, func() error { return fs.FS.Link(old, name) })
}

// Unwrap implements vfs.FS.
func (fs patientFS) Unwrap() vfs.FS { return fs.FS }

type patientFile struct {
	vfs.File
	patience *patience
	why      vfs.DiskWriteCategory
	written  int64
	reserved int64
}

// Write implements vfs.File; what a full disk took before it failed is not
// written again.
func (f *patientFile) Write(p []byte) (n int, err error) {
	err = f.patience.try(f.why, func() error {
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
func (f *patientFile) reserve() {
	if f.reserved-f.written >= manifestAhead/2 {
		return
	}
	err := f.Preallocate(f.reserved, manifestAhead)
	if isFull(err) && f.patience.giveUp() {
		err = f.Preallocate(f.reserved, manifestAhead)
	}
	if isFull(err) {
		return // the next write tries again
	}
	f.reserved += manifestAhead
}
