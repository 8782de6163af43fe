package local

import (
	"bytes"
	"slices"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

const (
	// maxWrittenPair is the largest value that a commit remembers: names and
	// attributes are asked for again at once, contents perhaps never. Of a larger
	// one it remembers the head: a page is overwritten again without being read.
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

// remembered is how many bytes are remembered of a value of some length that nobody
// has read.
func remembered(length int) int {
	if length > maxWrittenPair {
		return cluster.HeadBytes
	}
	return length
}

// pairAt returns what stands in the slot, and reports whether that is the pair of
// key at version.
func pairAt(s *occ.PairSlot, key []byte, version uint64) (p *occ.PairEntry, ok bool) {
	p = s.Load()
	// An entry may come to stand here although a commit was faster than who
	// filled it in; it is older than the slot then.
	ok = p != nil && p.Version <= version && s.Changed.Load() <= p.Version && bytes.Equal(p.Key, key)
	return p, ok
}

// fill remembers p, if nothing wrote to the slot since its version. It keeps all but
// the key. old is what stood in the slot before Pebble was asked: what was added since
// is not displaced.
func (c pairCache) fill(s *occ.PairSlot, old, p *occ.PairEntry) {
	if len(p.Value) > occ.MaxPairValue || s.Changed.Load() > p.Version {
		return
	}
	p.Key = bytes.Clone(p.Key)
	c.Replace(s, old, p)
}

// wrote is called for each commit in order, before it is applied. It keeps
// the keys.
func (c pairCache) wrote(version uint64, keys [][]byte, values [][]byte) {
	for i, key := range keys {
		s := c.Slot(key)
		s.Changed.Store(version)
		var p *occ.PairEntry
		if len(keys) <= maxWrittenPairs {
			kept := remembered(len(values[i]))
			p = &occ.PairEntry{Key: key, Value: slices.Clip(bytes.Clone(values[i][:kept])), Version: version, More: len(values[i]) - kept}
		}
		c.Swap(s, p)
	}
}
