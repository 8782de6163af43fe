package fair

import "sync"

const (
	// floorPart is the part of a pool that every client gets while there is
	// any left, however little that is.
	floorPart = 64
	// minFloor lets small pools be used by one client: they bound work, and
	// there is nothing in them to divide.
	minFloor = 8
)

// Pool is a number of units that clients hold for a while: requests in
// flight, bytes of memory. It is safe for concurrent use.
//
// The rule is that of switches that share their memory among ports (Choudhury
// and Hahne, "Dynamic queue length thresholds", 1998): who holds less than
// what is free may take more. It needs no count of clients and leaves room
// for the next one at any time.
type Pool struct {
	mu    sync.Mutex
	size  int64
	free  int64
	floor int64
	held  map[Key]int64
}

// NewPool returns a pool of size units.
func NewPool(size int64) *Pool {
	return &Pool{size: size, free: size, floor: max(size/floorPart, minFloor), held: map[Key]int64{}}
}

// Take takes n units for k and reports whether there were enough. Give must
// follow with the same n.
func (p *Pool) Take(k Key, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held[k]
	if n > p.free || held+n > p.free && held+n > p.floor {
		return false
	}
	p.held[k] = held + n
	p.free -= n
	return true
}

// Give returns n units that k took.
func (p *Pool) Give(k Key, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
	if held := p.held[k] - n; held > 0 {
		p.held[k] = held
	} else {
		delete(p.held, k)
	}
}

// InUse returns how many units are taken.
func (p *Pool) InUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.free
}
