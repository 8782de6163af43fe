package occ

import (
	"context"
	"fmt"

	"ogw/cluster"
)

// Retry runs attempt number n of a transaction, from 0, until one is done or
// fails: at the most cluster.MaxTxnAttempts, with pauses.
func Retry(ctx context.Context, attempt func(n int) (done bool, err error)) error {
	for n := range cluster.MaxTxnAttempts {
		if err := Backoff(ctx, n); err != nil {
			return err
		}
		if done, err := attempt(n); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %d attempts", cluster.ErrConflict, cluster.MaxTxnAttempts)
}
