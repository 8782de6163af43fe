package local

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// snapshots shares one Pebble snapshot among the readers that begin between
// two commits. To make and to close one takes Pebble's central lock, and
// closing the oldest looks for a compaction: more than a lookup costs.
type snapshots struct {
	db      *pebble.DB
	visible *atomic.Uint64 // version that a new reader must see at least

	mu     sync.Mutex
	latest *snapshot
	old    []*snapshot // those before the latest that somebody uses
}

// snapshot is closed when nobody uses it.
type snapshot struct {
	*pebble.Snapshot
	version uint64 // visible before it was taken
	users   int    // under snapshots.mu; snapshots.latest is one
}

// acquire returns a snapshot that holds at least what is visible.
func (s *snapshots) acquire() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.visible.Load()
	if s.latest == nil || s.latest.version != version {
		s.drop()
		s.latest = &snapshot{s.db.NewSnapshot(), version, 1}
	}
	s.latest.users++
	return s.latest
}

func (s *snapshots) release(snap *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(snap)
}

// expire is called after each commit: a snapshot that no reader will take
// any more must not keep what it replaced on the disk.
func (s *snapshots) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest != nil && s.latest.version != s.visible.Load() {
		s.drop()
	}
}

// close lets the last one go.
func (s *snapshots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// before returns how many readers have a snapshot of before version.
func (s *snapshots) before(version uint64) (readers int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, snap := range s.old {
		if snap.version < version {
			readers += int64(snap.users)
		}
	}
	return readers
}

func (s *snapshots) drop() {
	if s.latest != nil {
		s.old = append(s.old, s.latest)
		s.leave(s.latest)
		s.latest = nil
	}
}

func (s *snapshots) leave(snap *snapshot) {
	if snap.users--; snap.users == 0 {
		snap.Close()
		if i := slices.Index(s.old, snap); i >= 0 {
			s.old = slices.Delete(s.old, i, i+1)
		}
	}
}
