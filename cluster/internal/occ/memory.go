package occ

import (
	"bytes"
	"slices"

	"ogw/cluster/coherence"
)

// Memory remembers pairs and their versions for an engine whose server compares
// versions. What it holds may be old: who uses it has it compared, or asks whether it
// Holds. It is safe for concurrent use.
type Memory struct {
	pairs *PairTable
	trust *coherence.Trust
}

// NewMemory returns an empty Memory. By trust it knows what others have not changed.
func NewMemory(trust *coherence.Trust) *Memory { return &Memory{NewPairTable(), trust} }

// holdAll reports whether list is what the store has, all at one moment: that between the two
// loops, before which each was read, and after which none had changed.
func (m *Memory) holdAll(list map[string]*PairEntry) bool {
	if !m.trust.Told() {
		return false
	}
	type read struct {
		line  coherence.Line
		since coherence.Stamp
	}
	reads := make([]read, 0, len(list))
	for _, p := range list {
		reads = append(reads, read{coherence.LineOf(p.Key), coherence.Stamp(p.since.Load())})
	}
	for _, r := range reads {
		if !m.trust.Holds(r.line, r.since) {
			return false
		}
	}
	return true
}

// verified notes that the store had p after s.
func (p *PairEntry) verified(s coherence.Stamp) {
	for {
		old := p.since.Load()
		if old >= uint64(s) || p.since.CompareAndSwap(old, uint64(s)) {
			return
		}
	}
}

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

// Found remembers and returns a pair as the server had it after since; a nil value is none.
// It keeps the value.
func (m *Memory) Found(key, value []byte, version int64, since coherence.Stamp) *PairEntry {
	p := &PairEntry{Key: bytes.Clone(key), Value: value, Version: uint64(version)}
	p.verified(since)
	m.put(p)
	return p
}

// put remembers p, unless what stands there is as new, or somebody was faster. Of a
// pair that is absent it is not known which is newer: the last one counts.
func (m *Memory) put(p *PairEntry) {
	s := m.pairs.Slot(p.Key)
	old := s.Load()
	if old != nil && p.Version != 0 && old.Version >= p.Version && bytes.Equal(old.Key, p.Key) {
		if old.Version == p.Version {
			old.verified(coherence.Stamp(p.since.Load()))
		}
		return
	}
	if len(p.Value) > MaxPairValue {
		m.Forget(p.Key)
	} else {
		m.pairs.Replace(s, old, p)
	}
}

// Wrote remembers what a commit wrote as version, which the store has had since; the values
// of deleted keys are nil. It keeps a copy of each. Commits of one client may come in another
// order than they had: a pair that is newer stays. It forgets what of keys is superseded: it
// has another value as the same version.
func (m *Memory) Wrote(keys, values, superseded [][]byte, version int64, since coherence.Stamp) {
	for i, key := range keys {
		if slices.ContainsFunc(superseded, func(k []byte) bool { return bytes.Equal(k, key) }) {
			m.Forget(key)
			continue
		}
		p := &PairEntry{Key: bytes.Clone(key)}
		p.verified(since)
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
