package occ

import (
	"context"
	"sync"
	"sync/atomic"

	"ogw/cluster"
)

// Gate lets calls in until it is closed, and lets Close wait for those that
// are inside.
type Gate struct {
	state atomic.Int64 // calls inside; closedBit when closed
	once  sync.Once
	idle  chan struct{}
}

const closedBit = int64(1) << 62

// NewGate returns an open Gate.
func NewGate() *Gate { return &Gate{idle: make(chan struct{})} }

// Enter lets a call in, or returns ErrClosed. The caller must Leave.
func (g *Gate) Enter() error {
	if g.state.Add(1) >= closedBit {
		g.Leave()
		return cluster.ErrClosed
	}
	return nil
}

// Leave ends what Enter began.
func (g *Gate) Leave() {
	if g.state.Add(-1) == closedBit {
		g.once.Do(func() { close(g.idle) })
	}
}

// Run runs fn inside, unless ctx has ended.
func (g *Gate) Run(ctx context.Context, fn func() error) error {
	if err := g.Enter(); err != nil {
		return err
	}
	defer g.Leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn()
}

// Close closes the gate and waits until nobody is inside. It returns false
// when the gate was closed before.
func (g *Gate) Close() bool {
	for {
		old := g.state.Load()
		if old >= closedBit {
			<-g.idle
			return false
		}
		if g.state.CompareAndSwap(old, old+closedBit) {
			if old == 0 {
				g.once.Do(func() { close(g.idle) })
			}
			<-g.idle
			return true
		}
	}
}
