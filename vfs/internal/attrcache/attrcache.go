// Package attrcache remembers the attributes of inodes, decoded.
package attrcache

import (
	"sync/atomic"

	"ogw/vfs/internal/changeclock"
	"ogw/vfs/internal/record"
)

// slots is how many inodes are remembered, about 400 bytes each; two
// that share a slot displace each other.
const slots = 1 << 14

// Cache remembers the stored records of inodes that were asked for last.
// A record is valid while the clock says so, and all is empty wherever another
// process may change the store (see Exclusive).
type Cache struct {
	Clock *changeclock.Clock // nil: nothing is remembered
	Live  func() error       // nothing is answered while it fails; nil: it never does
	slots [slots]atomic.Pointer[Entry]
}

// Entry is immutable.
type Entry struct {
	Inode   *record.Inode
	DirTime []byte
	Stamp   uint64 // of the clock, before it was read
}

// Get returns the entry of ino if it is what the store holds now.
func (c *Cache) Get(ino record.Ino) *Entry {
	if c.Clock == nil || c.Live != nil && c.Live() != nil {
		return nil
	}
	e := c.slots[ino%slots].Load()
	if e == nil || e.Inode.Ino != ino || !c.Clock.Quiet(changeclock.InodeSlot(ino), e.Stamp) {
		return nil
	}
	return e
}

// Put remembers a record, if it is still what the store holds.
func (c *Cache) Put(e *Entry) {
	if c.Clock.Quiet(changeclock.InodeSlot(e.Inode.Ino), e.Stamp) {
		c.slots[e.Inode.Ino%slots].Store(e)
	}
}

// Forget drops what is remembered of ino.
func (c *Cache) Forget(ino record.Ino) {
	s := &c.slots[ino%slots]
	if e := s.Load(); e != nil && e.Inode.Ino == ino {
		s.CompareAndSwap(e, nil)
	}
}
