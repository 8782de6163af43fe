package fsck

import (
	"context"
	"maps"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/quarantine"
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

// Leftovers are blobs that earlier processes made durable and did not live to
// name: a crash between the two leaves them. Their numbers are below the first
// one of this process, and of each that uses the store beside it, so
// those of them that nothing names are removed, once, in the background.
type Leftovers struct {
	// Pause between two tries.
	Pause time.Duration

	store Store
	blobs *quarantine.Blobs
	// Numbers within [from, to) have not been looked at.
	from, to uint64
	next     cluster.BlobID // the sweep goes on here
	done     chan struct{}  // closed when it has ended, or failed too often
}

// NewLeftovers finds out what is to be looked at; used is the number from which
// on this process makes blobs.
func NewLeftovers(ctx context.Context, store Store, blobs *quarantine.Blobs, used uint64) (*Leftovers, error) {
	l := &Leftovers{Pause: leftoverPause, store: store, blobs: blobs, done: make(chan struct{})}
	err := store.View(ctx, func(r cluster.Reader) error {
		left, err := store.Left(r)
		if err != nil {
			return err
		}
		l.to = min(used, left)
		l.from, err = record.Counter(r, record.CounterSwept)
		return err
	})
	return l, err
}

// Pending reports whether a blob, if nothing names it, will be removed.
func (l *Leftovers) Pending(b cluster.BlobID) bool {
	select {
	case <-l.done:
		return false
	default:
		return l.from <= b.Seq && b.Seq < l.to
	}
}

// Run sweeps, unless there is nothing or another run did. What a sweep that
// fails leaves is Check's to report, until the next start.
func (l *Leftovers) Run(ctx context.Context) {
	if l.from >= l.to {
		return
	}
	defer close(l.done)
	for try := 1; ; try++ {
		removed, err := l.Sweep(ctx)
		if removed > 0 {
			l.blobs.Log.Info("blobs that an earlier process left are removed", "blobs", removed)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if try == leftoverTries {
			l.blobs.Log.Error("blobs that an earlier process left are looked for again at the next start", "err", err)
			return
		}
		l.blobs.Log.Warn("the search for blobs that an earlier process left fails, it is tried again", "err", err)
		if pause.For(ctx, l.Pause) != nil {
			return
		}
	}
}

// Sweep looks at all pending blobs and removes those that nothing names.
func (l *Leftovers) Sweep(ctx context.Context) (removed int, err error) {
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
		if err := pause.For(ctx, leftoverRest*time.Since(begun)); err != nil {
			return removed, err
		}
	}
	return removed, fserr.Map(l.blobs.KV.Update(ctx, func(t cluster.Txn) error {
		swept, err := record.Counter(t, record.CounterSwept)
		if err != nil {
			return err
		}
		return record.SetCounter(t, record.CounterSwept, max(swept, l.to))
	}))
}

// page looks at some blobs from one on, and returns the last, nil at the end.
func (l *Leftovers) page(ctx context.Context, from cluster.BlobID) (last *cluster.BlobID, removed int, err error) {
	suspects := make(map[cluster.BlobID]cluster.BlobInfo)
	n := 0
	err = l.blobs.Engine.List(ctx, from, func(b cluster.BlobInfo) error {
		last = &b.ID
		if l.Pending(b.ID) {
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
	if err := l.store.View(ctx, func(r cluster.Reader) error { return dropNamed(r, suspects) }); err != nil {
		return nil, 0, err
	}
	removed, err = l.blobs.Drop(ctx, slices.Collect(maps.Keys(suspects))...)
	if err != nil {
		return nil, 0, err
	}
	return last, removed, nil
}
