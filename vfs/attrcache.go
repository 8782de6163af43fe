package vfs

import (
	"sync/atomic"

	"ogw/vfs/internal/changeclock"
	"ogw/vfs/internal/record"
)

// attrSlots is how many inodes are remembered, about 400 bytes each; two
// that share a slot displace each other.
const attrSlots = 1 << 14

// attrCache remembers the stored records of inodes that were asked for last.
// A record is valid while the clock says so, and all is empty wherever another
// process may change the store (see Exclusive).
type attrCache struct {
	clock *changeclock.Clock // nil: nothing is remembered
	slots [attrSlots]atomic.Pointer[attrEntry]
}

// attrEntry is immutable.
type attrEntry struct {
	n       *record.Inode
	dirTime []byte
	stamp   uint64 // of the clock, before it was read
}

// get returns the entry of ino if it is what the store holds now.
func (c *attrCache) get(ino Ino) *attrEntry {
	if c.clock == nil {
		return nil
	}
	e := c.slots[ino%attrSlots].Load()
	if e == nil || e.n.Ino != ino || !c.clock.Quiet(changeclock.InodeSlot(ino), e.stamp) {
		return nil
	}
	return e
}

// put remembers a record, if it is still what the store holds.
func (c *attrCache) put(e *attrEntry) {
	if c.clock.Quiet(changeclock.InodeSlot(e.n.Ino), e.stamp) {
		c.slots[e.n.Ino%attrSlots].Store(e)
	}
}

func (c *attrCache) forget(ino Ino) {
	s := &c.slots[ino%attrSlots]
	if e := s.Load(); e != nil && e.n.Ino == ino {
		s.CompareAndSwap(e, nil)
	}
}
