package vfs

import (
	"sync/atomic"
	"time"
)

// moveBound is how long a MoveStamp lasts where other processes may change
// the store: as long as doors may be behind them anyway.
const moveBound = time.Second

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
func (fs *FS) MoveStamp() MoveStamp {
	if fs.moves.running.Load() != 0 {
		return MoveStamp{}
	}
	return MoveStamp{fs.moves.ended.Load(), time.Now()}
}

// Unmoved reports that no directory changed its place since s; where other
// processes may change the store, that none did up to a second ago.
func (fs *FS) Unmoved(s MoveStamp) bool {
	switch {
	case s.taken.IsZero() || fs.moves.running.Load() != 0 || fs.moves.ended.Load() != s.ended:
		return false
	case fs.Exclusive():
		return true
	}
	return time.Since(s.taken) < moveBound
}
