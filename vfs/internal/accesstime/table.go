// Package accesstime keeps access times in memory until somebody stores them, so
// that reading costs no transaction.
package accesstime

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Max bounds the times that are kept, about 100 bytes each (3 MiB). Those of
	// further reads are not noted until the others are stored.
	Max = 1 << 15
	// shards keeps readers of different files apart.
	shards = 64
	// day is the age from which a time moves with the next read, as relatime says
	// (mount(8)).
	day = int64(24 * time.Hour)
)

// Table holds times by inode number, in Unix nanoseconds. The zero Table is ready.
type Table struct {
	turn   atomic.Uint64
	n      atomic.Int64
	shards [shards]shard
}

type shard struct {
	mu sync.Mutex
	m  map[uint64]times
}

// times are what an inode's record holds, and what it is to hold. The entry is
// for that record alone: who sets a time makes it void.
type times struct{ stored, read int64 }

// Entry is a time to be stored in the place of another.
type Entry struct {
	Ino          uint64
	Stored, Read int64
}

// Due reports whether a read now moves an access time, under relatime: unless that
// is later than the other times, and younger than a day.
func Due(access, modified, changed, now int64) bool {
	return access <= modified || access <= changed || now-access >= day
}

// Turn is a number, never 0, that NextTurn moves: who found in this turn that there
// is nothing to note looks again in the next.
func (t *Table) Turn() uint64 { return t.turn.Load() + 1 }

// NextTurn ends a turn.
func (t *Table) NextTurn() { t.turn.Add(1) }

func (t *Table) shard(ino uint64) *shard { return &t.shards[ino%shards] }

// Get returns the time of the last read of an inode whose record holds stored.
func (t *Table) Get(ino uint64, stored int64) (read int64, ok bool) {
	if t.n.Load() == 0 {
		return 0, false
	}
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.m[ino]
	return e.read, ok && e.stored == stored
}

// Note keeps a time of reading in the place of the one that was shown, the
// stored one or a noted one. It reports false if there is no room.
func (t *Table) Note(ino uint64, shown, read int64) bool {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.m[ino]
	switch {
	case ok && e.read == shown:
		e.read = read
	case ok && e.stored == shown:
		// Two read at once, and the other was first. Its time may have been shown,
		// and a third reader comes with it.
		return true
	case ok:
		e = times{shown, read}
	case t.n.Load() >= Max:
		return false
	default:
		t.n.Add(1)
		e = times{shown, read}
	}
	if s.m == nil {
		s.m = make(map[uint64]times)
	}
	s.m[ino] = e
	return true
}

// Forget drops what is noted of an inode.
func (t *Table) Forget(ino uint64) {
	if t.n.Load() == 0 {
		return
	}
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.m[ino]; ok {
		delete(s.m, ino)
		t.n.Add(-1)
	}
}

// Done drops an entry, unless there was a later read.
func (t *Table) Done(e Entry) {
	s := t.shard(e.Ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.m[e.Ino]; ok && now == (times{e.Stored, e.Read}) {
		delete(s.m, e.Ino)
		t.n.Add(-1)
	}
}

// Crowded reports whether half of the room is taken.
func (t *Table) Crowded() bool { return t.n.Load() >= Max/2 }

// Entries returns what is noted.
func (t *Table) Entries() (list []Entry) {
	if t.n.Load() == 0 {
		return nil
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for ino, e := range s.m {
			list = append(list, Entry{ino, e.stored, e.read})
		}
		s.mu.Unlock()
	}
	return list
}
