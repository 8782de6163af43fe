package vfs

import (
	"context"
	"time"
)

const (
	// flushAfter bounds how long a write stays in memory only.
	flushAfter = time.Second
	// flushTick is how often the flusher looks.
	flushTick = 250 * time.Millisecond
	// collectEvery is how often the collector looks at the queue.
	collectEvery = 5 * time.Second
)

func (fs *FS) startBackground(ctx context.Context) {
	if fs.scrub.rate > 0 {
		fs.background.wait.Go(func() { fs.scrub.run(ctx) })
	}
	fs.background.wait.Go(func() { fs.quarantine.run(ctx) })
	fs.background.wait.Go(func() { fs.leftovers.run(ctx) })
	fs.background.wait.Go(func() { fs.orphans.serve(ctx, fs) })
	fs.every(ctx, flushTick, "write-behind", func(ctx context.Context) error {
		before := fs.cfg.Now().Add(-flushAfter).UnixNano()
		pressed := fs.dirty.pressed()
		return fs.flushWhere(ctx, func(of *openFile) bool { return pressed || of.dirtySince(before) })
	})
	fs.every(ctx, collectEvery, "collector", func(ctx context.Context) error {
		_, err := fs.Collect(ctx)
		return err
	})
	fs.every(ctx, collectEvery, "compaction", fs.compactQueued)
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
				fs.log.Error("background work fails, it is tried again", "work", what, "err", err)
			}
			failing = err != nil
		}
	})
}
