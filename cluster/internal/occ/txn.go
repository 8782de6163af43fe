package occ

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"ogw/cluster"
)

// Txn is a cluster.Txn: a Source under the transaction's own writes, with
// note taken of what was read, within limits.
type Txn struct {
	reader Reader
	limits cluster.Limits
	writes *Tree // nil until the first write
	expect []Pair
	ops    int
	bytes  int
	err    error // once over a limit, the transaction stays failed
	done   bool
}

// NewTxn returns a transaction on source. reads must be empty.
func NewTxn(ctx context.Context, source Source, reads Reads, limits cluster.Limits) *Txn {
	return &Txn{reader: Reader{Ctx: ctx, Source: source, Reads: reads}, limits: limits}
}

// Finish ends the transaction: no call on it succeeds after. It returns the
// error that forbids to commit, if any.
func (t *Txn) Finish() error {
	t.done = true
	if n := t.ops + t.reader.visited; t.err == nil && t.writes != nil && t.limits.Ops > 0 && n > t.limits.Ops {
		t.err = fmt.Errorf("%w: %d operations with the pairs that scans met, at most %d are allowed", cluster.ErrTxTooLarge, n, t.limits.Ops)
	}
	return t.err
}

// Writes calls fn for each written key in order.
func (t *Txn) Writes(fn func(Pair) error) error {
	if t.writes == nil {
		return nil
	}
	var err error
	t.writes.Scan(func(p Pair) bool {
		err = fn(p)
		return err == nil
	})
	return err
}

// Written returns what was written in the order of the keys; the value of a
// deleted one is nil.
func (t *Txn) Written() (keys, values [][]byte) {
	if t.writes == nil {
		return nil, nil
	}
	n := t.writes.Len()
	keys, values = make([][]byte, 0, n), make([][]byte, 0, n)
	t.writes.Scan(func(p Pair) bool {
		if p.Value == nil && !p.Deleted {
			p.Value = []byte{}
		}
		keys, values = append(keys, p.Key), append(values, p.Value)
		return true
	})
	return keys, values
}

// Bytes returns the length of all that was written, keys and values.
func (t *Txn) Bytes() int { return t.bytes }

// Deletes returns how many keys the transaction deletes.
func (t *Txn) Deletes() (n int) {
	_ = t.Writes(func(p Pair) error {
		if p.Deleted {
			n++
		}
		return nil
	})
	return n
}

// begin counts ops and bytes against the limits.
func (t *Txn) begin(ops, bytes int) error {
	if t.done {
		return fmt.Errorf("%w: transaction used after its end", cluster.ErrInvalid)
	}
	if t.err != nil {
		return t.err
	}
	t.ops += ops
	t.bytes += bytes
	switch {
	case t.limits.Ops > 0 && t.ops > t.limits.Ops:
		t.err = fmt.Errorf("%w: more than %d operations", cluster.ErrTxTooLarge, t.limits.Ops)
	case t.limits.Bytes > 0 && t.bytes > t.limits.Bytes:
		t.err = fmt.Errorf("%w: more than %d bytes", cluster.ErrTxTooLarge, t.limits.Bytes)
	}
	return t.err
}

// Get implements cluster.Reader.
func (t *Txn) Get(key []byte) ([]byte, error) {
	if err := t.begin(1, 0); err != nil {
		return nil, err
	}
	if t.writes != nil {
		if p, ok := t.writes.Get(Pair{Key: key}); ok {
			return p.copyValue(), nil
		}
	}
	return t.reader.Get(key)
}

// Head implements cluster.Reader.
func (t *Txn) Head(key []byte) (head []byte, length int, err error) {
	if err := t.begin(1, 0); err != nil {
		return nil, 0, err
	}
	if t.writes != nil {
		if p, ok := t.writes.Get(Pair{Key: key}); ok {
			length = len(p.Value)
			p.Value = headOf(p.Value)
			return p.copyValue(), length, nil
		}
	}
	return t.reader.Head(key)
}

func (p Pair) copyValue() []byte {
	if p.Deleted {
		return nil
	}
	return append([]byte{}, p.Value...)
}

// GetMany implements cluster.Reader.
func (t *Txn) GetMany(keys [][]byte) ([][]byte, error) {
	if err := t.begin(len(keys), 0); err != nil {
		return nil, err
	}
	if t.writes == nil {
		return t.reader.GetMany(keys)
	}
	values := make([][]byte, len(keys))
	var others [][]byte
	var places []int
	for i, key := range keys {
		if p, ok := t.writes.Get(Pair{Key: key}); ok {
			values[i] = p.copyValue()
			continue
		}
		others = append(others, key)
		places = append(places, i)
	}
	got, err := t.reader.GetMany(others)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		values[place] = got[i]
	}
	return values, nil
}

// Settle implements cluster.Reader.
func (t *Txn) Settle() error { return t.reader.Settle() }

// Scan implements cluster.Reader.
func (t *Txn) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	if err := t.begin(1, 0); err != nil {
		return err
	}
	ask := o
	if o.Limit > 0 && t.writes != nil {
		ask.Limit += t.writes.Len() // so many pairs may be hidden
	}
	it, err := t.reader.iter(&start, &end, ask)
	if it == nil {
		return err
	}
	if t.writes != nil {
		it = newMergeIter(it, NewTreeIter(t.writes, start, end))
	}
	return t.reader.visit(it, start, end, o, fn)
}

// Set implements cluster.Txn.
func (t *Txn) Set(key, value []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if len(value) > cluster.MaxValueBytes {
		return fmt.Errorf("%w: value of %d bytes, at most %d are allowed", cluster.ErrInvalid, len(value), cluster.MaxValueBytes)
	}
	if err := t.begin(1, len(key)+len(value)); err != nil {
		return err
	}
	t.put(Pair{Key: key, Value: value})
	return nil
}

// Delete implements cluster.Txn.
func (t *Txn) Delete(key []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := t.begin(1, len(key)); err != nil {
		return err
	}
	t.put(Pair{Key: key, Deleted: true})
	return nil
}

// Expect implements cluster.Txn.
func (t *Txn) Expect(key, value []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := t.begin(1, 0); err != nil {
		return err
	}
	t.expect = append(t.expect, Pair{Key: key, Value: value, Deleted: value == nil})
	return nil
}

// Expected returns what must be there at the commit, for an engine whose
// server compares it; a Deleted pair must be absent.
func (t *Txn) Expected() []Pair { return t.expect }

// Unmet reads what is expected, as a part of the transaction, and reports
// whether the Source has something else. It is for an engine whose reads cost
// no round trip.
func (t *Txn) Unmet() (bool, error) {
	if t.writes == nil {
		return false, nil
	}
	for _, p := range t.expect {
		v, err := t.reader.Get(p.Key)
		if err != nil {
			return false, err
		}
		if (v == nil) != p.Deleted || !bytes.Equal(v, p.Value) {
			return true, nil
		}
	}
	return false, nil
}

// put keeps the value as it is, which the caller must not change before the
// transaction ended, and a copy of the key, which outlives it in History.
func (t *Txn) put(p Pair) {
	if t.writes == nil {
		t.writes = NewTree()
	}
	p.Key = slices.Clone(p.Key)
	t.writes.Set(p)
}
