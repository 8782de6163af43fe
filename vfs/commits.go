package vfs

import (
	"context"
	"sync/atomic"

	"ogw/cluster"
)

// relaxedCommits counts the relaxed commits of this process, and those of them
// that are known to be durable.
type relaxedCommits struct {
	made, synced atomic.Uint64
}

// mark notes that the first n are durable.
func (c *relaxedCommits) mark(n uint64) {
	for {
		old := c.synced.Load()
		if old >= n || c.synced.CompareAndSwap(old, n) {
			return
		}
	}
}

// durableMark is what a transaction says of the relaxed commits before it: a
// strict one that wrote makes them durable too. It is an effect.
type durableMark struct {
	commits *relaxedCommits
	before  uint64 // relaxed commits when the transaction began
	stored  bool   // it stores what was written to files
}

// Again implements effect.
func (m *durableMark) Again() {}

// Failed implements effect.
func (m *durableMark) Failed() {}

// Committed implements effect.
func (m *durableMark) Committed(ctx context.Context, known bool) {
	if cluster.IsRelaxed(ctx) {
		m.commits.made.Add(1)
	} else if known && m.stored {
		m.commits.mark(m.before)
	}
}
