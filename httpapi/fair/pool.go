package fair

import (
	"sync"

	"ogw/internal/share"
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
