package sharedlocks

import (
	"context"
	"testing"

	"ogw/cluster"
	"ogw/vfs/lock"
)

// heldPeek is an engine whose next Peek returns what it read when it is told to.
type heldPeek struct {
	cluster.KV
	read, let chan struct{}
}

func (k *heldPeek) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	err := k.KV.Peek(ctx, fn)
	k.read <- struct{}{}
	<-k.let
	return err
}

// A look that was under way when a request was given up knows nothing of the next one, of
// the same file.
func TestLookOfBefore(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		held, l := exclusive(owner(b, "1")), exclusive(owner(a, "1"))
		must(t, b.TryLock(bg, 1, lock.Range, held))
		engine := a.cfg.KV
		slow := &heldPeek{engine, make(chan struct{}), make(chan struct{})}
		a.cfg.KV = slow
		_, cancel := waits(t, a, 1, lock.Range, l)
		<-slow.read
		if !cancel() {
			t.Error("it does not wait")
		}
		got, cancel := waits(t, a, 1, lock.Range, l)
		close(slow.let)
		go func() {
			for range slow.read {
			}
		}()
		nothing(t, got)
		cancel()
		b.ReleaseClient(held.Owner.Client)
		s.empty(a, b)
		close(slow.read)
	})
}
