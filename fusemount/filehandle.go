package fusemount

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
	"ogw/vfs/lock"
)

// fileHandle is one open file of the kernel.
type fileHandle struct {
	ino    vfs.Ino
	file   *vfs.File
	writes atomic.Uint64 // that ended
	saved  atomic.Uint64 // how many of them are durable
	pages  pagesOf
	plain  atomic.Uint64 // see privClock
	owners ownerSet      // of locks set through this handle
	direct bool          // writes go past the kernel's pages
	untold bool          // no FLUSH comes, see rawFS.untold
	lost   atomic.Bool   // see rawFS.lose
	bound  atomic.Bool   // see survival.bind
	record uint64        // what it was opened with, as the ledger has it
}

// pageWriteSlots count the WRITEs of pages of a superblock, by hash of the inode.
const pageWriteSlots = 8192

// pageWrites count the WRITEs of pages that ended; a collision of inodes costs a needless
// Sync. The kernel chooses a handle for them, of all by which the file may be
// written: it may be neither that of who wrote nor the one that is being closed.
type pageWrites [pageWriteSlots]atomic.Uint64

func (w *pageWrites) of(ino vfs.Ino) *atomic.Uint64 { return &w[uint64(ino)%pageWriteSlots] }

// pagesOf is what a handle that may write knows of those; the zero value is that of one
// that may not.
type pagesOf struct {
	ended *atomic.Uint64
	saved atomic.Uint64 // how many were durable, or were there when it was opened
}

func (p *pagesOf) begin(ended *atomic.Uint64) {
	p.ended = ended
	p.saved.Store(ended.Load())
}

func (p *pagesOf) count() uint64 {
	if p.ended == nil {
		return 0
	}
	return p.ended.Load()
}

// flags are what the kernel is answered for the handle.
func (h *fileHandle) flags() (flags uint32) {
	if h.direct {
		flags |= fuse.FOPEN_DIRECT_IO
	}
	if h.untold {
		flags |= fuse.FOPEN_NOFLUSH
	}
	return flags
}

// readTries bounds how often a read begins anew while others change the file faster than it
// can be read: programs do not expect to be told to come again. Each has many tries of its own.
const readTries = 64

// read reads like io.ReaderAt.
func (h *fileHandle) read(ctx context.Context, p []byte, off int64) (n int, err error) {
	for range readTries {
		n, err = h.file.ReadAt(ctx, p, off)
		if !errors.Is(err, vfs.ErrConflict) || ctx.Err() != nil {
			break
		}
	}
	return n, err
}

// unsaved reports whether something was written that is not known to be durable.
// Each copy of a descriptor is closed on its own (a child's when it executes), and
// the second close waits for the first one's Sync, or tries again after its failure.
func (h *fileHandle) unsaved() bool {
	return h.saved.Load() < h.writes.Load() || h.pages.saved.Load() < h.pages.count()
}

// save makes durable what was written before.
func (h *fileHandle) save(ctx context.Context) error {
	writes, pages := h.writes.Load(), h.pages.count()
	if err := h.file.Sync(ctx); err != nil {
		return err
	}
	raise(&h.saved, writes)
	raise(&h.pages.saved, pages)
	return nil
}

// raise sets v to least if it is less.
func raise(v *atomic.Uint64, least uint64) {
	for {
		old := v.Load()
		if old >= least || v.CompareAndSwap(old, least) {
			return
		}
	}
}

// lockOwner is one owner of locks in one space.
type lockOwner struct {
	space lock.Space
	id    uint64
}

// ownerSet remembers who set locks through a handle: owners that are open
// files (flock, OFD locks) end with it, and the kernel does not tell their
// names then.
type ownerSet struct {
	mu   sync.Mutex
	list []lockOwner
}

func (s *ownerSet) add(o lockOwner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.list, o) {
		s.list = append(s.list, o)
	}
}

func (s *ownerSet) take(o lockOwner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.list, o); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
		return true
	}
	return false
}

func (s *ownerSet) all() []lockOwner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *ownerSet) takeAll() []lockOwner {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}
