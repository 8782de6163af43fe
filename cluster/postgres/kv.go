package postgres

import (
	"context"
	"slices"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/internal/gather"
	"ogw/cluster/internal/occ"
)

// KV is one client of a store in PostgreSQL.
type KV struct {
	pools *pools
	store string
	gate  *occ.Gate
	reads *gather.Group[*lookup] // of Peeks
	slots *slots
	// memory is what was read and written last.
	memory *occ.Memory
	peers  *coherence.Client
}

// View implements cluster.KV.
func (kv *KV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.gate.Run(ctx, func() error {
		s := newSource(ctx, kv, nil)
		defer s.close()
		return fn(&occ.Reader{Ctx: ctx, Source: s})
	})
}

// Peek implements cluster.KV.
func (kv *KV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.gate.Run(ctx, func() error {
		var s *source
		defer func() { s.close() }()
		return occ.Peek(kv.memory, func(c *occ.Recall) (occ.Settler, error) {
			if s != nil {
				s.close()
			} else {
				c.Move()
			}
			s = newSource(ctx, kv, c)
			return s, fn(&occ.Reader{Ctx: ctx, Source: s})
		})
	})
}

// Update implements cluster.KV.
func (kv *KV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return kv.gate.Run(ctx, func() error {
		var last *commit // of the attempt before
		return occ.Retry(ctx, func(n int) (bool, error) {
			recall := occ.NewRecall(kv.memory, n == 0, occ.NewVersions())
			if n == 0 {
				recall.Move()
			}
			s := newSource(ctx, kv, recall)
			defer s.close()
			if n >= unlockedAttempts && last != nil {
				if err := s.hold(locksOf(kv.store, last)); err != nil {
					return true, err
				}
			}
			c, done, err := kv.attempt(ctx, s, fn)
			if c != nil {
				last = c
			}
			return done, err
		})
	})
}

// attempt returns what it tried to commit, nil if it did not come to that. It is not
// done, without an error, after a conflict, and if what it read does not fit together.
func (kv *KV) attempt(ctx context.Context, s *source, fn func(cluster.Txn) error) (c *commit, done bool, err error) {
	c, err = kv.run(ctx, s, fn)
	if s.held && s.lost {
		return nil, false, nil // it held locks for too long; Retry looks at ctx
	}
	if err != nil || c.empty() {
		err = s.recall.End(s, err)
	}
	switch {
	case s.recall.Torn():
		return nil, false, nil
	case err != nil || c.empty():
		return nil, true, err
	}
	change, err := kv.peers.Announce(ctx, slices.Concat(c.setKeys, c.deleteKeys)...)
	if err != nil {
		return nil, true, err
	}
	version, done, err := kv.slots.commit(ctx, s, c)
	switch {
	case err == nil && done && (version != 0 || len(c.setKeys) == 0):
		since := change.Done()
		kv.memory.Wrote(c.setKeys, c.setValues, c.superseded, version, since)
		kv.memory.Wrote(c.deleteKeys, make([][]byte, len(c.deleteKeys)), nil, 0, since)
	case err != nil || done: // what happened is not known, or as which version
		kv.memory.Forget(c.setKeys...)
		kv.memory.Forget(c.deleteKeys...)
		change.Failed(occ.IsUnknown(err))
	default:
		change.Failed(false)
	}
	return c, done, err
}

// unlockedAttempts of a transaction lock nothing before they commit: one from memory, with
// round trips that others share, two that read. Later ones queue for what the attempt before them read and wrote: a
// pair that many change would else be won by whoever is nearest to the server.
const unlockedAttempts = 3

// run runs fn on a snapshot and returns what is to be committed.
func (kv *KV) run(ctx context.Context, s *source, fn func(cluster.Txn) error) (*commit, error) {
	t := occ.NewTxn(ctx, s, s.recall.Versions(), kv.Limits())
	err := fn(t)
	if e := t.Finish(); err == nil {
		err = e
	}
	if err == nil {
		err = ctx.Err()
	}
	c := newCommit(t)
	c.addReads(s.recall.Versions())
	return c, err
}

// Sync implements cluster.KV. What was committed is durable.
func (kv *KV) Sync(ctx context.Context) error {
	return kv.gate.Run(ctx, func() error { return nil })
}

// Erase implements cluster.KV: it vacuums the table, after which later writes
// take the place of what was replaced. The server's log keeps what was in it
// until it is recycled.
func (kv *KV) Erase(ctx context.Context, _ ...cluster.KeyRange) error {
	return kv.gate.Run(ctx, func() error {
		if _, err := kv.pools.of(ctx).Exec(ctx, "VACUUM ogw_pairs"); err != nil {
			return callerOr(ctx, err)
		}
		return nil
	})
}

// Limits implements cluster.KV.
func (kv *KV) Limits() cluster.Limits {
	return cluster.Limits{Ops: MaxOps, Bytes: maxBytes, Distant: true}
}

// Close implements cluster.KV.
func (kv *KV) Close() error {
	if !kv.gate.Close() {
		return cluster.ErrClosed
	}
	kv.slots.close()
	kv.pools.close()
	return nil
}
