package vfs

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
