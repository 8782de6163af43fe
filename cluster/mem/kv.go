package mem

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

// New returns an engine in memory.
func New(o Options) *cluster.Cluster {
	if o.Disk == nil {
		o.Disk = NewDisk()
	}
	m := newManners(o)
	return &cluster.Cluster{
		KV:        &KV{m: m, disk: o.Disk, gate: occ.NewGate(), history: occ.NewHistory(0)},
		Blobs:     &Blobs{m: m, disk: o.Disk, gate: occ.NewGate()},
		Name:      "mem",
		Exclusive: true,
	}
}

// KV is the metadata half.
type KV struct {
	m       *manners
	disk    *Disk
	gate    *occ.Gate
	history *occ.History

	commit  sync.Mutex // held while a transaction is compared and applied
	version atomic.Uint64
	timer   *time.Timer // set under commit: makes relaxed commits durable
}

// View implements cluster.KV.
func (kv *KV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.gate.Run(ctx, func() error {
		if err := kv.m.call(OpView); err != nil {
			return err
		}
		err := fn(&occ.Reader{Ctx: ctx, Source: source{kv.disk.snapshot()}})
		if !cluster.IsRelaxed(ctx) {
			kv.disk.sync() // what was returned must be durable, and it is cheap here
		}
		return err
	})
}

// Peek implements cluster.KV.
func (kv *KV) Peek(ctx context.Context, fn func(cluster.Reader) error) error { return kv.View(ctx, fn) }

// Update implements cluster.KV.
func (kv *KV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if err := kv.gate.Enter(); err != nil {
		return err
	}
	defer kv.gate.Leave()
	if err := kv.m.call(OpUpdate); err != nil {
		return err
	}
	return occ.Retry(ctx, func(int) (bool, error) { return kv.attempt(ctx, fn) })
}

// attempt returns false without an error after a conflict.
func (kv *KV) attempt(ctx context.Context, fn func(cluster.Txn) error) (done bool, err error) {
	version := kv.version.Load()
	reads := kv.history.NewReadSet()
	t := occ.NewTxn(ctx, source{kv.disk.snapshot()}, reads, kv.m.o.Limits)
	err = fn(t)
	if e := t.Finish(); err == nil {
		err = e
	}
	relaxed := cluster.IsRelaxed(ctx)
	if err != nil {
		if !relaxed {
			kv.disk.sync()
		}
		return true, err
	}
	if err := kv.m.call(OpCommit); err != nil {
		return true, err
	}
	unmet, err := t.Unmet()
	if err != nil {
		return true, err
	}
	if unmet || kv.m.chance(kv.m.o.ConflictRate) {
		return false, nil
	}
	unknown := kv.m.chance(kv.m.o.UnknownRate)
	if unknown && kv.m.chance(0.5) {
		return true, fmt.Errorf("%w: commit may not have happened", cluster.ErrUnavailable)
	}
	if !kv.apply(t, reads, version, relaxed) {
		return false, nil
	}
	if unknown {
		return true, fmt.Errorf("%w: commit may have happened", cluster.ErrUnavailable)
	}
	return true, kv.m.o.Faults.next(OpCommitted)
}

// apply commits t unless what it read has changed.
func (kv *KV) apply(t *occ.Txn, reads *occ.ReadSet, version uint64, relaxed bool) bool {
	kv.commit.Lock()
	defer kv.commit.Unlock()
	if kv.history.Conflicts(reads, version) {
		return false
	}
	kv.disk.apply(t, relaxed)
	if keys, _ := t.Written(); len(keys) > 0 {
		kv.history.Push(kv.version.Load()+1, keys)
		kv.version.Add(1)
	}
	if relaxed && kv.timer == nil {
		kv.timer = time.AfterFunc(cluster.RelaxedBound/2, kv.timedSync)
	}
	return true
}

func (kv *KV) timedSync() {
	if kv.gate.Enter() != nil {
		return // Close made all durable, or the power was cut
	}
	defer kv.gate.Leave()
	kv.commit.Lock()
	kv.timer = nil
	kv.commit.Unlock()
	kv.disk.sync()
}

// Sync implements cluster.KV.
func (kv *KV) Sync(ctx context.Context) error {
	if err := kv.gate.Enter(); err != nil {
		return err
	}
	defer kv.gate.Leave()
	if err := kv.m.call(OpSync); err != nil {
		return err
	}
	kv.disk.sync()
	return ctx.Err()
}

// Erase implements cluster.KV. Nothing keeps what was replaced but the copy
// that a power cut would leave.
func (kv *KV) Erase(ctx context.Context, _ ...cluster.KeyRange) error { return kv.Sync(ctx) }

// Limits implements cluster.KV.
func (kv *KV) Limits() cluster.Limits { return kv.m.o.Limits }

// Close implements cluster.KV.
func (kv *KV) Close() error {
	if !kv.gate.Close() {
		return cluster.ErrClosed
	}
	kv.disk.sync()
	return nil
}

// Abandon ends the engine as a crash does: nothing more is made durable. Use
// Disk.PowerCut after it.
func (kv *KV) Abandon() { kv.gate.Close() }
