package local

import (
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2"
)

// durability knows which versions are on the medium. Pebble's log has the
// order of the versions, so that one number is enough.
type durability struct {
	kv *KV
	// synced: versions up to this one are durable.
	synced atomic.Uint64
	// requested: versions up to this one will be, a sync is under way.
	// Written under KV.commit.
	requested atomic.Uint64

	mu    sync.Mutex
	moved *sync.Cond  // synced grew, or the store failed
	timer *time.Timer // bounds how long relaxed commits stay volatile
	done  bool
}

func (d *durability) init(kv *KV) {
	d.kv = kv
	d.moved = sync.NewCond(&d.mu)
	kv.health.OnFailure(func() {
		d.mu.Lock()
		d.moved.Broadcast()
		d.mu.Unlock()
	})
}

// advance notes that versions up to version are durable.
func (d *durability) advance(version uint64) {
	for {
		old := d.synced.Load()
		if old >= version {
			return
		}
		if d.synced.CompareAndSwap(old, version) {
			break
		}
	}
	d.mu.Lock()
	d.moved.Broadcast()
	d.mu.Unlock()
}

// await returns when version is durable, or the store failed.
func (d *durability) await(version uint64) error {
	if d.synced.Load() >= version {
		return nil
	}
	if d.requested.Load() < version {
		if err := d.sync(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.synced.Load() < version {
		if d.kv.health.Failure() != nil {
			return d.kv.health.Err()
		}
		d.moved.Wait()
	}
	return nil
}

// sync makes all that is visible durable, by a sync of its own.
func (d *durability) sync() error {
	kv := d.kv
	b := kv.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return ioerr.Map(err)
	}
	kv.commit.Lock()
	if err := kv.health.Failure(); err != nil {
		kv.commit.Unlock()
		b.Close()
		return err
	}
	version := kv.visible.Load()
	err := kv.applyBatch(b, false)
	if err == nil {
		d.requested.Store(version)
	}
	kv.commit.Unlock()
	if err != nil {
		return err
	}
	return kv.finishSync(b, version)
}

// relaxedCommit sees to it that what was just applied is durable in time.
func (d *durability) relaxedCommit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil && !d.done {
		d.timer = time.AfterFunc(cluster.RelaxedBound/2, d.timedSync)
	}
}

func (d *durability) timedSync() {
	if d.kv.gate.Enter() != nil {
		return // Close syncs
	}
	defer d.kv.gate.Leave()
	d.mu.Lock()
	d.timer = nil
	d.mu.Unlock()
	if err := d.kv.syncAll(); err != nil && d.kv.health.Failure() == nil {
		d.kv.log.Error("metadata store: background sync failed", "err", err)
	}
}

// stop ends the timer.
func (d *durability) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// noKeys is the write set of batches that touch the engine's own keys only.
var noKeys [][]byte

// applyInternal writes the engine's own keys, relaxed: they are durable no
// later than the next Update that is.
func (kv *KV) applyInternal(fill func(*pebble.Batch) error) error {
	if err := kv.gate.Enter(); err != nil {
		return err
	}
	defer kv.gate.Leave()
	b := kv.db.NewBatch()
	if err := fill(b); err != nil {
		b.Close()
		return ioerr.Map(err)
	}
	_, _, err := kv.apply(b, applyOptions{keys: noKeys, relaxed: true})
	return err
}
