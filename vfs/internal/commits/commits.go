// Package commits counts the relaxed commits of a process, so that who asks for
// durability waits for the store only if something is not durable yet.
package commits

import (
	"context"
	"sync/atomic"

	"ogw/cluster"
)

// Relaxed counts the relaxed commits of this process, and those of them
// that are known to be durable.
type Relaxed struct {
	made, synced atomic.Uint64
}

// Made returns how many there were.
func (c *Relaxed) Made() uint64 { return c.made.Load() }

// Durable reports whether the first n are known to be durable.
func (c *Relaxed) Durable(n uint64) bool { return c.synced.Load() >= n }

// Mark notes that the first n are durable.
func (c *Relaxed) Mark(n uint64) {
	for {
		old := c.synced.Load()
		if old >= n || c.synced.CompareAndSwap(old, n) {
			return
		}
	}
}

// Effect is what a transaction says of the relaxed commits before it: a
// strict one that wrote makes them durable too.
type Effect struct {
	of     *Relaxed
	before uint64 // relaxed commits when the transaction began
	stored bool   // it stores what was written to files
}

// Begin returns the effect of a transaction that begins when n were made.
func (c *Relaxed) Begin(n uint64) Effect { return Effect{of: c, before: n} }

// Stored notes that the transaction stores what was written to files.
func (m *Effect) Stored() { m.stored = true }

// Again ends an attempt that had no effect.
func (m *Effect) Again() {}

// Failed ends a transaction that had no effect.
func (m *Effect) Failed() {}

// Committed comes after the commit; without known its outcome is unknown.
func (m *Effect) Committed(ctx context.Context, known bool) {
	if cluster.IsRelaxed(ctx) {
		m.of.made.Add(1)
	} else if known && m.stored {
		m.of.Mark(m.before)
	}
}
