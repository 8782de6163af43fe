package occ

import "sync"

const (
	// historyTxns bounds the commits that a History remembers: more than a
	// second of the fastest writers, so that only transactions that run for
	// longer than that conflict for their age alone.
	historyTxns = 1 << 16
	// historyBytes bounds the memory of a History.
	historyBytes = 32 << 20
	// keyOverheadBytes is what a remembered key costs besides its bytes.
	keyOverheadBytes = 40
)

type writtenKey struct {
	hash uint64
	key  []byte
}

type writeSet struct {
	version uint64
	keys    []writtenKey
	bytes   int
}

// History remembers what the last commits wrote.
type History struct {
	hasher Hasher

	mu    sync.RWMutex
	ring  []writeSet // grows to historyTxns, then wraps
	first int        // index of the oldest
	count int
	bytes int
	floor uint64 // versions up to this one are forgotten
}

// NewHistory returns a History that begins after version.
func NewHistory(version uint64) *History {
	return &History{hasher: NewHasher(), floor: version}
}

// NewReadSet returns an empty ReadSet to compare with h.
func (h *History) NewReadSet() *ReadSet { return &ReadSet{hasher: h.hasher} }

// Begin makes s what NewReadSet returns.
func (h *History) Begin(s *ReadSet) { *s = ReadSet{hasher: h.hasher} }

// Push remembers that version wrote keys, which h keeps. Versions must grow
// by one.
func (h *History) Push(version uint64, keys [][]byte) {
	w := writeSet{version: version, keys: make([]writtenKey, len(keys))}
	for i, k := range keys {
		w.keys[i] = writtenKey{h.hasher.sum(k), k}
		w.bytes += len(k) + keyOverheadBytes
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.count > 0 && (h.count == historyTxns || h.bytes+w.bytes > historyBytes) {
		h.forgetOldest()
	}
	if w.bytes > historyBytes {
		h.floor = version
		return
	}
	if h.count == len(h.ring) {
		h.grow()
	}
	h.ring[(h.first+h.count)%len(h.ring)] = w
	h.count++
	h.bytes += w.bytes
}

func (h *History) forgetOldest() {
	old := &h.ring[h.first]
	h.floor = old.version
	h.bytes -= old.bytes
	*old = writeSet{}
	h.first = (h.first + 1) % len(h.ring)
	h.count--
}

func (h *History) grow() {
	ring := make([]writeSet, max(64, 2*len(h.ring)))
	for i := range h.count {
		ring[i] = h.ring[(h.first+i)%len(h.ring)]
	}
	h.ring, h.first = ring, 0
}

// Conflicts reports whether a version after `after` wrote something in reads,
// or might have.
func (h *History) Conflicts(reads *ReadSet, after uint64) bool {
	return h.LastHit(reads, after, ^uint64(0)) > 0
}

// LastHit returns the newest version v with after < v <= upTo that wrote
// something in reads, or 0. When some of those versions are forgotten
// already, the newest forgotten one counts as a hit.
func (h *History) LastHit(reads *ReadSet, after, upTo uint64) uint64 {
	if reads.Empty() {
		return 0
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for i := h.count - 1; i >= 0; i-- {
		w := &h.ring[(h.first+i)%len(h.ring)]
		if w.version <= after {
			return 0
		}
		if w.version > upTo {
			continue
		}
		for k := range w.keys {
			if reads.hit(&w.keys[k]) {
				return w.version
			}
		}
	}
	if h.floor > after {
		return min(h.floor, upTo)
	}
	return 0
}
