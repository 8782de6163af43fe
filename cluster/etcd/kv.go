package etcd

import (
	"context"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// etcdMaxOps is etcd's bound of a Txn (--max-txn-ops), for its comparisons
	// and for its operations.
	etcdMaxOps = 128
	// MaxOps is what a transaction may hold beside its slot.
	MaxOps = etcdMaxOps - 1
	// maxBytes of what a transaction writes leaves 256 KiB of etcd's 1.5 MiB
	// to what it compares, and to lengths.
	maxBytes = 5 << 18
)

// KV is one client of a store in etcd.
type KV struct {
	client  *clientv3.Client
	keys    keyspace
	gate    *occ.Gate
	slots   *slots
	history *compactor
	memory  *occ.Memory
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
		return occ.Retry(ctx, func(n int) (bool, error) { return kv.attempt(ctx, fn, n == 0) })
	})
}

// attempt returns false without an error after a conflict, and if what it
// remembered does not fit together.
func (kv *KV) attempt(ctx context.Context, fn func(cluster.Txn) error, remember bool) (done bool, err error) {
	reads := occ.NewVersions()
	recall := occ.NewRecall(kv.memory, remember, reads)
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
	rev, err := kv.slots.commit(ctx, append(s.compares(), kv.expected(t)...), kv.writes(keys, values))
	switch {
	case rev > 0:
		kv.memory.Wrote(keys, values, rev)
	case err != nil: // perhaps it happened
		kv.memory.Forget(keys...)
	}
	return rev > 0 || err != nil, err
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
