package occ

import (
	"bytes"
	"fmt"
	"testing"
)

func TestPairTableIsBounded(t *testing.T) {
	pairs, value := NewPairTable(), bytes.Repeat([]byte{1}, MaxPairValue)
	const keys = 3 * PairBytes / MaxPairValue
	lost := 0
	for i := range keys {
		p := &PairEntry{Key: fmt.Append(nil, i), Value: value, Version: 1}
		s := pairs.Slot(p.Key)
		if !pairs.Replace(s, s.Load(), p) {
			t.Fatalf("pair %d was not taken", i)
		}
		if s.Load() != p {
			lost++ // the hand was there
		}
	}
	if lost > keys/10 {
		t.Errorf("%d of %d pairs were gone at once", lost, keys)
	}
	held := int64(0)
	for i := range pairs.slots {
		held += pairs.slots[i].Load().size()
	}
	if got := pairs.bytes.Load(); got != held || got > PairBytes || got < PairBytes/2 {
		t.Errorf("%d bytes are held, %d counted, at most %d are allowed", held, got, PairBytes)
	}
}

func TestPairTableReplaces(t *testing.T) {
	pairs := NewPairTable()
	a := &PairEntry{Key: []byte("k"), Value: []byte("a"), Version: 1}
	b := &PairEntry{Key: []byte("k"), Value: []byte("longer"), Version: 2}
	s := pairs.Slot(a.Key)
	if !pairs.Replace(s, nil, a) || pairs.Replace(s, nil, b) || s.Load() != a {
		t.Errorf("in the slot: %+v", s.Load())
	}
	pairs.Swap(s, b)
	if s.Load() != b || pairs.bytes.Load() != b.size() {
		t.Errorf("in the slot: %+v, %d bytes are counted", s.Load(), pairs.bytes.Load())
	}
	if !pairs.Replace(s, b, nil) || s.Load() != nil || pairs.bytes.Load() != 0 {
		t.Errorf("in the slot: %+v, %d bytes are counted", s.Load(), pairs.bytes.Load())
	}
}
