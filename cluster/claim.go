package cluster

import "context"

// Claimer is implemented by Blobs that could be joined with the metadata of
// another store, or of another time, by mistake.
type Claimer interface {
	// Claim makes the blobs those of a store, and counts how often that was done.
	// known is what the metadata remember of the count, 0 if they never claimed
	// any. It returns the count before, which is greater than known if the
	// metadata were restored from an earlier time, and smaller if the blobs were;
	// and the count now, which is greater than both, and which no other claim
	// returned or will return. It returns ErrMismatch for blobs of another store,
	// and for none at all where known has some; it changed nothing then. Of
	// two stores that claim unclaimed blobs at once, one has them.
	Claim(ctx context.Context, store, known uint64) (before, now uint64, err error)
}

// ClaimBlobs claims blobs. An engine whose halves cannot come apart counts
// nothing, and returns known.
func ClaimBlobs(ctx context.Context, b Blobs, store, known uint64) (before, now uint64, err error) {
	if c, ok := b.(Claimer); ok {
		return c.Claim(ctx, store, known)
	}
	return known, known, nil
}
