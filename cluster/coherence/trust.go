package coherence

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// lines is how many lines keys are spread over. All clients of a store have the same.
const lines = 1 << 16

// Line is what keys are told by: those that share one, by their hash, change together.
type Line uint32

// LineOf returns the line of key.
func LineOf(key []byte) Line { return Line(xxhash.Sum64(key) % lines) }

// linesOf returns the lines of keys, each once, in order.
func linesOf(keys [][]byte) []Line {
	list := make([]Line, len(keys))
	for i, key := range keys {
		list[i] = LineOf(key)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Stamp is a moment of a Trust. 0 is none.
type Stamp uint64

// Trust says of what a client has read of the store whether that is what the store has now:
// if all others tell this client what they change, and have told of no change since.
// A nil Trust trusts nothing. It is safe for concurrent use.
type Trust struct {
	clock func() time.Duration
	// until is the clock until which all others tell. floor is the moment since which
	// they have told of each change.
	until atomic.Int64
	floor atomic.Uint64
	lines []line
	// spared counts the round trips that nobody had to make.
	spared atomic.Uint64

	mu     sync.Mutex    // of what changes the rest
	moment atomic.Uint64 // the last one
}

type line struct {
	changing atomic.Int32  // how many changes are under way
	changed  atomic.Uint64 // the moment of the last begin or end of one
}

func newTrust(clock func() time.Duration) *Trust {
	t := &Trust{clock: clock, lines: make([]line, lines)}
	t.moment.Store(1)
	return t
}

// Now returns the stamp of what is read of the store from now on.
func (t *Trust) Now() Stamp {
	if t == nil {
		return 0
	}
	return Stamp(t.moment.Load())
}

// Holds reports whether a pair of line that was read from the store after s is what the store has.
func (t *Trust) Holds(l Line, s Stamp) bool {
	if t == nil || s == 0 || int64(t.clock()) >= t.until.Load() || uint64(s) < t.floor.Load() {
		return false
	}
	// In this order: an end moves changed before it takes changing back.
	return t.lines[l].changing.Load() == 0 && t.lines[l].changed.Load() <= uint64(s)
}

// Spare notes that a round trip was not made, since all that was read Holds.
func (t *Trust) Spare() { t.spared.Add(1) }

// Told reports whether all others tell what they change.
func (t *Trust) Told() bool { return t != nil && int64(t.clock()) < t.until.Load() }

// begin marks a change of list, which ends by end with what it returns.
func (t *Trust) begin(list []Line) (at uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at = t.moment.Add(1)
	for _, l := range list {
		t.lines[l].changing.Add(1)
		t.lines[l].changed.Store(at)
	}
	return at
}

// end ends a change. It returns the stamp of what the change made of list, 0 if there was
// another one of these lines meanwhile, or may have been: if others stopped to tell.
func (t *Trust) end(list []Line, at uint64) (s Stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.moment.Add(1)
	if s = Stamp(now); at < t.floor.Load() {
		s = 0
	}
	for _, l := range list {
		if t.lines[l].changing.Load() != 1 || t.lines[l].changed.Load() != at {
			s = 0
		}
		t.lines[l].changed.Store(now)
		t.lines[l].changing.Add(-1)
	}
	return s
}

// forget has nothing hold that was read so far.
func (t *Trust) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floor.Store(t.moment.Add(1))
}

// extend has all others tell until a clock. If they stopped before, what was read so far
// counts no more.
func (t *Trust) extend(until time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if int64(t.clock()) >= t.until.Load() {
		t.floor.Store(t.moment.Add(1))
	}
	t.until.Store(int64(until))
}
