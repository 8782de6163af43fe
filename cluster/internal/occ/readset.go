package occ

import (
	"bytes"
	"hash/maphash"
)

// hashListMax is how many key hashes are kept as a list, which is faster to
// fill and to search than a set while it is short.
const hashListMax = 16

// Hasher hashes keys. The zero value is not usable.
type Hasher struct{ seed maphash.Seed }

// NewHasher returns a Hasher of a random seed.
func NewHasher() Hasher { return Hasher{maphash.MakeSeed()} }

func (h Hasher) sum(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

// keyRange is start <= key < end; a nil end is open.
type keyRange struct{ start, end []byte }

func (r keyRange) contains(key []byte) bool {
	return bytes.Compare(key, r.start) >= 0 && (r.end == nil || bytes.Compare(key, r.end) < 0)
}

// ReadSet is what a transaction read. It is for one goroutine.
type ReadSet struct {
	hasher Hasher
	list   []uint64
	space  [hashListMax]uint64 // of list, while it is short
	set    map[uint64]struct{}
	ranges []keyRange
}

// Reset empties s for another run.
func (s *ReadSet) Reset() { s.list, s.set, s.ranges = s.list[:0], nil, s.ranges[:0] }

// Empty reports whether nothing was read.
func (s *ReadSet) Empty() bool { return len(s.list) == 0 && s.set == nil && len(s.ranges) == 0 }

// AddKey notes that key was read, present or not.
func (s *ReadSet) AddKey(key []byte) {
	h := s.hasher.sum(key)
	if s.set != nil {
		s.set[h] = struct{}{}
		return
	}
	if len(s.list) < hashListMax {
		if s.list == nil {
			s.list = s.space[:0]
		}
		s.list = append(s.list, h)
		return
	}
	s.set = make(map[uint64]struct{}, 8*hashListMax)
	for _, old := range s.list {
		s.set[old] = struct{}{}
	}
	s.set[h] = struct{}{}
}

// AddRange notes that start <= key < end was scanned; a nil end is open. It
// copies what it keeps.
func (s *ReadSet) AddRange(start, end []byte) {
	r := keyRange{start: append([]byte{}, start...)}
	if end != nil {
		r.end = append([]byte{}, end...)
	}
	s.ranges = append(s.ranges, r)
}

func (s *ReadSet) hit(w *writtenKey) bool {
	if s.set != nil {
		if _, ok := s.set[w.hash]; ok {
			return true
		}
	} else {
		for _, h := range s.list {
			if h == w.hash {
				return true
			}
		}
	}
	for _, r := range s.ranges {
		if r.contains(w.key) {
			return true
		}
	}
	return false
}
