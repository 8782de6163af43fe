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
	writes atomic.Uint64 // that ended, but for those of cached pages
	// pages are the writes of cached pages of the file that ended: the kernel sends them
	// through any handle that may write. nil: this one may not.
	pages  *atomic.Uint64
	saved  atomic.Uint64 // how many of both are durable, or were before its open
	plain  atomic.Uint64 // see privClock
	owners ownerSet      // of locks set through this handle
	direct bool          // writes go past the kernel's pages
	untold bool          // no FLUSH comes, see rawFS.untold
	lost   atomic.Bool   // see rawFS.lose
	bound  atomic.Bool   // see survival.bind
	record uint64        // what it was opened with, as the ledger has it
}

// pageWrites count the writes of cached pages, by hash of the inode; a collision costs a
// close that finds nothing to store.
type pageWrites [pageSlots]atomic.Uint64

const pageSlots = 8192

// counts has h, which may write, count what is written from now on.
func (p *pageWrites) counts(h *fileHandle) {
	h.pages = &p[uint64(h.ino)%pageSlots]
	h.saved.Store(h.pages.Load())
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
func (h *fileHandle) unsaved() bool { return h.saved.Load() < h.made() }

// made is how many writes ended that the next save makes durable.
func (h *fileHandle) made() uint64 {
	n := h.writes.Load()
	if h.pages != nil {
		n += h.pages.Load()
	}
	return n
}

// wrote notes that a write ended.
func (h *fileHandle) wrote(cached bool) {
	if cached && h.pages != nil {
		h.pages.Add(1)
		return
	}
	h.writes.Add(1)
}

// save makes durable what was written before.
func (h *fileHandle) save(ctx context.Context) error {
	n := h.made()
	if err := h.file.Sync(ctx); err != nil {
		return err
	}
	for {
		saved := h.saved.Load()
		if saved >= n || h.saved.CompareAndSwap(saved, n) {
			return nil
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
