package occ

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"
)

const (
	// memorySlots is how many pairs a Memory holds; two that share a slot
	// displace each other.
	memorySlots = 1 << 16
	// memoryBytes bounds what they hold together.
	memoryBytes = 32 << 20
	// memoryOverheadBytes is what a pair takes besides its bytes.
	memoryOverheadBytes = 96
	// maxMemoryValue keeps a few large values from displacing all others.
	maxMemoryValue = 64 << 10
)

// Memory remembers pairs and their versions for an engine whose server compares
// versions. What it holds may be old: who uses it has it compared. It is safe for
// concurrent use.
type Memory struct {
	seed  maphash.Seed
	slots []atomic.Pointer[memoryPair]
	bytes atomic.Int64
	hand  atomic.Uint32 // next slot to empty for space
}

// memoryPair is immutable.
type memoryPair struct {
	key, value []byte // a nil value: there is none
	version    int64
}

func (p *memoryPair) size() int64 {
	if p == nil {
		return 0
	}
	return int64(len(p.key) + len(p.value) + memoryOverheadBytes)
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[memoryPair], memorySlots)}
}

func (m *Memory) slot(key []byte) *atomic.Pointer[memoryPair] {
	return &m.slots[maphash.Bytes(m.seed, key)%memorySlots]
}

func (m *Memory) get(key []byte) *memoryPair {
	if p := m.slot(key).Load(); p != nil && bytes.Equal(p.key, key) {
		return p
	}
	return nil
}

// put remembers p, unless what stands there is as new, or somebody was faster. Of a
// pair that is absent it is not known which is newer: the last one counts.
func (m *Memory) put(p *memoryPair) {
	s := m.slot(p.key)
	old := s.Load()
	if old != nil && p.version != 0 && old.version >= p.version && bytes.Equal(old.key, p.key) {
		return
	}
	if len(p.value) > maxMemoryValue {
		m.Forget(p.key)
	} else if s.CompareAndSwap(old, p) {
		m.grew(p.size() - old.size())
	}
}

// Wrote remembers what a commit wrote as version; the values of deleted keys are
// nil. It keeps a copy of each. Commits of one client may come in another order than
// they had: a pair that is newer stays.
func (m *Memory) Wrote(keys, values [][]byte, version int64) {
	for i, key := range keys {
		p := &memoryPair{key: bytes.Clone(key)}
		if values[i] != nil {
			p.version = version
			p.value = append([]byte{}, values[i]...)
		}
		m.put(p)
		if now := m.get(key); now != nil && now != p && (p.version == 0 || now.version < p.version) {
			m.forget(now) // another one was faster, with what was before this
		}
	}
}

// Forget drops the pairs of keys: what a commit made of them is not known.
func (m *Memory) Forget(keys ...[]byte) {
	for _, key := range keys {
		if p := m.get(key); p != nil {
			m.forget(p)
		}
	}
}

// forget drops p, if it still stands there.
func (m *Memory) forget(p *memoryPair) {
	if m.slot(p.key).CompareAndSwap(p, nil) {
		m.bytes.Add(-p.size())
	}
}

// grew makes room: what stands at the hand goes, used or not.
func (m *Memory) grew(by int64) {
	m.bytes.Add(by)
	for i := 0; i < memorySlots && m.bytes.Load() > memoryBytes; i++ {
		s := &m.slots[m.hand.Add(1)%memorySlots]
		if old := s.Load(); old != nil && s.CompareAndSwap(old, nil) {
			m.bytes.Add(-old.size())
		}
	}
}
