package local

import (
	"errors"
	"fmt"
	"sync"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/tail"
	"ogw/cluster/local/internal/watchdog"

	"github.com/cockroachdb/pebble/v2"
)

type applyOptions struct {
	keys    [][]byte     // written, for the history
	values  [][]byte     // of the keys; nil: deleted
	reads   *occ.ReadSet // nil: cannot conflict
	after   uint64       // reads were made at this version or later
	relaxed bool
	caller  *caller // nil: waits for the end, whatever comes
}

// caller is who waits for a commit, until the disk hangs.
type caller struct {
	applying sync.Mutex // held while the commit is applied
	gone     bool
}

// leave decides whether the commit is one: on return it is visible, or will never be applied. So
// what the process remembers of the store, and makes forgotten when a commit ends, is not outdated
// later by one that nobody waits for. One that is just being applied may be in the tail or in
// Pebble, and cannot be taken back: it is waited for, and there is one at a time.
func (c *caller) leave() {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.gone = true
}

// committed is what apply returns about a commit.
type committed struct {
	version uint64
	// due must be durable in Pebble's log before a relaxed commit is acknowledged.
	due uint64
	// inTail: a sync of the tail makes the commit durable.
	inTail bool
}

// apply gives b a version and makes it visible. Unless it is relaxed, the
// caller calls syncTail or finishSync. It returns false without an error, and closes b,
// when what was read has changed.
func (kv *KV) apply(b *pebble.Batch, o applyOptions) (c committed, ok bool, err error) {
	if err := kv.health.Err(); err != nil {
		b.Close() // who holds the lock may be waiting for space
		return c, false, err
	}
	if o.reads != nil && kv.history.Conflicts(o.reads, o.after) {
		b.Close() // found without the lock: most conflicts are
		return c, false, nil
	}
	kv.commit.Lock()
	defer kv.commit.Unlock()
	if err := kv.health.Err(); err != nil {
		b.Close()
		return c, false, err
	}
	if o.reads != nil && kv.history.Conflicts(o.reads, o.after) {
		b.Close()
		return c, false, nil
	}
	if o.caller != nil {
		o.caller.applying.Lock()
		defer o.caller.applying.Unlock()
		if o.caller.gone {
			b.Close()
			return c, false, watchdog.ErrHangs
		}
	}
	version := kv.allocated.Load() + 1
	use := kv.durability.use(&o, b.Len())
	if kv.tail.Stamps(version, use) {
		if err := b.Set(record.VersionKey, kv.tail.Stamp(version), nil); err != nil {
			b.Close()
			return c, false, ioerr.Map(err)
		}
	}
	kv.allocated.Store(version)
	// Before it can be read, so that a reader that sees it finds it.
	kv.history.Push(version, o.keys)
	kv.pairs.wrote(version, o.keys, o.values)
	logged := kv.durability.logged.Load()
	due, full := kv.tail.Append(version, b.Repr(), use, logged)
	c = committed{version: version, due: due, inTail: use == tail.Durable && due <= logged}
	if err := kv.applyBatch(b, o.relaxed || c.inTail); err != nil {
		return c, false, unknownOutcome(err) // the tail may have it
	}
	kv.visible.Store(version)
	if due < version {
		kv.durability.inTail(due, version)
	}
	if !o.relaxed {
		kv.durability.requested.Store(version)
	}
	if o.relaxed || c.inTail {
		kv.durability.unlogged += b.Len()
		kv.durability.awaitsLog()
		b.Close()
	} else {
		kv.durability.willLog(version)
	}
	if full {
		go kv.durability.timedSync() // at most one half waits for one
	}
	return c, true, nil
}

// applyBatch gives b to Pebble.
func (kv *KV) applyBatch(b *pebble.Batch, relaxed bool) error {
	return kv.health.Catch(func() error {
		if relaxed {
			return kv.db.Apply(b, pebble.NoSync)
		}
		return kv.db.ApplyNoSyncWait(b, pebble.Sync)
	})
}

// unknownOutcome is the error of a commit that a start may find: whatever ended the store,
// a full disk included, it is no definite failure.
func unknownOutcome(err error) error {
	if err == nil || errors.Is(err, cluster.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: outcome of the commit unknown: %w", cluster.ErrUnavailable, err)
}

// finishSync waits until b, which was applied as version, is durable.
func (kv *KV) finishSync(b *pebble.Batch, version uint64) error {
	if err := b.SyncWait(); err != nil {
		// The log is broken; b must not go back to the pool.
		return unknownOutcome(kv.health.Fail(err))
	}
	if err := kv.health.Failure(); err != nil {
		// Perhaps this sync's failure, of which Pebble was not notified.
		return unknownOutcome(err)
	}
	kv.durability.advanceLog(version)
	b.Close()
	return nil
}
