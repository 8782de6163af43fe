package local

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync/atomic"
)

const (
	// pairSlots is how many pairs are remembered; two that share a slot
	// displace each other.
	pairSlots = 1 << 17
	// pairCacheBytes bounds what they hold together.
	pairCacheBytes = 32 << 20
	// pairOverheadBytes is what a pair takes besides its bytes.
	pairOverheadBytes = 96
	// maxReadPair keeps a few large values from displacing all others.
	maxReadPair = 64 << 10
	// maxWrittenPair is the largest value that a commit remembers: names and
	// attributes are asked for again at once, contents perhaps never.
	maxWrittenPair = 1 << 10
	// maxWrittenPairs is the largest commit that does: of a larger one nobody
	// asks for all again.
	maxWrittenPairs = 64
)

// pairCache remembers pairs as they are now, so that what was written or read
// a moment ago takes no lookup in Pebble, and often not even a snapshot.
//
// A commit replaces the entries of the keys that it writes before they reach
// Pebble, and before that counts in their slots. So what stands in a slot that
// no later version has written to is what any newer snapshot holds, and so is
// what Pebble says of a key of that slot.
type pairCache struct {
	seed  maphash.Seed
	slots []pairSlot
	bytes atomic.Int64
	hand  atomic.Uint32 // next slot to empty for space
}

// pairSlot: changed is set before the entry is.
type pairSlot struct {
	entry   atomic.Pointer[pairEntry]
	changed atomic.Uint64 // the newest version that wrote what shares the slot
}

// pairEntry is immutable: key has had this value since version, and has it
// until its slot changes.
type pairEntry struct {
	key     []byte
	value   []byte // nil: the store has no such key
	version uint64
}

func (e *pairEntry) size() int64 {
	if e == nil {
		return 0
	}
	return int64(len(e.key) + len(e.value) + pairOverheadBytes)
}

func newPairCache() *pairCache {
	return &pairCache{seed: maphash.MakeSeed(), slots: make([]pairSlot, pairSlots)}
}

func (c *pairCache) slot(key []byte) *pairSlot {
	return &c.slots[maphash.Bytes(c.seed, key)%pairSlots]
}

// get returns what stands in the slot, and reports whether that is the pair of
// key at version.
func (s *pairSlot) get(key []byte, version uint64) (e *pairEntry, ok bool) {
	e = s.entry.Load()
	// An entry may come to stand here although a commit was faster than who
	// filled it in; it is older than the slot then.
	ok = e != nil && e.version <= version && s.changed.Load() <= e.version && bytes.Equal(e.key, key)
	return e, ok
}

// fill remembers the value that key has had since version, if nothing wrote to
// the slot since. It keeps the value. old is what stood in the slot before
// Pebble was asked: what was added since is not displaced.
func (c *pairCache) fill(s *pairSlot, old *pairEntry, key, value []byte, version uint64) {
	if len(value) > maxReadPair || s.changed.Load() > version {
		return
	}
	e := &pairEntry{key: bytes.Clone(key), value: value, version: version}
	if s.entry.CompareAndSwap(old, e) {
		c.grew(e.size() - old.size())
	}
}

// wrote is called for each commit in order, before it is applied. It keeps
// the keys.
func (c *pairCache) wrote(version uint64, keys [][]byte, values [][]byte) {
	for i, key := range keys {
		s := c.slot(key)
		s.changed.Store(version)
		var e *pairEntry
		if len(keys) <= maxWrittenPairs && len(values[i]) <= maxWrittenPair {
			e = &pairEntry{key: key, value: slices.Clip(bytes.Clone(values[i])), version: version}
		}
		old := s.entry.Swap(e)
		c.grew(e.size() - old.size())
	}
}

// grew makes room: what stands at the hand goes, used or not.
func (c *pairCache) grew(by int64) {
	c.bytes.Add(by)
	for i := 0; i < pairSlots && c.bytes.Load() > pairCacheBytes; i++ {
		s := &c.slots[c.hand.Add(1)%pairSlots]
		old := s.entry.Load()
		if old != nil && s.entry.CompareAndSwap(old, nil) {
			c.bytes.Add(-old.size())
		}
	}
}
