package fsck

import (
	"context"
	"maps"
	"slices"
	"sync"
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

	sweeping sync.Mutex     // one sweep at a time
	next     cluster.BlobID // where it goes on; under sweeping
	swept    uint64         // CounterSwept, as it was read last; under sweeping
	late     uint64         // CounterLate, read with it

	mu sync.Mutex
	// Numbers within [from, to) have not been looked at, and are going to be. They
	// change under sweeping, too.
	from, to uint64
}

// NewLeftovers finds out what is to be looked at; used is the number from which
// on this process makes blobs.
func NewLeftovers(ctx context.Context, store Store, blobs *quarantine.Blobs, used uint64) (*Leftovers, error) {
	l := &Leftovers{Pause: leftoverPause, store: store, blobs: blobs}
	err := store.View(ctx, func(r cluster.Reader) error {
		left, err := store.Left(r)
		if err != nil {
			return err
		}
		l.to = min(used, left)
		err = l.read(r)
		l.from = l.swept
		return err
	})
	return l, err
}

// read reads what was swept. Under sweeping, but by NewLeftovers.
func (l *Leftovers) read(r cluster.Reader) error {
	n, err := record.Counters(r, record.CounterSwept, record.CounterLate)
	if err == nil {
		l.swept, l.late = n[0], n[1]
	}
	return err
}

// Pending reports whether a blob, if nothing names it, will be removed.
func (l *Leftovers) Pending(b cluster.BlobID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from <= b.Seq && b.Seq < l.to
}

// any reports whether something is pending.
func (l *Leftovers) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from < l.to
}

// end has nothing pending any more.
func (l *Leftovers) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = l.to
}

// Run sweeps, unless there is nothing or another run did. What a sweep that
// fails leaves is Check's to report, until the next start.
func (l *Leftovers) Run(ctx context.Context) {
	if !l.any() {
		return
	}
	defer l.end()
	for try := 1; ; try++ {
		_, err := l.Sweep(ctx)
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

// Again is for a process that others are beside: it sweeps what is older than the number
// waits, unless that was done, as soon as nobody may name any of it. After an error
// another call goes on where this one came.
func (l *Leftovers) Again(ctx context.Context, waits uint64) error {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	if waits <= l.swept {
		return nil
	}
	var left uint64
	err := l.store.View(ctx, func(r cluster.Reader) (err error) {
		if left, err = l.store.Left(r); err == nil {
			err = l.read(r)
		}
		return err
	})
	if err != nil || waits <= l.swept || left < waits {
		return err
	}
	l.begin(waits)
	_, err = l.sweep(ctx)
	return err
}

// begin begins with numbers from what is swept to before to, unless a sweep of them is
// under way. Under sweeping.
func (l *Leftovers) begin(to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from != l.swept || l.to != to {
		l.from, l.to, l.next = l.swept, to, cluster.BlobID{}
	}
}

// Sweep looks at all pending blobs and removes those that nothing names.
func (l *Leftovers) Sweep(ctx context.Context) (removed int, err error) {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	return l.sweep(ctx)
}

// sweep is Sweep under sweeping.
func (l *Leftovers) sweep(ctx context.Context) (removed int, err error) {
	defer func() {
		if removed > 0 {
			l.blobs.Log.Info("blobs that an earlier process left are removed", "blobs", removed)
		}
	}()
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
	err = l.blobs.KV.Update(ctx, l.done)
	if err == nil {
		l.next = cluster.BlobID{}
		l.end()
	}
	return removed, fserr.Map(err)
}

// done notes that what was pending is swept, unless something may have been stored late that
// has not been seen: then all that is to be swept is looked at again.
func (l *Leftovers) done(t cluster.Txn) error {
	n, err := record.Counters(t, record.CounterSwept, record.CounterLate)
	if err != nil || n[1] != l.late {
		return err
	}
	return record.SetCounter(t, record.CounterSwept, max(n[0], l.to))
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
