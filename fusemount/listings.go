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
	// listingIdle is how long after a READDIR it is known where its reader goes on; readerIdle,
	// if one has not come to the end, as far as is known.
	listingIdle = 10 * time.Minute
	readerIdle  = 24 * time.Hour
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

	reads      int           // READDIRs under way
	unfinished int           // readers that have not come to the end, if they did not give up
	read       time.Time     // the last one
	in         *list.List    // listings.used or reading
	used       *list.Element // of that
	held       int           // positions that it counts for
	since      time.Time     // the kernel keeps names that are no older
	kept       *list.Element // of listings.kept; nil: it keeps none
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
	used    list.List     // of *listing that were read to the end, the longest unused first
	reading list.List     // of the others
	kept    list.List     // of *listing, the oldest first
	held    int           // positions of all
	base    uint64        // pass with which a listing begins: no other of its directory had it
	streams []*idleStream // the longest idle first
	sweeps  *time.Timer   // a sweep will come
	ends    *time.Timer   // one of streams will
	closed  bool          // no more of them
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
		l.in, l.used = &s.used, s.used.PushBack(l)
		s.dirs[ino] = l
	}
	l.reads++
	return l
}

// end comes after a READDIR; first: it brought entries, which the kernel keeps, to a reader that has
// begun, or of whom nothing was known; last: there was nothing left.
func (s *listings) end(l *listing, first, last bool) {
	s.mu.Lock()
	l.reads--
	l.read = time.Now()
	switch {
	case first:
		l.unfinished++
	case last && l.unfinished > 0:
		l.unfinished--
	}
	l.in.Remove(l.used)
	if l.in = &s.used; l.unfinished > 0 {
		l.in = &s.reading
	}
	l.used = l.in.PushBack(l)
	s.count(l)
	if first && l.kept == nil {
		l.since, l.kept = l.read, s.kept.PushBack(l)
	}
	dropped := s.makeRoom()
	s.plan()
	s.mu.Unlock()
	if len(dropped) > 0 {
		go s.dropAll(dropped)
	}
}

// count has a listing count for what it holds now. mu is held.
func (s *listings) count(l *listing) {
	held := l.size() + listingPositions
	s.held += held - l.held
	l.held = held
}

// plan has a sweep come. mu is held.
func (s *listings) plan() {
	if s.sweeps == nil && len(s.dirs) > 0 && !s.closed {
		s.sweeps = time.AfterFunc(min(max(s.life, sweepMin), listingIdle), s.sweep)
	}
}

// close gives back what there is; what is being read, when that ends.
func (s *listings) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range [...]*time.Timer{s.sweeps, s.ends} {
		if t != nil {
			t.Stop()
		}
	}
	s.streams = nil
	s.makeRoom() // the kernel is not there any more, or the next server's
}

// makeRoom forgets what is too much, first what was read to the end, then all but the last positions of
// the others. mu is held.
func (s *listings) makeRoom() (dropped []vfs.Ino) {
	enough := func(*listing) bool { return s.held <= maxListed && !s.closed }
	dropped = s.forgetUntil(enough, &s.used, nil)
	for e := s.reading.Front(); e != nil && s.held > maxListed; e = e.Next() {
		if l := e.Value.(*listing); l.held > lastPositions+listingPositions {
			l.trim()
			s.count(l)
		}
	}
	return s.forgetUntil(enough, &s.reading, dropped)
}

// forgetUntil forgets the longest unused listings of a list until one is enough, but for those that
// are being read. mu is held.
func (s *listings) forgetUntil(enough func(*listing) bool, of *list.List, dropped []vfs.Ino) []vfs.Ino {
	for e := of.Front(); e != nil; {
		l := e.Value.(*listing)
		if enough(l) {
			break
		}
		if e = e.Next(); l.reads == 0 {
			dropped = s.forget(l, dropped)
		}
	}
	return dropped
}

// forget forgets a listing, and adds its directory to those of which the kernel is to drop
// what it keeps. mu is held.
func (s *listings) forget(l *listing, dropped []vfs.Ino) []vfs.Ino {
	l.in.Remove(l.used)
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

// dropAll notifies the kernel. It is not for callers that hold mu, nor for handlers: the kernel may have
// locked what it keeps while it waits for another answer.
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
		if now.Sub(l.since) < s.life {
			break
		}
		dropped = s.unkeep(l, dropped)
	}
	since := func(idle time.Duration) func(*listing) bool {
		return func(l *listing) bool { return now.Sub(l.read) < idle }
	}
	dropped = s.forgetUntil(since(listingIdle), &s.used, dropped)
	dropped = s.forgetUntil(since(readerIdle), &s.reading, dropped)
	s.sweeps = nil
	s.plan()
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
	if s.closed {
		return
	}
	if len(s.streams) == maxIdleStreams {
		s.streams = append(s.streams[:0], s.streams[1:]...)
	}
	s.streams = append(s.streams, &idleStream{ino: ino, from: from, put: time.Now()})
	s.planEnd()
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
	s.ends = nil
	s.planEnd()
}

// planEnd has endStreams come. mu is held.
func (s *listings) planEnd() {
	if s.ends == nil && len(s.streams) > 0 && !s.closed {
		s.ends = time.AfterFunc(streamIdle, s.endStreams)
	}
}
