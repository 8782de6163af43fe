package local

import (
	"bytes"
	"slices"

	"ogw/cluster/internal/occ"
)

const (
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
// Pebble, and before that counts in their slots (PairSlot.Changed: the newest
// version that wrote what shares the slot). So what stands in a slot that no
// later version has written to is what any newer snapshot holds, and so is
// what Pebble says of a key of that slot.
type pairCache struct{ *occ.PairTable }

func newPairCache() pairCache { return pairCache{occ.NewPairTable()} }

// pairAt returns what stands in the slot, and reports whether that is the pair of
// key at version.
func pairAt(s *occ.PairSlot, key []byte, version uint64) (p *occ.PairEntry, ok bool) {
	p = s.Load()
	// An entry may come to stand here although a commit was faster than who
	// filled it in; it is older than the slot then.
	ok = p != nil && p.Version <= version && s.Changed.Load() <= p.Version && bytes.Equal(p.Key, key)
	return p, ok
}

// fill remembers the value that key has had since version, if nothing wrote to
// the slot since. It keeps the value. old is what stood in the slot before
// Pebble was asked: what was added since is not displaced.
func (c pairCache) fill(s *occ.PairSlot, old *occ.PairEntry, key, value []byte, version uint64) {
	if len(value) > occ.MaxPairValue || s.Changed.Load() > version {
		return
	}
	c.Replace(s, old, &occ.PairEntry{Key: bytes.Clone(key), Value: value, Version: version})
}

// wrote is called for each commit in order, before it is applied. It keeps
// the keys.
func (c pairCache) wrote(version uint64, keys [][]byte, values [][]byte) {
	for i, key := range keys {
		s := c.Slot(key)
		s.Changed.Store(version)
		var p *occ.PairEntry
		if len(keys) <= maxWrittenPairs && len(values[i]) <= maxWrittenPair {
			p = &occ.PairEntry{Key: key, Value: slices.Clip(bytes.Clone(values[i])), Version: version}
		}
		c.Swap(s, p)
	}
}
