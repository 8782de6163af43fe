package lock

import "context"

// Await waits for what LockFunc gave to done, which result carries, and cancels the
// request when ctx ends.
func Await(ctx context.Context, result <-chan error, cancel func() bool) error {
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	if cancel() {
		return ErrInterrupted
	}
	return <-result // resolved concurrently
}
