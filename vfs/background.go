package vfs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/accesstime"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

const (
	// flushAfter bounds how long a write stays in memory only.
	flushAfter = time.Second
	// flushTick is how often the flusher looks.
	flushTick = 250 * time.Millisecond
	// collectEvery is how often the collector looks at the queue.
	collectEvery = 5 * time.Second
	// sweepLocksEvery is how often it is looked for locks of gateways that are gone, in files
	// that nobody locks any more.
	sweepLocksEvery = time.Minute
	// storeReadsEvery is how long access times are in memory only, readsPause how
	// often there is a look whether they need room.
	storeReadsEvery = time.Minute
	readsPause      = time.Second
	// storeReadsBatch is how many one transaction stores, few enough that a
	// conflict costs little.
	storeReadsBatch = 64
)

func (fs *FS) startBackground(ctx context.Context) {
	if fs.cfg.ScrubBytes > 0 {
		fs.background.wait.Go(func() { fs.session.Lead(ctx, fs.scrub.Run) })
	}
	fs.background.wait.Go(func() { fs.session.ServePurges(ctx, fs.Purge) })
	fs.background.wait.Go(func() { fs.quarantine.Run(ctx) })
	fs.background.wait.Go(func() { fs.leftovers.Run(ctx) })
	fs.background.wait.Go(func() { fs.orphans.Serve(ctx, orphanBatchOf(fs.kv), fs.removeQueued) })
	fs.every(ctx, flushTick, "write-behind", func(ctx context.Context) error {
		before := fs.cfg.Now().Add(-flushAfter).UnixNano()
		pressed := fs.dirty.pressed()
		return fs.flushWhere(ctx, func(of *openFile) bool { return pressed || of.dirtySince(before) })
	})
	fs.background.wait.Go(func() { fs.behind.run(ctx, fs.log) })
	stored := time.Now()
	fs.every(ctx, readsPause, "access times", func(ctx context.Context) error {
		if !fs.reads.Crowded() && time.Since(stored) < storeReadsEvery {
			return nil
		}
		stored = time.Now()
		fs.reads.NextTurn() // a day may be over for what stays open
		return fs.storeReads(ctx)
	})
	fs.every(ctx, collectEvery, "collector", func(ctx context.Context) error {
		_, err := fs.Collect(ctx)
		return err
	})
	if !fs.session.Alone() {
		fs.every(ctx, collectEvery, "blobs", fs.askBlobs)
	}
	if fs.shared != nil {
		fs.every(ctx, sweepLocksEvery, "locks", fs.sweepLocks)
	}
	fs.every(ctx, collectEvery, "compaction", fs.contents.Compact)
	fs.every(ctx, collectEvery, "leftovers", fs.sweepLeft)
}

// askBlobs finds out whether the blobs answer this process, and if not, has another one
// do what one does for all.
func (fs *FS) askBlobs(ctx context.Context) error {
	_, err := fs.blobs.Usage(ctx)
	if ctx.Err() == nil {
		fs.session.Answered(err == nil)
	}
	return fserr.Map(err)
}

// sweepLeft removes what gateways that others are beside left, when nobody may name it
// any more. One does it; each lets go of its own numbers of that time.
func (fs *FS) sweepLeft(ctx context.Context) error {
	waits := fs.session.Waits()
	if waits == 0 {
		return nil
	}
	if err := fs.ids.Renew(ctx, waits); err != nil || !fs.session.Leads() {
		return err
	}
	return fs.leftovers.Again(ctx, waits)
}

// every runs fn again and again until ctx ends. A failure is logged once
// until fn succeeds again.
func (fs *FS) every(ctx context.Context, d time.Duration, what string, fn func(context.Context) error) {
	fs.background.wait.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		failing := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := fn(ctx)
			if err != nil && ctx.Err() == nil && !failing {
				level := slog.LevelError
				if errors.Is(err, session.ErrReading) {
					level = slog.LevelInfo
				}
				fs.log.Log(ctx, level, "background work fails, it is tried again", "work", what, "err", err)
			}
			failing = err != nil
		}
	})
}

// sweepLocks removes locks of gateways that are gone. One does it.
func (fs *FS) sweepLocks(ctx context.Context) error {
	if !fs.session.Leads() {
		return nil
	}
	return fserr.Map(fs.shared.Sweep(ctx))
}

// storeReads stores the access times that are in memory. What was lost with the
// process is no more than that a file was read.
func (fs *FS) storeReads(ctx context.Context) error {
	list := fs.reads.Entries()
	for batch := range slices.Chunk(list, storeReadsBatch) {
		err := fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, _ *op) error { return fs.storeReadsOf(t, batch) })
		if err != nil {
			return err
		}
		for _, e := range batch {
			fs.reads.Done(e)
		}
	}
	return nil
}

func (fs *FS) storeReadsOf(t cluster.Txn, batch []accesstime.Entry) error {
	keys := make([][]byte, len(batch))
	for i, e := range batch {
		keys[i] = record.InodeKey(Ino(e.Ino))
	}
	values, err := t.GetMany(keys)
	if err != nil {
		return err
	}
	for i, e := range batch {
		if values[i] == nil {
			continue
		}
		n, err := record.DecodeInode(Ino(e.Ino), values[i])
		if err != nil {
			return err
		}
		// Who set the time meanwhile, to the same even, made the entry void.
		if read, ok := fs.reads.Get(e.Ino, n.Atime.UnixNS()); !ok || read != e.Read {
			continue
		}
		n.Atime = TimeNS(e.Read)
		if err := record.PutInode(t, n); err != nil {
			return err
		}
	}
	return nil
}
