package occ

import (
	"bytes"

	"ogw/cluster"
)

// Versions is what a transaction read, and at which version of each pair, for
// an engine whose server compares them at the commit. A nil one takes no note.
// It is for one goroutine.
type Versions struct {
	keys   map[string]int64
	ranges []RangeRead
	met    []KeyVersion // by the scan that is under way
}

// KeyVersion is a pair that was read: its version, or 0 for an absent one.
type KeyVersion struct {
	Key     []byte
	Version int64
}

// RangeRead is a range that was scanned, and the pairs that were met in it.
type RangeRead struct {
	cluster.KeyRange
	Met []KeyVersion
}

// NewVersions returns an empty set.
func NewVersions() *Versions { return &Versions{keys: map[string]int64{}} }

// Saw notes what a read of key found.
func (v *Versions) Saw(key []byte, version int64) {
	if v != nil {
		v.keys[string(key)] = version
	}
}

// BeginScan is called by Source.Iter: a Reader scans one range at a time.
func (v *Versions) BeginScan() {
	if v != nil {
		v.met = nil
	}
}

// Met notes a pair that the scan fetched; it may visit fewer. It keeps the key.
func (v *Versions) Met(key []byte, version int64) {
	if v != nil {
		v.met = append(v.met, KeyVersion{key, version})
	}
}

// AddKey implements Reads: the Source calls Saw.
func (v *Versions) AddKey([]byte) {}

// AddRange implements Reads.
func (v *Versions) AddRange(start, end []byte) {
	r := RangeRead{KeyRange: cluster.KeyRange{Start: bytes.Clone(start), End: bytes.Clone(end)}}
	for _, pair := range v.met {
		if (keyRange{r.Start, r.End}).contains(pair.Key) {
			r.Met = append(r.Met, pair)
		}
	}
	v.ranges = append(v.ranges, r)
}

// Ranges returns the ranges that count as read.
func (v *Versions) Ranges() []RangeRead { return v.ranges }

// Keys calls fn for each key that was read by itself.
func (v *Versions) Keys(fn func(key []byte, version int64)) {
	for key, version := range v.keys {
		fn([]byte(key), version)
	}
}

// All calls fn once for each version at which a key was read, by itself or in a range.
// One that was read at two holds at neither: what was remembered differed from what a
// scan met.
func (v *Versions) All(fn func(key []byte, version int64)) {
	type read struct {
		key     string
		version int64
	}
	all := map[read]struct{}{}
	for _, r := range v.ranges {
		for _, m := range r.Met {
			all[read{string(m.Key), m.Version}] = struct{}{}
		}
	}
	v.Keys(func(key []byte, version int64) { all[read{string(key), version}] = struct{}{} })
	for r := range all {
		fn([]byte(r.key), r.version)
	}
}
