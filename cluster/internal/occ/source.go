package occ

import "ogw/cluster"

// Source is the store at one version: a snapshot, or what is as good. It may
// move to a later version once, if all that was read is the same there, and
// fails otherwise.
type Source interface {
	// Get returns the value of key, which nobody changes, or nil.
	Get(key []byte) ([]byte, error)
	// GetMany fills values, one for each key.
	GetMany(keys, values [][]byte) error
	// Iter returns an unpositioned iterator over start <= key < end; a nil
	// end is open. o says what the walk is for: it is hardly longer than Limit.
	Iter(start, end []byte, o cluster.ScanOptions) (Iter, error)
}

// Header is a Source that may know the head of a value without reading it all.
type Header interface {
	// Head is cluster.Reader's.
	Head(key []byte) (head []byte, length int, err error)
}

// Iter walks a range. Key and Value are valid until it moves.
type Iter interface {
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	Key() []byte
	Value() ([]byte, error)
	// Close returns the error that ended the iteration early, if any.
	Close() error
}
