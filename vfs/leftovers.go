package vfs

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// leftoverPage is how many blobs are looked at together.
	leftoverPage = 512
	// leftoverRest is how much longer than its work the sweep rests: a store
	// of many objects is swept for minutes, beside other work.
	leftoverRest = 4
	// leftoverTries is how often a sweep that fails goes on where it was, after
	// leftoverPause: long enough for a medium that comes back.
	leftoverTries = 10
	leftoverPause = time.Minute
)

// leftovers are blobs that earlier processes made durable and did not live to
// name: a crash between the two leaves them. Their numbers are below the first
// one of this process, and nobody else makes blobs (see Exclusive), so those of
// them that nothing names are removed, once, in the background.
type leftovers struct {
	fs *FS
	// Numbers within [from, to) have not been looked at. Fixed by init.
	from, to uint64
	next     cluster.BlobID // the sweep goes on here
	done     chan struct{}  // closed when it has ended, or failed too often
}

// init comes after that of the numbers.
func (l *leftovers) init(ctx context.Context, fs *FS) error {
	l.fs, l.done = fs, make(chan struct{})
	if !fs.session.Alone() {
		return nil
	}
	l.to = fs.ids.Used()
	return fserr.Map(fs.kv.View(ctx, func(r cluster.Reader) (err error) {
		l.from, err = record.Counter(r, "swept")
		return err
	}))
}

// pending tells whether a blob, if nothing names it, will be removed.
func (l *leftovers) pending(b cluster.BlobID) bool {
	select {
	case <-l.done:
		return false
	default:
		return l.from <= b.Seq && b.Seq < l.to
	}
}

// run sweeps, unless there is nothing or another run did. What a sweep that
// fails leaves is Check's to report, until the next start.
func (l *leftovers) run(ctx context.Context) {
	if l.from >= l.to {
		return
	}
	defer close(l.done)
	for try := 1; ; try++ {
		removed, err := l.sweep(ctx)
		if removed > 0 {
			l.fs.log.Info("blobs that an earlier process left are removed", "blobs", removed)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if try == leftoverTries {
			l.fs.log.Error("blobs that an earlier process left are looked for again at the next start", "err", err)
			return
		}
		l.fs.log.Warn("the search for blobs that an earlier process left fails, it is tried again", "err", err)
		if !sleep(ctx, l.fs.tune.leftoverPause) {
			return
		}
	}
}

// sweep looks at all pending blobs and removes those that nothing names.
func (l *leftovers) sweep(ctx context.Context) (removed int, err error) {
	for {
		begun := time.Now()
		last, n, err := l.page(ctx, l.next)
		removed += n
		if err != nil {
			return removed, fserr.Map(err)
		}
		if last == nil {
			break
		}
		l.next = record.NextBlob(*last)
		if !sleep(ctx, leftoverRest*time.Since(begun)) {
			return removed, ctx.Err()
		}
	}
	return removed, fserr.Map(l.fs.kv.Update(ctx, func(t cluster.Txn) error {
		return t.Set(record.CounterKey("swept"), binary.BigEndian.AppendUint64(nil, l.to))
	}))
}

// page looks at some blobs from one on, and returns the last, nil at the end.
func (l *leftovers) page(ctx context.Context, from cluster.BlobID) (last *cluster.BlobID, removed int, err error) {
	suspects := make(map[cluster.BlobID]cluster.BlobInfo)
	n := 0
	err = l.fs.blobs.List(ctx, from, func(b cluster.BlobInfo) error {
		last = &b.ID
		if l.pending(b.ID) {
			suspects[b.ID] = b
		}
		if n++; n == leftoverPage {
			return cluster.ErrStop
		}
		return nil
	})
	if err != nil || len(suspects) == 0 {
		return last, 0, err
	}
	if err := l.fs.view(ctx, func(r cluster.Reader) error { return dropNamed(r, suspects) }); err != nil {
		return nil, 0, err
	}
	removed, err = l.fs.quarantine.Drop(ctx, slices.Collect(maps.Keys(suspects))...)
	if err != nil {
		return nil, 0, err
	}
	return last, removed, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
