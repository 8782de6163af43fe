package vfs

import "ogw/vfs/internal/record"

// timesSet is when times of a file with unflushed writes were set: the flush leaves them.
// Under openFile.mu.
type timesSet struct {
	turn uint64 // of the last write before
	ctNS int64  // the change time that the transaction gave the inode
}

// keep reports whether n has times that were set after the write with a turn.
func (s *timesSet) keep(turn uint64, ctimeNS int64) bool {
	return s.ctNS != 0 && turn <= s.turn && ctimeNS >= s.ctNS
}

// timesChange is a change of the modification time of a file with unflushed writes; without
// of, of another one.
type timesChange struct {
	of     *openFile
	before timesSet // what was there before
	noted  timesSet // by the last attempt; zero if none came so far
}

// note notes that the transaction that stores n sets the time, within that. Writes that
// come while it runs are before or after it.
func (c *timesChange) note(n *record.Inode) {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.times != c.noted { // by an attempt before
		c.before = c.of.times
	}
	c.noted = timesSet{c.of.turn, n.CtimeNS}
	c.of.times = c.noted
}

// undo follows a transaction that had no effect.
func (c *timesChange) undo() {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.times == c.noted {
		c.of.times = c.before
	}
}
