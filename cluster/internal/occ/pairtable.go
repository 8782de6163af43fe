package occ

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// PairSlots is how many pairs a PairTable holds; two that share a slot displace
	// each other.
	PairSlots = 1 << 17
	// PairBytes bounds what they hold together.
	PairBytes = 32 << 20
	// pairOverheadBytes is what a pair takes besides its bytes.
	pairOverheadBytes = 96
	// MaxPairValue keeps a few large values from displacing all others.
	MaxPairValue = 64 << 10
)

// PairTable remembers pairs that were read or written last, each in the slot of its key.
// Which of two is newer, and whether one still holds, is for its user to know. It is
// safe for concurrent use.
type PairTable struct {
	seed  maphash.Seed
	slots []PairSlot
	bytes atomic.Int64
	hand  atomic.Uint32 // next slot to empty for space
}

// PairEntry is immutable, but for since: Key has had Value since Version. A nil Value: there
// is no such key.
type PairEntry struct {
	Key, Value []byte
	Version    uint64
	More       int // bytes that the value has behind those of Value

	since atomic.Uint64 // stamp, for a Memory
}

// PairSlot holds one pair, or none.
type PairSlot struct {
	pair atomic.Pointer[PairEntry]
	// Changed is for a user that counts in it what its commits wrote.
	Changed atomic.Uint64
}

// NewPairTable returns an empty one.
func NewPairTable() *PairTable {
	return &PairTable{seed: maphash.MakeSeed(), slots: make([]PairSlot, PairSlots)}
}

// Slot returns the place of key.
func (t *PairTable) Slot(key []byte) *PairSlot {
	return &t.slots[maphash.Bytes(t.seed, key)%PairSlots]
}

// Load returns what stands in the slot: perhaps the pair of another key, or nil.
func (s *PairSlot) Load() *PairEntry { return s.pair.Load() }

// Swap puts p, or nil for none, in the place of whatever stands in s.
func (t *PairTable) Swap(s *PairSlot, p *PairEntry) {
	t.grew(p.size() - s.pair.Swap(p).size())
}

// Replace puts p, or nil for none, in the place of old, and reports whether that
// stood there.
func (t *PairTable) Replace(s *PairSlot, old, p *PairEntry) bool {
	ok := s.pair.CompareAndSwap(old, p)
	if ok {
		t.grew(p.size() - old.size())
	}
	return ok
}

func (p *PairEntry) size() int64 {
	if p == nil {
		return 0
	}
	return int64(len(p.Key) + len(p.Value) + pairOverheadBytes)
}

// grew makes room: what stands at the hand goes, used or not.
func (t *PairTable) grew(by int64) {
	t.bytes.Add(by)
	for i := 0; i < PairSlots && t.bytes.Load() > PairBytes; i++ {
		s := &t.slots[t.hand.Add(1)%PairSlots]
		if old := s.pair.Load(); old != nil && s.pair.CompareAndSwap(old, nil) {
			t.bytes.Add(-old.size())
		}
	}
}
