package feed

import (
	"sync/atomic"

	"ogw/vfs/internal/record"
)

// changeSlots is how many counters inodes share: so many that two busy
// directories rarely meet. Meeting costs a client's cache, never its truth.
const changeSlots = 4096

// changeCounts counts the changes of each inode by transactions of this
// process, when they begin and when everyone was notified of their end. A door
// that saw no change in flight, did one of its own and then counts one more,
// knows that the attributes it read before and after are those around its
// own change (NFS: weak cache consistency, RFC 1813 section 2.6).
type changeCounts struct {
	slots [changeSlots]struct{ begun, ended atomic.Uint64 }
}

func (c *changeCounts) begin(ino record.Ino) { c.slots[ino%changeSlots].begun.Add(1) }

func (c *changeCounts) end(events []Event) {
	for i := range events {
		c.slots[events[i].Ino%changeSlots].ended.Add(1)
	}
}

// Changes counts the changes of ino, and of others with which it shares a
// counter: those that transactions of this process announced, and those that
// are over, committed or not. It says nothing of other processes; see
// Complete.
func (f *Feed) Changes(ino record.Ino) (begun, ended uint64) {
	s := &f.changes.slots[ino%changeSlots]
	ended = s.ended.Load() // first: equality then means that none is under way
	return s.begun.Load(), ended
}
