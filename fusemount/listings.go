package fusemount

import (
	"container/list"
	"math/rand/v2"
	"sync"
	"time"

	"ogw/vfs"
)

const (
	// maxListed bounds the positions of all listings, of which each counts for
	// listingPositions more.
	maxListed        = 1 << 20
	listingPositions = 4
	// listingIdle is how long after a READDIR it is known where its reader goes on.
	listingIdle = 10 * time.Minute
	// maxIdleStreams bounds the readers for whom the rest of a page of entries is kept, for
	// streamIdle after their READDIR.
	maxIdleStreams = 16
	streamIdle     = 2 * time.Second
	// restoredPass bounds the pass with which listings begin at a server that took the mount over
	// from another one; it must be one that the other did not have.
	restoredPass = 1 << 30
	// sweepMin bounds how often listings are looked through.
	sweepMin = 10 * time.Millisecond
)

// listing is a directory that the kernel lists without having opened it. It keeps the names,
// and gives what it kept for one reader to any other.
type listing struct {
	numbers
	ino vfs.Ino

	// The rest is under listings.mu.

	reads int           // READDIRs under way
	read  time.Time     // the last one
	used  *list.Element // of listings.used
	held  int           // positions that it counts for
	begun time.Time     // the kernel keeps names that are no older
	kept  *list.Element // of listings.kept; nil: it keeps none
}

// idleStream is a stream of which the rest of the page may be wanted.
type idleStream struct {
	ino  vfs.Ino
	from *vfs.DirStream
	put  time.Time
}

// listings are those of a superblock, the longest unused of which are forgotten.
type listings struct {
	life time.Duration // how long the kernel keeps names
	drop func(vfs.Ino) // has it drop what it keeps of a directory

	mu      sync.Mutex
	dirs    map[vfs.Ino]*listing
	used    list.List     // of *listing, the longest unused first
	kept    list.List     // of *listing, the oldest first
	held    int           // positions of all
	base    uint64        // pass with which a listing begins: no other of its directory had it
	streams []*idleStream // the longest idle first
	sweeps  bool          // a sweep will come
	ends    bool          // one of streams will
}

func (s *listings) init(life time.Duration, drop func(vfs.Ino)) {
	s.life, s.drop, s.dirs = life, drop, make(map[vfs.Ino]*listing)
}

// goOn prepares for readers that have positions of the server before, which are not known.
func (s *listings) goOn() { s.base = 1 + uint64(rand.Uint32N(restoredPass)) }

// begin returns the listing of a directory for a READDIR.
func (s *listings) begin(ino vfs.Ino) *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.dirs[ino]
	if l == nil {
		l = &listing{ino: ino}
		l.pass, l.last = s.base, s.base
		l.used = s.used.PushBack(l)
		s.dirs[ino] = l
	}
	l.reads++
	return l
}

// end comes after a READDIR; first: of the first entries, which the kernel keeps.
func (s *listings) end(l *listing, first bool) {
	s.mu.Lock()
	l.reads--
	l.read = time.Now()
	s.used.MoveToBack(l.used)
	held := l.size() + listingPositions
	s.held += held - l.held
	l.held = held
	if first && l.kept == nil {
		l.begun, l.kept = l.read, s.kept.PushBack(l)
	}
	var dropped []vfs.Ino
	for e := s.used.Front(); e != nil && s.held > maxListed; {
		old := e.Value.(*listing)
		if e = e.Next(); old.reads == 0 {
			dropped = s.forget(old, dropped)
		}
	}
	if !s.sweeps {
		s.sweeps = true
		time.AfterFunc(max(s.life, sweepMin), s.sweep)
	}
	s.mu.Unlock()
	s.dropAll(dropped)
}

// forget forgets a listing, and adds its directory to those of which the kernel is to drop
// what it keeps. mu is held.
func (s *listings) forget(l *listing, dropped []vfs.Ino) []vfs.Ino {
	s.used.Remove(l.used)
	s.held -= l.held
	s.base = max(s.base, l.passes())
	delete(s.dirs, l.ino)
	return s.unkeep(l, dropped)
}

// unkeep is forget of what the kernel keeps. mu is held.
func (s *listings) unkeep(l *listing, dropped []vfs.Ino) []vfs.Ino {
	if l.kept == nil {
		return dropped
	}
	s.kept.Remove(l.kept)
	l.kept = nil
	return append(dropped, l.ino)
}

// dropAll notifies the kernel. It is not for callers that hold mu.
func (s *listings) dropAll(dirs []vfs.Ino) {
	for _, ino := range dirs {
		s.drop(ino)
	}
}

// sweep has the kernel drop names that are older than their entries, so that a listing brings
// attributes again, and forgets what nobody reads any more.
func (s *listings) sweep() {
	now := time.Now()
	var dropped []vfs.Ino
	s.mu.Lock()
	for e := s.kept.Front(); e != nil; e = s.kept.Front() {
		l := e.Value.(*listing)
		if now.Sub(l.begun) < s.life {
			break
		}
		dropped = s.unkeep(l, dropped)
	}
	for e := s.used.Front(); e != nil; {
		l := e.Value.(*listing)
		if now.Sub(l.read) < listingIdle {
			break
		}
		if e = e.Next(); l.reads == 0 {
			dropped = s.forget(l, dropped)
		}
	}
	if s.sweeps = len(s.dirs) > 0; s.sweeps {
		time.AfterFunc(max(s.life, sweepMin), s.sweep)
	}
	s.mu.Unlock()
	s.dropAll(dropped)
}

// take returns a stream that another reader left behind a position, or nil.
func (s *listings) take(ino vfs.Ino, after string) *vfs.DirStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.streams) - 1; i >= 0; i-- {
		if x := s.streams[i]; x.ino == ino && x.from.Holds(after) {
			s.streams = append(s.streams[:i], s.streams[i+1:]...)
			return x.from
		}
	}
	return nil
}

// put keeps a stream for the next READDIR.
func (s *listings) put(ino vfs.Ino, from *vfs.DirStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == maxIdleStreams {
		s.streams = append(s.streams[:0], s.streams[1:]...)
	}
	s.streams = append(s.streams, &idleStream{ino: ino, from: from, put: time.Now()})
	if !s.ends {
		s.ends = true
		time.AfterFunc(streamIdle, s.endStreams)
	}
}

// endStreams gives back what nobody came for.
func (s *listings) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.streams) && time.Since(s.streams[n].put) >= streamIdle {
		n++
	}
	s.streams = append([]*idleStream(nil), s.streams[n:]...)
	if s.ends = len(s.streams) > 0; s.ends {
		time.AfterFunc(streamIdle, s.endStreams)
	}
}
