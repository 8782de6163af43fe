package fusemount

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

const (
	// maxPositions bounds the positions that one listing remembers, some 50 bytes
	// each. Of a longer one the older half is forgotten: seekdir
	// beyond that fails, while reading on and rewinddir always work.
	maxPositions = 1 << 20
	// maxIdlePositions bounds those of all directories that nobody has open, of which each
	// counts for listingPositions more.
	maxIdlePositions = 1 << 19
	listingPositions = 4
)

// First offsets of a listing: behind ".", behind "..", behind the first entry.
const (
	offDot uint64 = iota + 1
	offDotDot
	offFirst
)

// listing is what all that have a directory open share, and after them the kernel's cache of
// its names (FOPEN_CACHE_DIR). The VFS continues a listing by opaque positions, the kernel by
// numbers, and gives one of what it kept to any handle: number offFirst+i stands behind
// the entry at position list[i].
type listing struct {
	ino     vfs.Ino
	changes uint64    // of the directory, before the kernel began to keep names
	kept    bool      // it may keep them
	begun   time.Time // then
	// read reports whether a READDIR came: then the kernel has dropped what it had kept before.
	read atomic.Bool
	// restored tells that positions were given out by the server before.
	restored bool

	opens int           // under listings.mu, as idle
	idle  *list.Element // of listings.idle

	mu   sync.Mutex
	base uint64   // positions forgotten before list[0]
	list []string // positions, in the order in which they were given out
}

// position returns where the listing goes on behind offset.
func (l *listing) position(offset uint64) (string, error) {
	if offset < offFirst {
		return "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := offset - offFirst
	if i < l.base || i-l.base >= uint64(len(l.list)) {
		return "", fmt.Errorf("%w: directory offset %d is not known any more", vfs.ErrInvalid, offset)
	}
	return l.list[i-l.base], nil
}

// number returns the offset of the entry at pos, which follows the one at
// offset prev. Read again, an entry has its old number, so that every number
// given out stays right.
func (l *listing) number(prev uint64, pos string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := max(prev+1, offFirst)
	if i := next - offFirst; i >= l.base && i-l.base < uint64(len(l.list)) && l.list[i-l.base] == pos {
		return next
	}
	l.list = append(l.list, pos)
	if len(l.list) > maxPositions {
		half := len(l.list) / 2
		l.list = append([]string(nil), l.list[half:]...)
		l.base += uint64(half)
	}
	return offFirst + l.base + uint64(len(l.list)) - 1
}

// cost returns how many positions it counts for.
func (l *listing) cost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list) + listingPositions
}

// listings are those of the directories that are open, and of some that were.
type listings struct {
	life    time.Duration // how long the kernel keeps one; 0: it keeps none
	changes func(vfs.Ino) (begun, ended uint64)

	mu     sync.Mutex
	dirs   map[vfs.Ino]*listing
	idle   list.List // of *listing, the longest unused first
	held   int       // what these cost
	sweeps bool      // a sweep will come
}

func (s *listings) init(life time.Duration, changes func(vfs.Ino) (begun, ended uint64)) {
	s.life, s.changes, s.dirs = life, changes, make(map[vfs.Ino]*listing)
}

// open returns the listing of a directory with one that has it open more, and how the kernel
// is to open it: keep reports whether it may keep names at all. What it kept goes on only if
// the directory has not changed since: it would not see that a time was set back, or a
// change whose request was given up. It keeps none for longer than names, so that it asks
// for attributes along with names again.
func (s *listings) open(ino vfs.Ino, keep bool) (l *listing, flags uint32) {
	begun, ended := s.changes(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	l = s.dirs[ino]
	current := l != nil && l.kept && l.read.Load() && begun == ended && ended == l.changes && time.Since(l.begun) < s.life
	if l != nil && l.opens == 0 {
		s.wake(l)
		if !current {
			l = nil
		}
	}
	switch {
	case l == nil:
		l = &listing{ino: ino, changes: ended, kept: keep && s.life > 0 && begun == ended, begun: time.Now()}
		s.dirs[ino] = l
		if l.kept {
			flags = fuse.FOPEN_CACHE_DIR
		}
	case current:
		flags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
	}
	l.opens++
	return l, flags
}

// restore is open for a handle of the server before, of which the kernel has numbers.
func (s *listings) restore(ino vfs.Ino) *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.dirs[ino]
	if l == nil {
		l = &listing{ino: ino, restored: true}
		s.dirs[ino] = l
	}
	l.opens++
	return l
}

// close takes back one open.
func (s *listings) close(l *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.opens--; l.opens > 0 {
		return
	}
	if !l.kept {
		delete(s.dirs, l.ino)
		return
	}
	l.idle = s.idle.PushBack(l)
	s.held += l.cost()
	for s.held > maxIdlePositions {
		s.drop(s.idle.Front().Value.(*listing))
	}
	s.plan()
}

// wake takes l, which nobody had open, off the idle ones. mu is held.
func (s *listings) wake(l *listing) {
	s.idle.Remove(l.idle)
	s.held -= l.cost()
	l.idle = nil
}

// drop forgets one that nobody has open. mu is held.
func (s *listings) drop(l *listing) {
	s.wake(l)
	delete(s.dirs, l.ino)
}

// plan has what is idle and too old dropped. mu is held.
func (s *listings) plan() {
	if !s.sweeps && s.idle.Len() > 0 {
		s.sweeps = true
		time.AfterFunc(s.life, s.sweep)
	}
}

func (s *listings) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.idle.Front(); e != nil; {
		l := e.Value.(*listing)
		if e = e.Next(); time.Since(l.begun) >= s.life {
			s.drop(l)
		}
	}
	s.sweeps = false
	s.plan()
}
