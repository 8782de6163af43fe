// Package pause waits, as long as anybody cares.
package pause

import (
	"context"
	"time"
)

// For waits for d, and returns ctx's error if ctx is done before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
