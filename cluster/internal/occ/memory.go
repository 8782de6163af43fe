package occ

import "bytes"

// Memory remembers pairs and their versions for an engine whose server compares
// versions. What it holds may be old: who uses it has it compared. It is safe for
// concurrent use.
type Memory struct{ pairs *PairTable }

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{NewPairTable()} }

// at returns the pair as one that was read.
func (p *PairEntry) at() KeyVersion { return KeyVersion{p.Key, int64(p.Version)} }

func (m *Memory) get(key []byte) *PairEntry {
	if p := m.pairs.Slot(key).Load(); p != nil && bytes.Equal(p.Key, key) {
		return p
	}
	return nil
}

// Has reports whether the pair of key is remembered.
func (m *Memory) Has(key []byte) bool { return m.get(key) != nil }

// Found remembers and returns a pair as the server has it; a nil value is none. It
// keeps the value.
func (m *Memory) Found(key, value []byte, version int64) *PairEntry {
	p := &PairEntry{Key: bytes.Clone(key), Value: value, Version: uint64(version)}
	m.put(p)
	return p
}

// put remembers p, unless what stands there is as new, or somebody was faster. Of a
// pair that is absent it is not known which is newer: the last one counts.
func (m *Memory) put(p *PairEntry) {
	s := m.pairs.Slot(p.Key)
	old := s.Load()
	if old != nil && p.Version != 0 && old.Version >= p.Version && bytes.Equal(old.Key, p.Key) {
		return
	}
	if len(p.Value) > MaxPairValue {
		m.Forget(p.Key)
	} else {
		m.pairs.Replace(s, old, p)
	}
}

// Wrote remembers what a commit wrote as version; the values of deleted keys are
// nil. It keeps a copy of each. Commits of one client may come in another order than
// they had: a pair that is newer stays.
func (m *Memory) Wrote(keys, values [][]byte, version int64) {
	for i, key := range keys {
		p := &PairEntry{Key: bytes.Clone(key)}
		if values[i] != nil {
			p.Version = uint64(version)
			p.Value = append([]byte{}, values[i]...)
		}
		m.put(p)
		if now := m.get(key); now != nil && now != p && (p.Version == 0 || now.Version < p.Version) {
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
func (m *Memory) forget(p *PairEntry) { m.pairs.Replace(m.pairs.Slot(p.Key), p, nil) }
