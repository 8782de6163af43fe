package occ

import (
	"context"
	"math/rand/v2"
	"time"

	"ogw/cluster/pause"
)

const (
	// freeAttempts are retried at once: most conflicts are gone by then.
	freeAttempts = 2
	// firstPause doubles with every attempt up to maxPause: from about the
	// duration of a transaction to what a person does not notice.
	firstPause = 100 * time.Microsecond
	maxPause   = 20 * time.Millisecond
)

// Backoff pauses before attempt number `attempt` (the first is 0) of a
// transaction, for a random time, or until ctx is done.
func Backoff(ctx context.Context, attempt int) error {
	if attempt < freeAttempts {
		return ctx.Err()
	}
	return pause.For(ctx, rand.N(min(firstPause<<min(attempt-freeAttempts, 16), maxPause)))
}
