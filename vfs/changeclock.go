package vfs

import (
	"sync/atomic"

	"ogw/cluster"
)

// clockSlots is how many slots all keys share: so many that the changes of
// some rarely make others be read again.
const clockSlots = 1 << 16

// changeClock tells whether the value of a key may have changed. A
// transaction is counted in the slots of the keys that it writes before it
// commits, and stamps them when it is over. So nothing has to be told to
// those who remember values: theirs is the store's while the slot is quiet
// since the moment before they read it.
type changeClock struct {
	now   atomic.Uint64 // stamps given so far
	slots [clockSlots]struct {
		running atomic.Int64
		last    atomic.Uint64 // stamp of the last change that ended
	}
}

// begin counts a change of what shares the slot.
func (c *changeClock) begin(slot uint32) { c.slots[slot].running.Add(1) }

// end is called for each begin, whatever the outcome of the change.
func (c *changeClock) end(slot uint32) {
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

// quiet tells that no change is under way, and that none ended after now
// stood at stamp: what a snapshot said that was taken later is still so.
func (c *changeClock) quiet(slot uint32, stamp uint64) bool {
	s := &c.slots[slot]
	// In this order: a change that ends in between has left its stamp.
	return s.running.Load() == 0 && s.last.Load() <= stamp
}

func inodeSlot(ino Ino) uint32 { return uint32(ino % clockSlots) }

// recordingTxn is a transaction that tells the clock which keys it writes, and
// takes the entries of directories on the way from the cache.
type recordingTxn struct {
	cluster.Txn
	c       *keyCache
	stamp   uint64 // of the clock, before the transaction
	touched []uint32
	dirs    []hotPair // entries of directories that this attempt read
}

// attempt begins the transaction, or begins it again.
func (r *recordingTxn) attempt(t cluster.Txn) *recordingTxn {
	r.Txn, r.dirs = t, r.dirs[:0]
	return r
}

// Get implements cluster.Reader. Every object operation walks through the
// same directories; to know their entries is enough if the commit fails when
// they change. The snapshot holds what did not change since before it was
// taken.
func (r *recordingTxn) Get(key []byte) ([]byte, error) {
	noter, ok := r.Txn.(cluster.Noter)
	if r.c.off || !ok || key[0] != tabDentry || key[len(key)-1] != '/' {
		return r.Txn.Get(key)
	}
	if e := r.c.get(key); e != nil && e.stamp <= r.stamp && r.c.valid(e) {
		return e.value, noter.Note(key)
	}
	value, err := r.Txn.Get(key)
	if err == nil {
		r.dirs = append(r.dirs, hotPair{key: key, value: value})
	}
	return value, err
}

// remember keeps what was read for others. The transaction is durable, and so
// is what it read.
func (r *recordingTxn) remember() {
	for _, e := range r.dirs {
		r.c.put(e.key, e.value, r.stamp)
	}
}

// Set implements cluster.Txn.
func (r *recordingTxn) Set(key, value []byte) error {
	r.touch(key)
	return r.Txn.Set(key, value)
}

// Delete implements cluster.Txn.
func (r *recordingTxn) Delete(key []byte) error {
	r.touch(key)
	return r.Txn.Delete(key)
}

func (r *recordingTxn) touch(key []byte) {
	if r.c.off {
		return
	}
	_, slot := r.c.hash(key)
	r.c.clock.begin(slot)
	r.touched = append(r.touched, slot)
}

// end is called when the transaction is over, with what all attempts touched.
func (r *recordingTxn) end() {
	for _, slot := range r.touched {
		r.c.clock.end(slot)
	}
}
