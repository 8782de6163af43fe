package feed

import (
	"sync/atomic"
	"time"
)

// moveClock counts the renames of directories. They are rare, and all that
// changes where a directory lies: who remembers that has to forget it then.
type moveClock struct {
	running atomic.Int64
	ended   atomic.Uint64
}

// begin counts a rename whose transaction is about to commit.
func (c *moveClock) begin() { c.running.Add(1) }

// end is called for each begin, whatever the outcome.
func (c *moveClock) end(n int) {
	c.ended.Add(uint64(n)) // before: who sees none running sees the new count
	c.running.Add(int64(-n))
}

// MoveStamp is a moment between two renames of directories. The zero value
// is none.
type MoveStamp struct {
	ended uint64
	taken time.Time // zero: a rename was under way
}

// MoveStamp returns the moment. What is read of the places of directories
// afterwards holds as long as Unmoved says so.
func (f *Feed) MoveStamp() MoveStamp {
	if f.moves.running.Load() != 0 {
		return MoveStamp{}
	}
	return MoveStamp{f.moves.ended.Load(), time.Now()}
}

// Unmoved reports whether no directory changed its place since s; where other
// processes may change the store, whether none did up to StaleBound ago.
func (f *Feed) Unmoved(s MoveStamp) bool {
	if s.taken.IsZero() || f.moves.running.Load() != 0 || f.moves.ended.Load() != s.ended {
		return false
	}
	return f.Current(s.taken)
}
