package local

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
	// valuePasses: the first is for tables beside the ranges that use the same value files, the
	// second for what a compaction that was under way then took along, and the third finds none.
	valuePasses = 3
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
	if err := kv.eraseTables(ctx, ranges); err != nil {
		return fmt.Errorf("erase the tables of the metadata: %w", ioerr.Map(err))
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

// eraseTables rewrites what holds the ranges. Values have files that tables share, also those of
// other keys: these are rewritten too, until nobody needs a file in which one of the ranges was.
func (kv *KV) eraseTables(ctx context.Context, ranges []cluster.KeyRange) error {
	kv.values.renew.Store(true)
	defer kv.values.renew.Store(false)
	before, err := kv.valueFiles()
	if err != nil {
		return err
	}
	if err := kv.rewrite(ctx, ranges); err != nil {
		return err
	}
	after, err := kv.valueFiles()
	if err != nil {
		return err
	}
	var old []uint64
	for file, users := range before {
		if slices.ContainsFunc(users, func(r cluster.KeyRange) bool { return overlapsAny(r, ranges) }) {
			old = append(old, file)
		}
	}
	// A compaction that was under way may have taken along what was replaced.
	for file := range after {
		if before[file] == nil {
			old = append(old, file)
		}
	}
	for range valuePasses {
		var users []cluster.KeyRange
		for _, file := range old {
			users = append(users, after[file]...)
		}
		if len(users) == 0 {
			return nil
		}
		if err := kv.rewrite(ctx, users); err != nil {
			return err
		}
		if after, err = kv.valueFiles(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: value files of what is to be erased are still used", cluster.ErrUnavailable)
}

// rewrite compacts all tables of the ranges. A compaction leaves alone what nothing newer
// overlaps: it moves such a table, and does not begin at the last level. So the
// ranges get something newer, a deletion of Pebble's range keys, of which there are none.
func (kv *KV) rewrite(ctx context.Context, ranges []cluster.KeyRange) error {
	err := kv.applyInternal(func(b *pebble.Batch) error {
		for _, r := range ranges {
			if err := b.RangeKeyDelete(r.Start, r.End, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if err := until(ctx, func() error { return kv.db.Compact(ctx, r.Start, r.End, false) }); err != nil {
			return err
		}
	}
	return nil
}

// valueFiles returns the value files, and the ranges of the tables that use each.
func (kv *KV) valueFiles() (map[uint64][]cluster.KeyRange, error) {
	levels, err := kv.db.SSTables()
	if err != nil {
		return nil, err
	}
	files := make(map[uint64][]cluster.KeyRange)
	for _, tables := range levels {
		for _, t := range tables {
			r := cluster.KeyRange{Start: t.Smallest.UserKey, End: append(bytes.Clone(t.Largest.UserKey), 0)}
			for _, file := range t.GetBlobReferenceFiles() {
				files[uint64(file)] = append(files[uint64(file)], r)
			}
		}
	}
	return files, nil
}

func overlapsAny(r cluster.KeyRange, ranges []cluster.KeyRange) bool {
	return slices.ContainsFunc(ranges, func(o cluster.KeyRange) bool {
		return bytes.Compare(r.Start, o.End) < 0 && bytes.Compare(o.Start, r.End) < 0
	})
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
