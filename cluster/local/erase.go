package local

import (
	"context"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// erasePasses: the first leaves at most one log that was made out of an
	// old one while its predecessors were overwritten, the log in use; the
	// second makes that one an old one.
	erasePasses = 2
	// eraseWait bounds the wait for those who still read what was replaced, and again for
	// Pebble to remove the files that a compaction replaced, which it does in the
	// background.
	eraseWait = 30 * time.Second
)

// Erase implements cluster.KV: tables and value files that hold what was
// replaced are rewritten, and the logs, which Pebble keeps to use them again,
// are overwritten with zeros. Views that began before what they read was replaced are
// waited for. It ends with ctx, when the store fails, and when Close has waited long enough.
func (kv *KV) Erase(ctx context.Context, ranges ...cluster.KeyRange) error {
	if err := kv.gate.Enter(); err != nil {
		return err
	}
	defer kv.gate.Leave()
	ctx, cancel := kv.whileWell(ctx)
	defer cancel()
	if err := until(ctx, kv.syncAll); err != nil {
		return err
	}
	kv.using.Lock()
	defer kv.using.Unlock()
	if err := kv.awaitReaders(ctx); err != nil {
		return err
	}
	for _, r := range ranges {
		err := until(ctx, func() error { return kv.db.Compact(ctx, r.Start, r.End, false) })
		if err != nil {
			return ioerr.Map(err)
		}
	}
	for range erasePasses {
		if err := kv.eraseLogs(ctx); err != nil {
			return fmt.Errorf("erase the logs of the metadata: %w", ioerr.Map(err))
		}
	}
	if err := kv.eraseTail(ctx); err != nil {
		return fmt.Errorf("erase the tail of the log: %w", ioerr.Map(err))
	}
	return kv.awaitRemovals(ctx)
}

// whileWell returns a context that ends with ctx, and when there is no use in waiting for Pebble
// any more: it may never be done with a table that it cannot write.
func (kv *KV) whileWell(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-kv.health.Failed():
			cancel(kv.health.Failure())
		case <-kv.spaceWait.Stopped():
			cancel(cluster.ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// eraseTail overwrites the tail. Commits wait for Pebble's log until it is done. One
// at a time: the first that is done has commits write there again.
func (kv *KV) eraseTail(ctx context.Context) error {
	kv.erasing.Lock()
	defer kv.erasing.Unlock()
	pause := func(on bool) {
		kv.commit.Lock()
		defer kv.commit.Unlock()
		kv.tail.Pause(on)
	}
	pause(true)
	defer pause(false)
	if err := until(ctx, kv.logAll); err != nil {
		return err
	}
	return kv.tail.Wipe()
}

// eraseLogs makes all logs old ones that are there now, and overwrites them.
func (kv *KV) eraseLogs(ctx context.Context) error {
	old, err := kv.logs.Logs()
	if err != nil {
		return err
	}
	// Flush does nothing where nothing was written.
	err = kv.applyInternal(func(b *pebble.Batch) error { return b.Set(record.EraseKey, nil, nil) })
	if err != nil {
		return err
	}
	if err := until(ctx, func() error { return kv.health.Catch(kv.db.Flush) }); err != nil {
		return err
	}
	for _, name := range old {
		if err := kv.logs.Wipe(name); err != nil {
			return err
		}
	}
	return nil
}

// awaitReaders waits until there is no snapshot of what was replaced before: a compaction
// keeps what one can still read.
func (kv *KV) awaitReaders(ctx context.Context) error {
	replaced := kv.visible.Load()
	kv.snapshots.close()
	return awaitNone(ctx, "readers of what is to be erased", func() int64 { return kv.snapshots.before(replaced) })
}

// awaitRemovals waits until the files that were replaced are gone.
func (kv *KV) awaitRemovals(ctx context.Context) error {
	return awaitNone(ctx, "replaced files of the metadata", func() int64 {
		m := kv.db.Metrics()
		return m.Table.ObsoleteCount + m.Table.ZombieCount + int64(m.BlobFiles.ObsoleteCount) + int64(m.BlobFiles.ZombieCount)
	})
}

// awaitNone waits until there are none of what Erase has to wait for.
func awaitNone(ctx context.Context, what string, count func() int64) error {
	ctx, cancel := context.WithTimeout(ctx, eraseWait)
	defer cancel()
	for {
		left := count()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d %s are still there", cluster.ErrUnavailable, left, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
