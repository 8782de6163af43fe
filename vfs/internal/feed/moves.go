package feed

import (
	"sync/atomic"
	"time"

	"ogw/vfs/internal/record"
)

// fileMoveSlots is how many clocks the files share. Where two meet, the place of one is read
// once more for a move of the other.
const fileMoveSlots = 256

// moveClock counts moves. The directories have one clock: their moves are rare, and all that
// changes where a directory lies, so that who remembers that has to forget it then.
// Those of files are not rare, and change where one file lies.
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

// still reports whether no move was under way since ended were over.
func (c *moveClock) still(ended uint64) bool {
	return c.running.Load() == 0 && c.ended.Load() == ended
}

// MoveStamp is a moment between two renames of directories, and of one file if it is
// of one. The zero value is none.
type MoveStamp struct {
	ended     uint64
	taken     time.Time  // zero: a rename was under way
	file      record.Ino // 0: of directories alone
	fileEnded uint64
}

// MoveStamp returns the moment. What is read of the places of directories
// afterwards holds as long as Unmoved says so.
func (f *Feed) MoveStamp() MoveStamp {
	if f.moves.running.Load() != 0 {
		return MoveStamp{}
	}
	return MoveStamp{ended: f.moves.ended.Load(), taken: time.Now()}
}

// MoveStampOf is MoveStamp for the place of ino, which may be a file's: it does not hold
// either when ino got another directory, or lost one of several links.
func (f *Feed) MoveStampOf(ino record.Ino) MoveStamp {
	c := f.fileClock(ino)
	if c.running.Load() != 0 {
		return MoveStamp{}
	}
	ended := c.ended.Load()
	s := f.MoveStamp()
	s.file, s.fileEnded = ino, ended
	return s
}

func (f *Feed) fileClock(ino record.Ino) *moveClock { return &f.fileMoves[ino%fileMoveSlots] }

// Unmoved reports whether nothing that s is of changed its place since; where other
// processes may change the store, whether none did up to StaleBound ago.
func (f *Feed) Unmoved(s MoveStamp) bool {
	if s.taken.IsZero() || !f.moves.still(s.ended) || s.file != 0 && !f.fileClock(s.file).still(s.fileEnded) {
		return false
	}
	return f.Current(s.taken)
}
