package fair

import (
	"sync"

	"ogw/vfs/clients/share"
)

const (
	// floorPart is the part of a pool that every client gets while there is
	// any left, however little that is.
	floorPart = 64
	// minFloor lets small pools be used by one client: they bound work, and
	// there is nothing in them to divide.
	minFloor = 8
)

// Pool is a number of units that clients hold for a while: requests in flight, bytes
// of memory, divided as package share does. It is safe for concurrent use.
type Pool struct {
	mu    sync.Mutex
	tally *share.Tally[Key]
}

// NewPool returns a pool of size units.
func NewPool(size int64) *Pool {
	return &Pool{tally: share.NewTally[Key](size, max(size/floorPart, minFloor))}
}

// Take takes n units for k and reports whether there were enough. Give must
// follow with the same n.
func (p *Pool) Take(k Key, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.Take(k, n)
}

// Give returns n units that k took.
func (p *Pool) Give(k Key, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.Give(k, n)
}

// InUse returns how many units are taken.
func (p *Pool) InUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.Held()
}

// Holder is one user of a client's part of a Pool, which it needs not look up to
// take and give. Whoever has it guards it; the zero value holds nothing.
type Holder struct {
	pool *Pool
	part *share.Part[Key]
	held int64
}

// Hold takes n units for k, and reports whether there were enough. End must follow.
func (p *Pool) Hold(k Key, n int64) (h Holder, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h = Holder{pool: p, part: p.tally.Join(k)}
	if ok = p.tally.Grow(h.part, n); ok {
		h.held = n
	}
	return h, ok
}

// Set makes n what is held, and reports whether the client may have so much. Less is
// always possible.
func (h *Holder) Set(n int64) bool {
	if n == h.held {
		return true
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if more := n - h.held; more < 0 {
		h.pool.tally.Shrink(h.part, -more)
	} else if !h.pool.tally.Grow(h.part, more) {
		return false
	}
	h.held = n
	return true
}

// End gives all back.
func (h *Holder) End() {
	if h.part == nil {
		return
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.pool.tally.Shrink(h.part, h.held)
	h.pool.tally.Leave(h.part)
	*h = Holder{}
}
