package mem

import (
	"math/rand/v2"
	"sync"
	"time"

	"ogw/cluster"
)

// Options of the engine. The zero value is a fast and reliable one.
type Options struct {
	// Seed of everything random. Equal seeds and equal calls in an equal
	// order give equal behaviour.
	Seed uint64
	// Limits of one transaction.
	Limits cluster.Limits
	// Latency is the longest delay of a call; delays are uniform up to it.
	Latency time.Duration
	// ConflictRate is the probability from 0 to 1 that a commit attempt
	// fails as if another transaction had come first.
	ConflictRate float64
	// UnknownRate is the probability that an Update or the Commit of a blob
	// returns ErrUnavailable, half of the times after it was applied.
	UnknownRate float64
	// Faults makes chosen calls fail; nil for none.
	Faults *Faults
	// Disk to use; nil for a new one.
	Disk *Disk
}

// Distributed returns the manners of etcd's defaults at their worst: 128
// operations and 1.5 MiB a transaction, some latency, and frequent conflicts.
func Distributed(seed uint64) Options {
	return Options{
		Seed:         seed,
		Limits:       cluster.Limits{Ops: 128, Bytes: 3 << 19, Distant: true},
		Latency:      200 * time.Microsecond,
		ConflictRate: 0.1,
	}
}

// manners draws what goes wrong.
type manners struct {
	o  Options
	mu sync.Mutex
	r  *rand.Rand
}

func newManners(o Options) *manners {
	return &manners{o: o, r: rand.New(rand.NewPCG(o.Seed, 0x6f6777))}
}

func (m *manners) chance(p float64) bool {
	if p <= 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.Float64() < p
}

func (m *manners) delay() {
	if m.o.Latency <= 0 {
		return
	}
	m.mu.Lock()
	d := time.Duration(m.r.Int64N(int64(m.o.Latency)))
	m.mu.Unlock()
	time.Sleep(d)
}

// call is what every call begins with: the delay, then a fault if one is due.
func (m *manners) call(op Op) error {
	m.delay()
	return m.o.Faults.next(op)
}
