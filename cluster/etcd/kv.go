package etcd

import (
	"context"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/internal/gather"
	"ogw/cluster/internal/occ"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// freshRuns of a transaction follow each other without a pause as long as each knows
// what the one before was refused for.
const freshRuns = 8

// KV is one client of a store in etcd.
type KV struct {
	client  *clientv3.Client
	keys    keyspace
	gate    *occ.Gate
	reads   *gather.Group[*lookup]
	slots   *slots
	history *compactor
	memory  *occ.Memory
	turns   *occ.Turns
	peers   *coherence.Client
}

// View implements cluster.KV. It ends with ErrUnavailable if fn still reads
// after ViewMax.
func (kv *KV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.gate.Run(ctx, func() error {
		return fn(&occ.Reader{Ctx: ctx, Source: newSource(ctx, kv, nil)})
	})
}

// Peek implements cluster.KV.
func (kv *KV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.gate.Run(ctx, func() error {
		return occ.Peek(kv.memory, func(c *occ.Recall) (occ.Settler, error) {
			s := newSource(ctx, kv, c)
			return s, fn(&occ.Reader{Ctx: ctx, Source: s})
		})
	})
}

// Update implements cluster.KV.
func (kv *KV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return kv.gate.Run(ctx, func() error {
		var a attempt
		if !cluster.IsUrgent(ctx) {
			a.turn = kv.turns.Turn()
		}
		defer a.turn.Leave()
		return occ.Retry(ctx, func(n int) (done bool, err error) {
			a.fresh = n == 0
			for runs := 0; runs < freshRuns && !done && err == nil && (a.fresh || runs == 0); runs++ {
				done, err = kv.run(ctx, fn, &a)
			}
			return done, err
		})
	})
}

// attempt is what the runs of one transaction know from each other.
type attempt struct {
	turn *occ.Turn
	// fresh is set while the memory has what the last run was refused for, as it is now.
	fresh bool
	// again is set once a commit was refused: from then on one that is brings what the
	// run had read, as it is now.
	again bool
}

// run returns false without an error after a conflict, and if what it remembered does
// not fit together.
func (kv *KV) run(ctx context.Context, fn func(cluster.Txn) error, a *attempt) (done bool, err error) {
	reads := occ.NewVersions()
	recall := occ.NewRecall(kv.memory, a.fresh, reads)
	a.fresh = false
	s := newSource(ctx, kv, recall)
	t := occ.NewTxn(ctx, s, reads, kv.Limits())
	err = fn(t)
	if e := t.Finish(); err == nil {
		err = e
	}
	if s.compacted || recall.Torn() {
		return false, nil // it took too long, or what it knows is old; the next run reads anew
	}
	keys, values := t.Written()
	if err != nil || len(keys) == 0 {
		if err = recall.End(s, err); recall.Torn() || s.compacted {
			return false, nil
		}
		return true, err
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	if barred := a.turn.Barred(keys); len(barred) > 0 {
		a.turn.Wait(ctx, barred)
		a.fresh = true
		return false, nil
	}
	c := &commit{cmps: append(s.compares(), kv.expected(t)...), writes: kv.writes(keys, values)}
	if a.again {
		c.looks = kv.remembered(reads, maxLooks-compared(c.cmps))
	}
	change, err := kv.peers.Announce(ctx, keys...)
	if err != nil {
		return true, err
	}
	rev, err := kv.slots.commit(ctx, c)
	switch {
	case rev > 0 && c.answered:
		kv.memory.Wrote(keys, values, c.superseded, rev, change.Done())
	case rev > 0: // others in its request may have set the same, with the same revision
		kv.memory.Forget(keys...)
		change.Done()
	case err != nil: // perhaps it happened
		kv.memory.Forget(keys...)
		change.Failed(occ.IsUnknown(err))
	default:
		change.Failed(false)
		a.again, a.fresh = true, len(c.found) > 0
		a.turn.Wait(ctx, kv.learn(c))
	}
	return rev > 0 || err != nil, err
}

// remembered returns which of reads the memory has: those that are not large. It returns
// none if their keys have more bytes than room: a part would be no state to run on.
func (kv *KV) remembered(reads *occ.Versions, room int) (looks []occ.KeyVersion) {
	reads.Keys(func(key []byte, rev int64) {
		if len(looks) < MaxOps && kv.memory.Has(key) {
			looks = append(looks, occ.KeyVersion{Key: key, Version: rev})
			room -= len(kv.keys.key(key))
		}
	})
	if room < 0 {
		return nil
	}
	return looks
}

// learn has the memory hold what a commit that was refused brought, and returns the keys
// that had changed.
func (kv *KV) learn(c *commit) (changed [][]byte) {
	for i, r := range c.found {
		value, rev := pairOf(r)
		kv.memory.Found(c.looks[i].Key, value, rev, 0)
		if rev != c.looks[i].Version {
			changed = append(changed, c.looks[i].Key)
		}
	}
	return changed
}

func (kv *KV) expected(t *occ.Txn) []clientv3.Cmp {
	cmps := make([]clientv3.Cmp, len(t.Expected()))
	for i, p := range t.Expected() {
		if key := kv.keys.key(p.Key); p.Deleted {
			cmps[i] = clientv3.Compare(clientv3.ModRevision(key), "=", 0)
		} else {
			cmps[i] = clientv3.Compare(clientv3.Value(key), "=", string(p.Value))
		}
	}
	return cmps
}

func (kv *KV) writes(keys, values [][]byte) []clientv3.Op {
	ops := make([]clientv3.Op, len(keys), len(keys)+1)
	for i, key := range keys {
		if values[i] == nil {
			ops[i] = clientv3.OpDelete(kv.keys.key(key))
		} else {
			ops[i] = clientv3.OpPut(kv.keys.key(key), string(values[i]))
		}
	}
	return ops
}

// Sync implements cluster.KV. What was committed is durable on a majority.
func (kv *KV) Sync(ctx context.Context) error {
	return kv.gate.Run(ctx, func() error { return nil })
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
	kv.history.close()
	kv.slots.close()
	return mapError(kv.client.Close())
}
