package local

import (
	"bytes"
	"errors"
	"slices"

	"ogw/cluster/internal/occ"

	"github.com/cockroachdb/pebble/v2"
)

// getManyByIter is the number of keys from which one iterator beats lookups
// one by one.
const getManyByIter = 4

// source is a snapshot as an occ.Source.
type source struct {
	snap *snapshot
	from *snapshots
}

func newSource(from *snapshots) *source { return &source{from.acquire(), from} }

func (s *source) close() { s.from.release(s.snap) }

// Get implements occ.Source.
func (s *source) Get(key []byte) ([]byte, error) {
	value, closer, err := s.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err)
	}
	value = append(make([]byte, 0, len(value)), value...)
	return value, mapError(closer.Close())
}

// GetMany implements occ.Source. Pebble's iterator makes use of ascending
// seeks: neighbours cost a step each.
func (s *source) GetMany(keys, values [][]byte) error {
	if len(keys) < getManyByIter {
		for i, key := range keys {
			value, err := s.Get(key)
			if err != nil {
				return err
			}
			values[i] = value
		}
		return nil
	}
	it, err := s.snap.NewIter(nil)
	if err != nil {
		return mapError(err)
	}
	if err := seekAll(it, keys, values); err != nil {
		it.Close()
		return mapError(err)
	}
	return mapError(it.Close())
}

func seekAll(it *pebble.Iterator, keys, values [][]byte) error {
	order := ascending(keys)
	positioned := false
	for i := range keys {
		at := i
		if order != nil {
			at = order[i]
		}
		key := keys[at]
		if !positioned || !stepTo(it, key) {
			it.SeekGE(key)
			positioned = true
		}
		if !it.Valid() || !bytes.Equal(it.Key(), key) {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		values[at] = append(make([]byte, 0, len(value)), value...)
	}
	return it.Error()
}

// stepTo tries whether the iterator, which stands before key or on it, or at
// its end, reaches it with one step or none.
func stepTo(it *pebble.Iterator, key []byte) bool {
	if !it.Valid() {
		return true // nothing follows: key is absent
	}
	if bytes.Compare(it.Key(), key) >= 0 {
		return true
	}
	return !it.Next() || bytes.Compare(it.Key(), key) >= 0
}

// ascending returns nil when keys are sorted, else their order.
func ascending(keys [][]byte) []int {
	if slices.IsSortedFunc(keys, bytes.Compare) {
		return nil
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	return order
}

// Iter implements occ.Source. Pebble loads values only when asked for.
func (s *source) Iter(start, end []byte, _ bool) (occ.Iter, error) {
	it, err := s.snap.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return nil, mapError(err)
	}
	return iter{it}, nil
}

// iter is a Pebble iterator as an occ.Iter.
type iter struct{ *pebble.Iterator }

// Value implements occ.Iter.
func (i iter) Value() ([]byte, error) {
	value, err := i.ValueAndErr()
	return value, mapError(err)
}

// Close implements occ.Iter.
func (i iter) Close() error { return mapError(i.Iterator.Close()) }
