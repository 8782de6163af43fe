package rados

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
)

const (
	// claimName is the object that names the store whose objects they are, and counts
	// how often it was claimed.
	claimName = "store"
	// claimFormat: ID of the store and count, of one length always, so that one is
	// compared and replaced in one step.
	claimFormat = "%016x %016x\n"
	claimBytes  = 16 + 1 + 16 + 1
	// claimTries bounds how often others may be faster with a count.
	claimTries = 64
)

// claim is the content of the object claimName.
type claim struct{ store, count uint64 }

func (c claim) text() []byte { return fmt.Appendf(nil, claimFormat, c.store, c.count) }

// readClaim returns the claim, or ErrNotFound.
func (b *Blobs) readClaim(ctx context.Context) (c claim, err error) {
	err = b.pool.Read(ctx, claimName, func(parts [][]byte) error {
		if n, err := fmt.Sscanf(string(parts[0]), claimFormat, &c.store, &c.count); n != 2 || err != nil || len(parts[0]) != claimBytes {
			return fmt.Errorf("%w: object %s of %v: %q", cluster.ErrFormat, claimName, b.pool, parts[0])
		}
		return nil
	}, Span{0, claimBytes + 1})
	return c, err
}

// Claim implements cluster.Claimer, with two requests.
func (b *Blobs) Claim(ctx context.Context, store, known uint64) (before, now uint64, err error) {
	if err := b.enter(ctx); err != nil {
		return 0, 0, err
	}
	defer b.gate.Leave()
	for range claimTries {
		old, err := b.readClaim(ctx)
		absent := errors.Is(err, cluster.ErrNotFound)
		switch {
		case absent && known > 0:
			return 0, 0, fmt.Errorf("%w: the metadata are of store %016x, and %v has no store", cluster.ErrMismatch, store, b.pool)
		case err != nil && !absent:
			return 0, 0, err
		case !absent && old.store != store:
			return 0, 0, fmt.Errorf("%w: the metadata are of store %016x, %v is of store %016x", cluster.ErrMismatch, store, b.pool, old.store)
		}
		next := claim{store, max(old.count, known) + 1}
		done := true
		if absent {
			if err = b.pool.Create(ctx, claimName, next.text()); errors.Is(err, cluster.ErrExists) {
				done, err = false, nil
			}
		} else {
			done, err = b.pool.Replace(ctx, claimName, old.text(), next.text())
		}
		if err != nil {
			return 0, 0, err
		}
		if done {
			return old.count, next.count, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: %d other claims of %v were faster", cluster.ErrUnavailable, claimTries, b.pool)
}
