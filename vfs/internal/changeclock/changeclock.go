package changeclock

import (
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// clockSlots is how many slots all inodes share: so many that the changes of
// some rarely make others be read again.
const clockSlots = 1 << 16

// Clock reports whether the record of an inode may have changed. A
// transaction is counted in the slots of the inodes that it writes before it
// commits, and stamps them when it is over. So nothing has to be reported to
// those who remember values: theirs is the store's while the slot is quiet
// since the moment before they read it.
type Clock struct {
	now   atomic.Uint64 // stamps given so far
	slots [clockSlots]struct {
		running atomic.Int64
		last    atomic.Uint64 // stamp of the last change that ended
	}
}

// Stamp is what the last change that ended left; 0 without a clock.
func (c *Clock) Stamp() uint64 {
	if c == nil {
		return 0
	}
	return c.now.Load()
}

// begin counts a change of what shares the slot.
func (c *Clock) begin(slot uint32) { c.slots[slot].running.Add(1) }

// end is called for each begin, whatever the outcome of the change.
func (c *Clock) end(slot uint32) {
	s := &c.slots[slot]
	stamp := c.now.Add(1)
	for {
		last := s.last.Load()
		if last >= stamp || s.last.CompareAndSwap(last, stamp) {
			break
		}
	}
	s.running.Add(-1)
}

// Quiet reports whether no change is under way, and that none ended after now
// stood at stamp: what a snapshot said that was taken later is still so.
func (c *Clock) Quiet(slot uint32, stamp uint64) bool {
	s := &c.slots[slot]
	// In this order: a change that ends in between has left its stamp.
	return s.running.Load() == 0 && s.last.Load() <= stamp
}

func InodeSlot(ino record.Ino) uint32 { return uint32(ino % clockSlots) }

// Txn is a transaction that reports to the clock which inodes it changes.
type Txn struct {
	cluster.Txn
	Clock   *Clock // nil: nobody asks it
	touched []uint32
}

// Set implements cluster.Txn.
func (r *Txn) Set(key, value []byte) error {
	r.touch(key)
	return r.Txn.Set(key, value)
}

// Delete implements cluster.Txn.
func (r *Txn) Delete(key []byte) error {
	r.touch(key)
	return r.Txn.Delete(key)
}

// touch looks for the keys that an inode's attributes are made of.
func (r *Txn) touch(key []byte) {
	if r.Clock == nil || len(key) != 9 || key[0] != record.TabInode && key[0] != record.TabDirTime {
		return
	}
	slot := InodeSlot(record.InoOfKey(key))
	r.Clock.begin(slot)
	r.touched = append(r.touched, slot)
}

// End is called when the transaction is over, with what all attempts touched.
func (r *Txn) End() {
	for _, slot := range r.touched {
		r.Clock.end(slot)
	}
}
