package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/metafs"
	"ogw/cluster/local/internal/tail"
	"ogw/cluster/local/internal/watchdog"

	"github.com/cockroachdb/pebble/v2"
)

// txnMaxBytes bounds what one transaction writes, and so the memory that it
// takes: a batch and its copy in a memtable.
const txnMaxBytes = 64 << 20

// KV is the metadata half: optimistic transactions on Pebble.
type KV struct {
	db       *pebble.DB
	log      *slog.Logger
	gate     *occ.Gate
	health   *metafs.Health
	history  *occ.History
	space    *diskspace.Guard
	onClose  func() error
	closeMax time.Duration // closeMax, except in tests
	stallMax time.Duration // closeStallMax, except in tests

	snapshots snapshots
	pairs     pairCache

	// commit is held while a transaction is compared and applied, so that
	// versions, the history and Pebble's log have one order.
	commit sync.Mutex
	// allocated is the version of the newest batch, set before it is
	// applied; visible is set after. In between, a snapshot may or may not
	// hold it.
	allocated atomic.Uint64
	visible   atomic.Uint64

	durability  durability
	spaceWait   *metafs.SpaceWait
	reserveFile *diskspace.ReserveFile
	marker      marker
	logs        *metafs.LogFS
	values      *separation
	tail        *tail.File
	erasing     sync.Mutex // held by who overwrites the tail
	// using is held for reading by who keeps an iterator for long, and gives it up when
	// somebody waits for using: Erase, which needs the files that it keeps to be gone.
	using sync.RWMutex
}

var _ cluster.KV = (*KV)(nil)

func newKV(db *pebble.DB, h *metafs.Health, space *diskspace.Guard, log *slog.Logger) *KV {
	kv := &KV{db: db, log: log, gate: occ.NewGate(), health: h, history: occ.NewHistory(0), space: space, pairs: newPairCache(), closeMax: closeMax, stallMax: closeStallMax}
	kv.snapshots.db, kv.snapshots.visible = db, &kv.visible
	kv.durability.init(kv)
	return kv
}

// View implements cluster.KV.
func (kv *KV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	_, err := kv.view(ctx, fn, false)
	return err
}

// Peek implements cluster.KV.
func (kv *KV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	torn, err := kv.view(ctx, fn, true)
	if torn {
		_, err = kv.view(ctx, fn, false)
	}
	return err
}

// look is what one run of a view takes.
type look struct {
	source source
	reader occ.Reader
	reads  occ.ReadSet
}

// view runs fn once. If torn, what it did means nothing; that happens to a
// hasty one only (see source).
func (kv *KV) view(ctx context.Context, fn func(cluster.Reader) error, hasty bool) (torn bool, err error) {
	if err := kv.gate.Enter(); err != nil {
		return false, err
	}
	defer kv.gate.Leave()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	l := new(look)
	s, r := &l.source, &l.reader
	s.begin(kv, hasty)
	defer s.close()
	r.Ctx, r.Source = ctx, s
	if cluster.IsRelaxed(ctx) {
		err := fn(r)
		return s.torn, err
	}
	var reads *occ.ReadSet
	if hasty || kv.durability.synced.Load() < s.upTo {
		reads = &l.reads
		kv.history.Begin(reads)
		r.Reads = reads
	}
	err = fn(r)
	if reads != nil && !s.torn {
		if e := kv.awaitReads(reads, s.upTo); e != nil {
			return false, e
		}
	}
	return s.torn, err
}

// awaitReads waits until those of the versions up to upTo that wrote
// something in reads are durable.
func (kv *KV) awaitReads(reads *occ.ReadSet, upTo uint64) error {
	synced := kv.durability.synced.Load()
	if synced >= upTo {
		return nil
	}
	if v := kv.history.LastHit(reads, synced, upTo); v > 0 {
		return kv.awaitDisk(kv.durability.await, v)
	}
	return nil
}

// Update implements cluster.KV.
func (kv *KV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if err := kv.gate.Enter(); err != nil {
		return err
	}
	defer kv.gate.Leave()
	return occ.Retry(ctx, func(n int) (bool, error) { return kv.attempt(ctx, fn, n < hastyAttempts) })
}

// hastyAttempts of a transaction begin without a snapshot. What tears them, a
// neighbour in a slot that is always written, or a commit that failed, need not
// be a conflict; later attempts cannot be torn.
const hastyAttempts = 2

// attempt returns false without an error after a conflict, or if it was torn.
func (kv *KV) attempt(ctx context.Context, fn func(cluster.Txn) error, hasty bool) (done bool, err error) {
	relaxed := cluster.IsRelaxed(ctx)
	version := kv.visible.Load()
	s := newSource(kv, hasty)
	defer s.close()
	reads := kv.history.NewReadSet()
	t := occ.NewTxn(ctx, s, reads, kv.Limits())
	err = fn(t)
	if e := t.Finish(); err == nil {
		err = e
	}
	unmet := false
	if err == nil {
		unmet, err = t.Unmet()
	}
	if s.torn || unmet {
		return false, nil
	}
	keys, values := t.Written()
	if err != nil || len(keys) == 0 {
		// It answers from what it read, as a View does.
		if !relaxed {
			if e := kv.awaitReads(reads, s.upTo); e != nil {
				return true, e
			}
		}
		return true, err
	}
	if err := kv.space.Admit(t); err != nil {
		return true, err
	}
	batch, err := kv.batch(t)
	if err != nil {
		return true, err
	}
	if !relaxed {
		kv.durability.waiting.Add(1)
		defer kv.durability.waiting.Add(-1)
	}
	o := applyOptions{keys: keys, values: values, reads: reads, after: version, relaxed: relaxed, caller: new(caller)}
	done, ended, err := watchdog.Do(kv.health.Disk, func() (bool, error) { return kv.commitBatch(batch, o) })
	if ended != nil {
		o.caller.leave()
	}
	return done, err
}

// commitBatch applies what a transaction wrote, and waits until it is as durable as it is to
// be. It returns false without an error after a conflict.
func (kv *KV) commitBatch(batch *pebble.Batch, o applyOptions) (done bool, err error) {
	committed, ok, err := kv.apply(batch, o)
	if err != nil || !ok {
		return err != nil, err
	}
	kv.snapshots.expire()
	switch {
	case o.relaxed:
		return true, unknownOutcome(kv.durability.awaitLog(committed.due))
	case committed.inTail:
		return true, unknownOutcome(kv.durability.syncTail(committed.version))
	}
	return true, kv.finishSync(batch, committed.version)
}

// batch encodes what t wrote.
func (kv *KV) batch(t *occ.Txn) (*pebble.Batch, error) {
	b := kv.db.NewBatchWithSize(t.Bytes() + 64)
	err := t.Writes(func(p occ.Pair) error {
		if p.Deleted {
			return b.Delete(p.Key, nil)
		}
		return b.Set(p.Key, p.Value, nil)
	})
	if err != nil {
		b.Close()
		return nil, ioerr.Map(err)
	}
	return b, nil
}

// Sync implements cluster.KV.
func (kv *KV) Sync(ctx context.Context) error {
	sync := func() error {
		return kv.gate.Run(ctx, kv.syncAll)
	}
	// A goroutine for each would cost lone syncs too much: who gives no deadline waits for a disk
	// that becomes full meanwhile, as commits do.
	if _, bounded := ctx.Deadline(); !bounded && kv.health.Err() == nil {
		return sync()
	}
	return until(ctx, sync)
}

// writable is cluster.Cluster's Writable.
func (kv *KV) writable() error {
	if err := kv.health.Failure(); err != nil {
		return err
	}
	if err := kv.health.Err(); err != nil && !errors.Is(err, cluster.ErrNoSpace) {
		return err
	}
	if err := kv.space.Measure(); err != nil {
		return err
	}
	if kv.space.ReadOnly() {
		return diskspace.ErrMedium
	}
	return nil
}

// syncAll makes all that is visible durable.
func (kv *KV) syncAll() error { return kv.awaitDisk(kv.durability.await, kv.visible.Load()) }

// logAll makes all that is visible durable in Pebble's log.
func (kv *KV) logAll() error { return kv.awaitDisk(kv.durability.awaitLog, kv.visible.Load()) }

// awaitDisk returns when version is as durable as await says. Whoever may be in a sync is counted
// by the watchdog: others wait for that, and are freed when the disk hangs, so that only this
// shows that it still does.
func (kv *KV) awaitDisk(await func(uint64) error, version uint64) error {
	return kv.health.Disk.Run(func() error { return await(version) })
}

// Limits implements cluster.KV.
func (kv *KV) Limits() cluster.Limits { return cluster.Limits{Bytes: txnMaxBytes} }

// closeTimeout bounds how long Close waits for Pebble when the store has
// failed: a goroutine that ended in the middle may never be done.
const closeTimeout = 5 * time.Second

// closeStallMax bounds how long Close waits for writes that wait for space.
// They end with an unknown outcome then.
const closeStallMax = 10 * time.Second

// closeMax bounds how long Close waits for a disk that does not answer, for each half of the
// store: longer than those do whom it waits for.
const closeMax = watchdog.Limit + 10*time.Second

// until returns what f does, or when ctx ends before, why; f goes on then.
func until(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closing returns what f does, which is a part of Close, or ErrHangs when that takes longer than
// closeMax. Writes that wait for space end meanwhile.
func (kv *KV) closing(f func() error) error {
	defer time.AfterFunc(kv.stallMax, kv.spaceWait.Stop).Stop()
	ctx, cancel := context.WithTimeoutCause(context.Background(), kv.closeMax, watchdog.ErrHangs)
	defer cancel()
	return until(ctx, f)
}

// Close implements cluster.KV. Where the disk does not answer, the process keeps the lock of
// the folder as long as something may still be written.
func (kv *KV) Close() error {
	err := kv.closing(kv.close)
	if errors.Is(err, watchdog.ErrHangs) {
		_ = kv.health.Fail(err) // nothing is removed any more
	}
	return err
}

func (kv *KV) close() error {
	if !kv.gate.Close() {
		return cluster.ErrClosed
	}
	kv.durability.stop()
	kv.reserveFile.Stop()
	kv.marker.stop()
	marking := kv.marker.count()
	kv.snapshots.close()
	err := kv.health.Failure()
	if err == nil {
		// Of the log: its errors at the end of Pebble are hidden from that, and the tail goes.
		err = kv.logAll()
	}
	closed := make(chan error, 1)
	go func() { closed <- closeDB(kv.db) }()
	var failed <-chan time.Time
	if kv.health.Failure() != nil {
		failed = time.After(closeTimeout)
	}
	select {
	case e := <-closed:
		kv.tail.Close(err == nil && e == nil)
		if e == nil && marking {
			kv.marker.guard.Write() // nothing changes any more
		}
		if err == nil {
			err = ioerr.Map(e)
		}
	case <-failed:
	}
	if kv.onClose != nil {
		if e := kv.onClose(); err == nil {
			err = e
		}
	}
	return err
}

func closeDB(db *pebble.DB) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("close: %v", p)
		}
	}()
	return db.Close()
}
