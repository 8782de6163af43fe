package local

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/tail"
	"ogw/cluster/local/internal/watchdog"

	"github.com/cockroachdb/pebble/v2"
)

// durability knows which versions are on the medium. Pebble's log has the
// order of the versions, and the tail no gap, so that a number for each is enough.
type durability struct {
	kv *KV
	// synced: versions up to this one are durable.
	synced atomic.Uint64
	// logged: versions up to this one are durable in Pebble's log. Those after it, up to
	// synced, are so in the tail.
	logged atomic.Uint64
	// requested: versions up to this one will be durable, a sync is under way; logging:
	// in Pebble's log. Written under KV.commit.
	requested, logging atomic.Uint64
	// tailed is the newest version in the tail, base the one with which that became
	// active, stored first. Written under KV.commit.
	tailed, base atomic.Uint64
	// waiting counts transactions that commit durably; alone those in a row that
	// were the only one, under KV.commit.
	waiting  atomic.Int32
	alone    int
	aloneMin int // aloneMin, except in tests
	// unlogged bytes were committed since a sync of the log began; beyond unloggedMax no
	// durable commit does without one. Under KV.commit.
	unlogged, unloggedMax int

	mu      sync.Mutex
	moved   *sync.Cond  // synced or logged grew, syncing ended, the store failed, or its disk hangs
	syncing bool        // of the tail
	timer   *time.Timer // bounds how long commits are not in Pebble's log
	done    bool
}

const (
	// aloneMin is how many durable commits in a row must be alone, and short, for the tail to make
	// them durable.
	aloneMin = 32
	// aloneMax is the longest of these, in bytes. Everything in the tail is written to Pebble's log, too.
	aloneMax = 16 << 10
	// unloggedShare is which part of a memtable durable commits may fill before the log is synced.
	// Errors of the log show in its syncs alone: they have to before the memtables are full, since a
	// log that cannot be written keeps them from being flushed, and a commit would wait for that for ever.
	unloggedShare = 4
)

func (d *durability) init(kv *KV) {
	d.kv, d.aloneMin = kv, aloneMin
	d.moved = sync.NewCond(&d.mu)
	kv.health.OnFailure(func() {
		d.mu.Lock()
		d.moved.Broadcast()
		d.mu.Unlock()
	})
}

// use returns what a commit wants of the tail. One that is durable and alone is
// synced there, by its own goroutine: Pebble's log is written and synced by another one, and to wake that and
// to be woken takes as long as half a sync. Many at a time share Pebble's syncs, which cost each less.
func (d *durability) use(o *applyOptions, bytes int) tail.Use {
	switch {
	case o.keys == nil:
		return tail.None
	case o.relaxed:
		return tail.Answer
	case d.waiting.Load() > 1 || bytes > aloneMax:
		d.alone = 0
	default:
		d.alone++
	}
	if d.alone < d.aloneMin || d.unlogged+bytes > d.unloggedMax {
		return tail.None
	}
	return tail.Durable
}

// inTail notes that the tail, active since base, has version.
func (d *durability) inTail(base, version uint64) {
	d.base.Store(base)
	d.tailed.Store(version)
}

// willLog notes that a sync of the log began, for versions up to version. KV.commit is held.
func (d *durability) willLog(version uint64) {
	d.logging.Store(version)
	d.unlogged = 0
}

// advanceLog notes that versions up to version are durable in Pebble's log.
func (d *durability) advanceLog(version uint64) {
	raise(&d.logged, version)
	d.advance(version)
}

// advance notes that versions up to version are durable.
func (d *durability) advance(version uint64) {
	raise(&d.synced, version)
	d.mu.Lock()
	d.moved.Broadcast()
	d.mu.Unlock()
}

// raise sets v to at least least.
func raise(v *atomic.Uint64, least uint64) {
	for old := v.Load(); old < least; old = v.Load() {
		if v.CompareAndSwap(old, least) {
			return
		}
	}
}

// await returns when version is durable, the store failed, or its disk hangs.
func (d *durability) await(version uint64) error {
	if d.requested.Load() < version {
		// With these two in this order, base is that of the run that version is in, or
		// a later one, and then what comes before is durable.
		if tailed, base := d.tailed.Load(), d.base.Load(); tailed >= version && d.logged.Load() >= base {
			return d.syncTail(version)
		}
	}
	return d.awaitSync(&d.synced, &d.requested, version)
}

// awaitLog returns when Pebble's log has version, durably, the store failed, or its disk hangs.
func (d *durability) awaitLog(version uint64) error {
	return d.awaitSync(&d.logged, &d.logging, version)
}

// awaitSync returns when reached is at version, by the sync that is under way for requested, or
// by one of Pebble's log.
func (d *durability) awaitSync(reached, requested *atomic.Uint64, version uint64) error {
	if reached.Load() >= version {
		return nil
	}
	if requested.Load() < version {
		if err := d.sync(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for reached.Load() < version {
		if err := d.kv.health.Waiting(); err != nil {
			return err
		}
		d.moved.Wait()
	}
	return nil
}

// syncTail makes version durable, which the tail has, by a sync of its own or by that of
// another goroutine that began later.
func (d *durability) syncTail(version uint64) error {
	d.mu.Lock()
	for d.syncing && d.synced.Load() < version && d.kv.health.Waiting() == nil {
		d.moved.Wait()
	}
	if d.synced.Load() >= version {
		d.mu.Unlock()
		return nil
	}
	if err := d.kv.health.Waiting(); err != nil {
		d.mu.Unlock()
		return err
	}
	d.syncing = true
	d.mu.Unlock()

	upTo := d.tailed.Load()
	err := d.kv.tail.Sync()
	if d.logged.Load() < d.base.Load() {
		upTo = version // what came before base may be nowhere yet
	}
	d.mu.Lock()
	d.syncing = false
	if err == nil {
		raise(&d.synced, upTo)
	}
	d.moved.Broadcast()
	d.mu.Unlock()
	if err != nil {
		return d.sync()
	}
	return nil
}

// sync makes all that is visible durable in Pebble's log, by a sync of its own.
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
		d.willLog(version)
	}
	kv.commit.Unlock()
	if err != nil {
		return err
	}
	return kv.finishSync(b, version)
}

// awaitsLog sees to it that what was just applied is durable in Pebble's log in time.
func (d *durability) awaitsLog() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil && !d.done {
		d.timer = time.AfterFunc(cluster.RelaxedBound/2, d.timedSync)
	}
}

func (d *durability) timedSync() {
	if d.kv.gate.Enter() != nil {
		return // Close syncs the log
	}
	defer d.kv.gate.Leave()
	d.mu.Lock()
	d.timer = nil
	d.mu.Unlock()
	// Where nobody waits for a commit to be durable, this is what finds out that the disk hangs.
	switch err := d.kv.logAll(); {
	case errors.Is(err, watchdog.ErrHangs): // which was logged
		d.awaitsLog() // for when it answers
	case err != nil && d.kv.health.Failure() == nil:
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
