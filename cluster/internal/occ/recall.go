package occ

import (
	"errors"

	"ogw/cluster/coherence"
)

const (
	// MaxDoubts is how many remembered pairs a transaction uses before it asks.
	// Most use fewer.
	MaxDoubts = 32
	// maxUnasked is how many reads are answered in a row before what they go by
	// is compared: what does not fit together must not lead anybody in circles.
	maxUnasked = 256
)

// ErrTorn ends a run whose reads do not fit together. The run begins again.
var ErrTorn = errors.New("what was read has changed")

// Recall is what one run of a transaction has read by key, and knows by itself:
// a key that was read is not asked for again, and one that is in the Memory only
// to be compared. A Source asks by it:
//
//	GetMany ─ all known ─► answered
//	        └ one round trip: read the others, compare Doubts ─► Found, Compared, Learned
//
// A run whose comparison fails is torn: whatever it did and returned means nothing.
// A nil Recall knows nothing and learns nothing. It is for one goroutine.
type Recall struct {
	memory *Memory
	use    bool // answer from the memory, too
	seen   map[string]*PairEntry
	doubts []KeyVersion
	torn   bool
	// unasked counts reads since the server was asked.
	unasked int
	upTo    int64 // the version of the store that is read; 0: not known
	// moves is set while each round trip is of a moment of its own, so that it
	// compares all that was read before.
	moves bool
	reads *Versions

	since   coherence.Stamp // nothing was read before
	scanned bool            // ranges were read, too
}

// NewRecall returns one that fills memory, and if use, is answered from it. reads
// takes note of what was read; nil takes none.
func NewRecall(memory *Memory, use bool, reads *Versions) *Recall {
	return &Recall{memory: memory, use: use, seen: make(map[string]*PairEntry, 16), reads: reads, since: memory.trust.Now()}
}

// Versions returns what takes note of the reads.
func (c *Recall) Versions() *Versions {
	if c == nil {
		return nil
	}
	return c.reads
}

// GetMany is Source.GetMany: it asks read for the keys that are not known, if any,
// which also compares the Doubts. settle does only that.
func (c *Recall) GetMany(keys, values [][]byte, read func(keys, values [][]byte) error, settle func() error) error {
	var missing [][]byte
	var places []int
	for i, key := range keys {
		if p := c.known(key); p != nil {
			values[i] = p.Value
			continue
		}
		missing, places = append(missing, key), append(places, i)
	}
	if len(missing) == 0 {
		if c.unasked++; c.unasked < maxUnasked {
			return nil
		}
		return settle()
	}
	got := make([][]byte, len(missing))
	if err := read(missing, got); err != nil {
		return err
	}
	for i, place := range places {
		values[place] = got[i]
	}
	return nil
}

func (c *Recall) known(key []byte) *PairEntry {
	p := c.seen[string(key)]
	if p == nil && c.use && len(c.doubts) < MaxDoubts {
		if p = c.memory.get(key); p != nil && c.upTo != 0 && int64(p.Version) > c.upTo {
			return nil // it is not what stood there then
		}
		if p != nil {
			c.see(p)
			c.doubts = append(c.doubts, p.at())
		}
	}
	return p
}

func (c *Recall) see(p *PairEntry) {
	c.seen[string(p.Key)] = p
	c.reads.Saw(p.Key, int64(p.Version))
}

// Doubts are the pairs that the next round trip compares.
func (c *Recall) Doubts() []KeyVersion {
	switch {
	case c == nil:
		return nil
	case !c.moves:
		return c.doubts
	}
	all := make([]KeyVersion, 0, len(c.seen))
	for _, p := range c.seen {
		all = append(all, p.at())
	}
	return all
}

// Fix is called once the Source reads one version of the store, by which the versions
// of pairs are ordered: newer ones are of no use.
func (c *Recall) Fix(version int64) {
	if c != nil {
		c.upTo = version
	}
}

// Move is called before the first read by a Source whose round trips are each of a
// moment of its own: each compares all that was read before.
func (c *Recall) Move() { c.moves = true }

// Moves reports whether the Source moves.
func (c *Recall) Moves() bool { return c != nil && c.moves }

// Stop ends that: from the next round trip on, all are of one moment.
func (c *Recall) Stop() {
	if c.Moves() {
		c.doubts, c.moves = c.Doubts(), false
	}
}

// BeginScan is called by Source.Iter.
func (c *Recall) BeginScan() {
	if c != nil {
		c.scanned = true
		c.reads.BeginScan()
	}
}

// Doubtful reports whether the run used pairs that were not compared yet, and are to be: all
// that it read may be known to be what the store has at this moment, unless an urgent one has
// to ask.
func (c *Recall) Doubtful(urgent bool) bool {
	if c == nil || len(c.doubts) == 0 {
		return false
	}
	if urgent || c.scanned {
		return true
	}
	if !c.memory.holdAll(c.seen) {
		return true
	}
	c.unasked = 0
	c.memory.trust.Spare()
	return false
}

// Found is called for what the server has of each doubt: the version, 0 for none.
func (c *Recall) Found(d KeyVersion, version int64) {
	if d.Version == version {
		c.seen[string(d.Key)].verified(c.since)
		return
	}
	if p := c.memory.get(d.Key); p != nil && int64(p.Version) == d.Version {
		c.memory.forget(p)
	}
	c.torn = true
}

// Compared ends a round trip that called Found for all doubts. It returns ErrTorn
// if one is no more.
func (c *Recall) Compared() error {
	if c == nil {
		return nil
	}
	if c.torn {
		return ErrTorn
	}
	c.doubts, c.unasked = c.doubts[:0], 0
	return nil
}

// Settler is a Source that can compare what its Recall has in doubt, without
// reading more.
type Settler interface {
	Settle() error
}

// Peek is cluster.KV's for an engine with a Memory: run makes a Source with the
// Recall and runs the caller's function on it, first from memory.
func Peek(m *Memory, run func(*Recall) (Settler, error)) error {
	for use := true; ; use = false {
		c := NewRecall(m, use, nil)
		s, err := run(c)
		if err = c.End(s, err); !c.Torn() {
			return err
		}
	}
}

// End ends a run that writes nothing, or failed with err: what it returns counts once
// all that it read was compared. It returns err, or why s could not compare; a run that
// is Torn after it means nothing.
func (c *Recall) End(s Settler, err error) error {
	if c.Torn() {
		return err
	}
	if e := s.Settle(); e != nil {
		return e
	}
	return err
}

// Torn reports whether the run means nothing.
func (c *Recall) Torn() bool { return c != nil && c.torn }

// Learned notes a pair that the server returned; a nil value is none. It keeps the
// value.
func (c *Recall) Learned(key, value []byte, version int64) {
	if c == nil {
		return
	}
	c.see(c.memory.Found(key, value, version, c.since))
}
