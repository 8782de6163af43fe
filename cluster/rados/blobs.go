package rados

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

// Blobs is the data half of a store.
type Blobs struct {
	pool  Pool
	gate  *occ.Gate
	heads heads
	check lastCheck
}

// lastCheck is the last look whether the pool answers.
type lastCheck struct {
	mu    sync.Mutex // held over the look
	at    time.Time
	usage cluster.Usage
	err   error
}

const (
	// checkEvery is how old an answer may be that shows whether the pool answers.
	checkEvery = 5 * time.Second
	// checkTimeout bounds the look itself: the caller waits for it.
	checkTimeout = 5 * time.Second
)

// Open returns the blobs of a store, whose objects pool has. It returns ErrUnavailable if the
// pool does not answer, and closes it after an error.
func Open(ctx context.Context, pool Pool) (*Blobs, error) {
	b := &Blobs{pool: pool, gate: occ.NewGate()}
	if err := b.probe(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%v: %w", pool, err), pool.Close())
	}
	return b, nil
}

// probe writes to the index, reads and removes, and so finds out before the pool
// holds anything whether it takes pairs (one that is erasure-coded does not) and whether
// this user may do all that. One that is full is opened: deletes free it.
func (b *Blobs) probe(ctx context.Context) error {
	name := "probe/" + newToken().String()
	switch err := b.pool.Create(ctx, name, []byte(name)); {
	case errors.Is(err, cluster.ErrNoSpace):
		return nil
	case err != nil:
		return err
	}
	if err := b.pool.Add(ctx, name, name, []byte(name)); err != nil {
		return errors.Join(err, b.pool.Remove(ctx, name))
	}
	return b.pool.Remove(ctx, name)
}

// enter lets a call in.
func (b *Blobs) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.gate.Enter()
}

// Delete implements cluster.Blobs: the head first, so that the blob is gone at once, and
// the entry last, so that what a crash leaves is found.
func (b *Blobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	var mu sync.Mutex
	var gone []entry
	err := parallel(ctx, len(ids), func(i int) error {
		found, err := b.remove(ctx, ids[i])
		mu.Lock()
		defer mu.Unlock()
		gone = append(gone, found...)
		return err
	})
	return errors.Join(err, b.drop(ctx, gone...))
}

// remove removes the objects of a blob, and returns its entries.
func (b *Blobs) remove(ctx context.Context, id cluster.BlobID) ([]entry, error) {
	h, err := b.readHead(ctx, id)
	entries, parts := []entry{{id: id, token: h.token}}, h.parts()
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return nil, nil
	case errors.Is(err, cluster.ErrCorrupt): // the index knows its writer
		if entries, err = b.entriesOf(ctx, id); err != nil {
			return nil, err
		}
		parts = maxParts
	case err != nil:
		return nil, err
	}
	b.heads.drop(id)
	if err := b.removeOne(ctx, headName(id)); err != nil {
		return nil, err
	}
	for _, e := range entries {
		for n := int64(1); n < parts; n++ {
			if err := b.removeOne(ctx, partName(id, e.token, n)); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

func (b *Blobs) removeOne(ctx context.Context, name string) error {
	err := b.pool.Remove(ctx, name)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	return err
}

// Locate implements cluster.Blobs: each OSD that has a copy of the head or of another part.
func (b *Blobs) Locate(ctx context.Context, id cluster.BlobID) (all []cluster.Location, err error) {
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	h, err := b.readHead(ctx, id)
	if err != nil {
		return nil, err
	}
	for n := range h.parts() {
		some, err := b.pool.Locate(ctx, h.name(n))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Usage implements cluster.Blobs. Whether the pool answers is asked every checkEvery at
// the most.
func (b *Blobs) Usage(ctx context.Context) (cluster.Usage, error) {
	if err := b.enter(ctx); err != nil {
		return cluster.Usage{}, err
	}
	defer b.gate.Leave()
	b.check.mu.Lock()
	defer b.check.mu.Unlock()
	if b.check.at.IsZero() || time.Since(b.check.at) >= checkEvery {
		usage, err := b.look(ctx)
		if ctx.Err() != nil {
			return cluster.Usage{}, ctx.Err()
		}
		b.check.at, b.check.usage, b.check.err = time.Now(), usage, err
	}
	return b.check.usage, b.check.err
}

// look reads an object, and asks how full the pool is; if it is not told, that is as before,
// since reads and writes need no monitor. Under check.mu.
func (b *Blobs) look(ctx context.Context) (cluster.Usage, error) {
	bounded, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err := b.readClaim(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %v did not answer for %v", cluster.ErrUnavailable, b.pool, checkTimeout)
	}
	if err != nil && !errors.Is(err, cluster.ErrNotFound) { // nobody claimed it
		return cluster.Usage{}, err
	}
	usage, err := b.pool.Usage(bounded)
	if err != nil {
		usage = b.check.usage
	}
	return usage, nil
}

// Close implements cluster.Blobs.
func (b *Blobs) Close() error {
	if !b.gate.Close() {
		return cluster.ErrClosed
	}
	return b.pool.Close()
}
