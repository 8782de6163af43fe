package local

import (
	"bytes"
	"errors"
	"slices"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2"
)

// getManyByIter is the number of keys from which one iterator beats lookups
// one by one.
const getManyByIter = 4

// errTorn ends a run whose reads do not fit together. The run begins again.
var errTorn = errors.New("what was read has changed")

// seenMax is how many pairs are read without a snapshot: most operations need
// fewer.
const seenMax = 8

// source is the store at one version as an occ.Source. A hasty one reads the
// newest pairs, from memory or from Pebble, as long as nothing has written to
// their slots since that version. It takes a snapshot for a range, and for
// many pairs; if it holds anything newer than what was read, the run is torn.
type source struct {
	kv      *KV
	version uint64
	upTo    uint64    // no later version has been read
	snap    *snapshot // nil: not taken
	torn    bool
	seen    []*occ.PairSlot // of what was read without the snapshot
	space   [seenMax]*occ.PairSlot
}

// newSource returns what is visible now. Only a hasty one can be torn.
func newSource(kv *KV, hasty bool) *source {
	s := &source{}
	s.begin(kv, hasty)
	return s
}

// begin makes an empty s what newSource returns.
func (s *source) begin(kv *KV, hasty bool) {
	s.kv, s.version = kv, kv.visible.Load()
	s.upTo = s.version
	s.seen = s.space[:0]
	if !hasty {
		_ = s.take() // nothing was read yet that could be torn
	}
}

func (s *source) close() {
	if s.snap != nil {
		s.kv.snapshots.release(s.snap)
	}
}

// take takes the snapshot, if there is none.
func (s *source) take() error {
	if s.snap != nil {
		return nil
	}
	snap := s.kv.snapshots.acquire()
	for _, slot := range s.seen {
		if slot.Changed.Load() > s.version {
			s.torn = true
			s.kv.snapshots.release(snap)
			return errTorn
		}
	}
	s.snap, s.version = snap, snap.version
	s.upTo = s.kv.allocated.Load()
	return nil
}

// Get implements occ.Source.
func (s *source) Get(key []byte) ([]byte, error) {
	p, err := s.find(key, false)
	if err != nil {
		return nil, err
	}
	return p.Value, nil
}

// Head implements occ.Header.
func (s *source) Head(key []byte) (head []byte, length int, err error) {
	p, err := s.find(key, true)
	if err != nil {
		return nil, 0, err
	}
	return p.Value[:min(len(p.Value), cluster.HeadBytes)], len(p.Value) + p.More, nil
}

// find returns the pair of key from memory or from Pebble; with head, perhaps no more
// of its value than the head.
func (s *source) find(key []byte, head bool) (*occ.PairEntry, error) {
	slot := s.kv.pairs.Slot(key)
	if s.snap == nil {
		if len(s.seen) < seenMax {
			s.seen = append(s.seen, slot)
		} else if err := s.take(); err != nil {
			return nil, err
		}
	}
	old, ok := pairAt(slot, key, s.version)
	if ok && (head || old.More == 0) {
		return old, nil
	}
	var from pebble.Reader = s.kv.db
	if s.snap != nil {
		from = s.snap
	}
	value, more, err := lookup(from, key, head)
	if err != nil {
		return nil, err
	}
	// A commit counts here before it can be read.
	if s.snap == nil && slot.Changed.Load() > s.version {
		s.torn = true
		return nil, errTorn
	}
	p := &occ.PairEntry{Key: key, Value: value, Version: s.version, More: more}
	s.kv.pairs.fill(slot, old, p)
	return p, nil
}

// lookup returns the value of key, or with head what is remembered of it, and how many
// more bytes it has.
func lookup(from pebble.Reader, key []byte, head bool) (value []byte, more int, err error) {
	value, closer, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, ioerr.Map(err)
	}
	kept := len(value)
	if head {
		kept = remembered(kept)
	}
	more = len(value) - kept
	value = append(make([]byte, 0, kept), value[:kept]...)
	return value, more, ioerr.Map(closer.Close())
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
	if err := s.take(); err != nil {
		return err
	}
	it, err := s.snap.NewIter(nil)
	if err != nil {
		return ioerr.Map(err)
	}
	if err := seekAll(it, keys, values); err != nil {
		it.Close()
		return ioerr.Map(err)
	}
	return ioerr.Map(it.Close())
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
func (s *source) Iter(start, end []byte, _ cluster.ScanOptions) (occ.Iter, error) {
	if err := s.take(); err != nil {
		return nil, err
	}
	it, err := s.snap.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return nil, ioerr.Map(err)
	}
	return iter{it}, nil
}

// iter is a Pebble iterator as an occ.Iter.
type iter struct{ *pebble.Iterator }

// Value implements occ.Iter.
func (i iter) Value() ([]byte, error) {
	value, err := i.ValueAndErr()
	return value, ioerr.Map(err)
}

// Close implements occ.Iter.
func (i iter) Close() error { return ioerr.Map(i.Iterator.Close()) }
