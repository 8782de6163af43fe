package fusemount

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

const (
	// maxIdlePositions bounds the positions of all directories that nobody has open, of
	// which each counts for listingPositions more.
	maxIdlePositions = 1 << 19
	listingPositions = 4
	// restoredPass is behind all passes of the server before.
	restoredPass = 1 << 20
)

// listing is what handles of a directory share whose names the kernel may keep
// (FOPEN_CACHE_DIR): it gives what it kept for one to any other.
type listing struct {
	numbers
	ino vfs.Ino

	// The rest is under listings.mu, but for dropped.

	shared  bool          // it is in listings.dirs
	opens   int           // if it is
	idle    *list.Element // of listings.idle
	changes uint64        // of the directory, before the kernel began to keep what it has
	begun   time.Time     // then
	round   uint64        // counts that
	// dropped is the last round of which a READDIR came: the kernel has dropped what it kept
	// in those before.
	dropped atomic.Uint64
}

// reading comes with a READDIR of a handle that was opened in a round.
func (l *listing) reading(round uint64) {
	for old := l.dropped.Load(); old < round && !l.dropped.CompareAndSwap(old, round); old = l.dropped.Load() {
	}
}

// listings are those of the directories that are open, and of some that were.
type listings struct {
	life    time.Duration // how long the kernel keeps one; 0: it keeps none
	changes func(vfs.Ino) (begun, ended uint64)

	mu     sync.Mutex
	dirs   map[vfs.Ino]*listing
	idle   list.List // of *listing, the longest unused first
	held   int       // positions that these count for
	sweeps bool      // a sweep will come
}

func (s *listings) init(life time.Duration, changes func(vfs.Ino) (begun, ended uint64)) {
	s.life, s.changes, s.dirs = life, changes, make(map[vfs.Ino]*listing)
}

// open returns the listing of a handle, its round, and how the kernel is to open the
// directory; keep reports whether it may keep names at all. What it kept goes on only if
// the directory has not changed since: it would not see that a time was set back, or a
// change whose request was given up. It keeps none for longer than names, so that it asks
// for attributes along with names again.
func (s *listings) open(ino vfs.Ino, keep bool) (l *listing, round uint64, flags uint32) {
	begun, ended := s.changes(ino)
	if !keep || s.life <= 0 || begun != ended {
		return &listing{ino: ino}, 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l = s.dirs[ino]
	flags = fuse.FOPEN_CACHE_DIR
	if l != nil && l.dropped.Load() == l.round && ended == l.changes && time.Since(l.begun) < s.life {
		flags |= fuse.FOPEN_KEEP_CACHE
	}
	if l != nil && l.opens == 0 {
		s.wake(l)
	}
	if flags&fuse.FOPEN_KEEP_CACHE == 0 {
		if l == nil || l.opens == 0 { // nobody has its numbers any more
			l = s.add(ino)
		}
		l.round++
		l.changes, l.begun = ended, time.Now()
	}
	l.opens++
	return l, l.round, flags
}

// add begins the listing of a directory. mu is held.
func (s *listings) add(ino vfs.Ino) *listing {
	l := &listing{ino: ino, shared: true}
	s.dirs[ino] = l
	return l
}

// restore returns the listing of a handle of the server before, of which the kernel has
// numbers.
func (s *listings) restore(ino vfs.Ino) *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.dirs[ino]
	if l == nil {
		l = s.add(ino)
		l.round = 1 // of which nobody reads: what the kernel kept is not known
		l.last, l.pass = restoredPass, restoredPass
	}
	l.opens++
	return l
}

// close takes back what a handle had.
func (s *listings) close(l *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.opens--; !l.shared || l.opens > 0 {
		return
	}
	l.idle = s.idle.PushBack(l)
	s.held += l.cost()
	for s.held > maxIdlePositions {
		s.drop(s.idle.Front().Value.(*listing))
	}
	s.plan()
}

// cost returns how many positions it counts for.
func (l *listing) cost() int { return l.size() + listingPositions }

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
