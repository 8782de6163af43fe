package vfs

import (
	"context"
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
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

// syncRelaxed makes the relaxed commits of this process durable, if there
// are any that are not known to be.
func (fs *FS) syncRelaxed(ctx context.Context) error {
	n := fs.commits.made.Load()
	if fs.commits.synced.Load() >= n {
		return nil
	}
	if err := fs.kv.Sync(ctx); err != nil {
		return fserr.Map(err)
	}
	fs.commits.mark(n)
	return nil
}

// durably returns a context with the durability of the whole, unless the
// caller asked for one.
func (fs *FS) durably(ctx context.Context) context.Context {
	if fs.cfg.Async && !cluster.AsksDurability(ctx) {
		return cluster.Relaxed(ctx)
	}
	return ctx
}
