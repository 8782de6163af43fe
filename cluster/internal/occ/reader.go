package occ

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
)

// scanCheckEvery is how many pairs a scan visits between two looks at its
// context.
const scanCheckEvery = 1024

// Reads takes note of what a transaction read.
type Reads interface {
	// AddKey notes that key was read, present or not.
	AddKey(key []byte)
	// AddRange notes that start <= key < end was scanned; a nil end is open.
	// It copies what it keeps.
	AddRange(start, end []byte)
}

// Reader is a cluster.Reader over a Source. When Reads is set, it notes what
// was read.
type Reader struct {
	Ctx    context.Context
	Source Source
	Reads  Reads

	visited int // pairs that scans met
}

// CheckKey returns ErrInvalid for a key that breaks the contract.
func CheckKey(key []byte) error {
	switch {
	case len(key) == 0:
		return fmt.Errorf("%w: empty key", cluster.ErrInvalid)
	case len(key) > cluster.MaxKeyBytes:
		return fmt.Errorf("%w: key of %d bytes, at most %d are allowed", cluster.ErrInvalid, len(key), cluster.MaxKeyBytes)
	case key[0] == 0xff:
		return fmt.Errorf("%w: keys that begin with 0xFF are the engine's", cluster.ErrInvalid)
	}
	return nil
}

// Get implements cluster.Reader.
func (r *Reader) Get(key []byte) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if r.Reads != nil {
		r.Reads.AddKey(key)
	}
	return r.Source.Get(key)
}

// Head implements cluster.Reader.
func (r *Reader) Head(key []byte) (head []byte, length int, err error) {
	h, ok := r.Source.(Header)
	if !ok {
		value, err := r.Get(key)
		return headOf(value), len(value), err
	}
	if err := CheckKey(key); err != nil {
		return nil, 0, err
	}
	if r.Reads != nil {
		r.Reads.AddKey(key)
	}
	return h.Head(key)
}

func headOf(value []byte) []byte { return value[:min(len(value), cluster.HeadBytes)] }

// GetMany implements cluster.Reader.
func (r *Reader) GetMany(keys [][]byte) ([][]byte, error) {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return nil, err
		}
		if r.Reads != nil {
			r.Reads.AddKey(key)
		}
	}
	if err := r.Ctx.Err(); err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	if err := r.Source.GetMany(keys, values); err != nil {
		return nil, err
	}
	return values, nil
}

// Settle implements cluster.Reader.
func (r *Reader) Settle() error {
	if s, ok := r.Source.(Settler); ok {
		return s.Settle()
	}
	return nil
}

// Scan implements cluster.Reader.
func (r *Reader) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	it, err := r.iter(&start, &end, o)
	if it == nil {
		return err
	}
	return r.visit(it, start, end, o, fn)
}

// iter opens an iterator over the clamped range; it returns nil when the
// range is empty.
func (r *Reader) iter(start, end *[]byte, o cluster.ScanOptions) (Iter, error) {
	*start, *end = clampRange(*start, *end)
	if bytes.Compare(*start, *end) >= 0 {
		return nil, nil
	}
	return r.Source.Iter(*start, *end, o)
}

// engineKeys is the first key that engines keep for themselves.
var engineKeys = []byte{0xff}

func clampRange(start, end []byte) ([]byte, []byte) {
	if len(end) == 0 || end[0] == 0xff {
		end = engineKeys
	}
	return start, end
}

// visit runs a scan over it, closes it and notes what was read.
func (r *Reader) visit(it Iter, start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) (err error) {
	var last []byte
	stopped := true // early: only what was visited counts as read
	defer func() {
		if r.Reads == nil {
			return
		}
		switch {
		case !stopped || err != nil && last == nil:
			r.Reads.AddRange(start, end)
		case last == nil:
		case o.Reverse:
			r.Reads.AddRange(last, end)
		default:
			r.Reads.AddRange(start, append(last, 0))
		}
	}()
	defer func() {
		if e := it.Close(); e != nil && err == nil {
			err = e
		}
	}()
	move := it.Next
	var ok bool
	if o.Reverse {
		move = it.Prev
		ok = it.Last()
	} else {
		ok = it.First()
	}
	for n := 1; ok; n++ {
		r.visited++
		if n%scanCheckEvery == 0 {
			if err := r.Ctx.Err(); err != nil {
				return err
			}
		}
		key := it.Key()
		if r.Reads != nil {
			last = append(last[:0], key...)
		}
		var value []byte
		if !o.KeysOnly {
			if value, err = it.Value(); err != nil {
				return err
			}
		}
		if err := fn(key, value); err != nil {
			if errors.Is(err, cluster.ErrStop) {
				return nil
			}
			return err
		}
		if n == o.Limit {
			return nil
		}
		ok = move()
	}
	stopped = false
	return nil
}
