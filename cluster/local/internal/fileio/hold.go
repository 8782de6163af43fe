package fileio

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// markBytes is what is remembered to be right as a whole; offsets that are
	// checked begin at a multiple of it.
	markBytes = 64 << 10
	// settledAfter is the age that a file's last change must have: a later one has
	// another time then, however coarse the clock of the file system.
	settledAfter = 2 * time.Second
)

// stamp tells states of a file apart, of which one is settled.
type stamp struct {
	size         int64
	mtime, ctime unix.Timespec
}

// settled reports whether any later change shows.
func (s *stamp) settled(after time.Duration) bool {
	return time.Since(time.Unix(s.ctime.Unix())) >= after
}

// stamper is an open file.
type stamper interface {
	// stamp returns the state that the file is in.
	stamp() (stamp, error)
}

// Locks bounds what is locked in memory.
type Locks struct {
	left    atomic.Int64 // bytes
	refused atomic.Bool  // by the system (RLIMIT_MEMLOCK)
	settled time.Duration
}

func (l *Locks) take(n int64) bool {
	if l.refused.Load() || l.left.Add(-n) < 0 {
		l.left.Add(n)
		return false
	}
	return true
}

// The states of a hold.
const (
	holdFree   = iota
	holdTaking // somebody tries
	holdOn     // the pages are locked in memory
	holdSpoilt // and the file has changed since
)

// hold is what is known of mapped pages that are locked in memory: what was right
// of them is right until the file changes, since nothing is read into them again.
type hold struct {
	state  atomic.Int32
	passed atomic.Int64 // bytes that were checked before
	stamp  stamp        // set before holdOn
	right  atomic.Uint64
}

// marks are the bits of right from off to end.
func marks(off, end int64) uint64 {
	n := (end + markBytes - 1) / markBytes
	return (uint64(1)<<n - 1) &^ (uint64(1)<<(off/markBytes) - 1)
}

// knows reports whether the pages from off to end of the mapping are right, as
// those that anybody finds in the page cache now.
func (h *hold) knows(f stamper, off, end int64) bool {
	if want := marks(off, end); h.state.Load() != holdOn || h.right.Load()&want != want {
		return false
	}
	now, err := f.stamp()
	if err != nil || now != h.stamp {
		h.state.Store(holdSpoilt)
		return false
	}
	return true
}

// take locks data, all of the mapping, after n bytes more were checked: when that is
// more than all of it once, since what is read once is not worth it.
func (h *hold) take(f stamper, data []byte, n int64, l *Locks) {
	if h.passed.Add(n) <= int64(len(data)) || !h.state.CompareAndSwap(holdFree, holdTaking) {
		return
	}
	next := int32(holdFree)
	defer func() {
		h.passed.Store(0)
		h.state.Store(next)
	}()
	now, err := f.stamp()
	if err != nil || !now.settled(l.settled) || !l.take(int64(len(data))) {
		return
	}
	if unix.Mlock(data) != nil {
		l.left.Add(int64(len(data)))
		l.refused.Store(true)
		return
	}
	h.stamp, next = now, holdOn
}

// end gives back n bytes, those of the mapping, which goes.
func (h *hold) end(n int64, l *Locks) {
	if h.state.Load() >= holdOn {
		l.left.Add(n)
	}
}
