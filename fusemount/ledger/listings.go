package ledger

import (
	"sync"
	"sync/atomic"
)

// listingSlots is how many listings are remembered, more than the levels of most trees; they
// fit behind the header, where servers that do not know them leave them alone.
const listingSlots = 64

// Listing names a listing of a directory: of an open one, or of whoever lists it unopened (0), in one
// of its passes.
type Listing struct{ Ino, FH, Pass uint64 }

// listingSlot is a listing, and what the directory was when it began. ino is stored last; 0: free.
type listingSlot struct {
	ino, fh, pass uint64
	ctime         int64
	ended         uint64 // 1: a reader came to the end
}

func (x *listingSlot) is(l Listing) bool {
	return atomic.LoadUint64(&x.ino) == l.Ino && x.fh == l.FH && x.pass == l.Pass
}

// Listings are the times of change that directories had when listings of them began: one of which
// it is the same is where it was. It is safe for concurrent use.
type Listings struct {
	mu    sync.Mutex
	slots *[listingSlots]listingSlot
	used  [listingSlots]uint64 // by slot, in the order of their last use; 0: ended, or free
	uses  uint64
}

func newListings(slots *[listingSlots]listingSlot) *Listings {
	s := &Listings{slots: slots, uses: 1}
	for i := range slots {
		if slots[i].ino != 0 && slots[i].ended == 0 {
			s.used[i] = s.uses
		}
	}
	return s
}

// Begin notes a change time, in nanoseconds, for a listing that has none. It takes the place of one
// that ended, or of the longest unused.
func (s *Listings) Begin(l Listing, ctime int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.use(l) {
		return
	}
	free := 0
	for i, used := range s.used {
		if used < s.used[free] {
			free = i
		}
	}
	x := &s.slots[free]
	atomic.StoreUint64(&x.ino, 0)
	x.fh, x.pass, x.ctime = l.FH, l.Pass, ctime
	atomic.StoreUint64(&x.ino, l.Ino)
	s.use(l)
}

// GoOn notes that a listing is being read.
func (s *Listings) GoOn(l Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(l)
}

// use is GoOn; false, if l is not there. Under mu.
func (s *Listings) use(l Listing) bool {
	i := s.find(l)
	if i < 0 {
		return false
	}
	s.uses++
	s.used[i], s.slots[i].ended = s.uses, 0
	return true
}

// End notes that a listing was read to the end, by one reader at least.
func (s *Listings) End(l Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(l); i >= 0 {
		s.used[i], s.slots[i].ended = 0, 1
	}
}

// Began returns the change time of the directory when a listing began, if it is known.
func (s *Listings) Began(l Listing) (ctime int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(l); i >= 0 {
		return s.slots[i].ctime, true
	}
	return 0, false
}

func (s *Listings) find(l Listing) int {
	for i := range s.slots {
		if s.slots[i].is(l) {
			return i
		}
	}
	return -1
}
