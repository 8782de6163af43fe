package clustertest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"ogw/cluster"
)

// Slow is a KV for tests of what uses one: it pauses before and after whatever it does, so
// that much else goes on meanwhile, and loses the answers of some transactions that it
// committed.
type Slow struct {
	cluster.KV
	Pause func()
	// Lost returns of how many answers one is lost, about; 0: none.
	Lost func() int
}

// Update implements cluster.KV.
func (k *Slow) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	k.Pause()
	err := k.KV.Update(ctx, fn)
	k.Pause()
	if n := k.Lost(); err == nil && n > 0 && rand.IntN(n) == 0 {
		return fmt.Errorf("%w: the answer is lost, for the test", cluster.ErrUnavailable)
	}
	return err
}

// View implements cluster.KV.
func (k *Slow) View(ctx context.Context, fn func(cluster.Reader) error) error {
	k.Pause()
	defer k.Pause()
	return k.KV.View(ctx, fn)
}

// Peek implements cluster.KV.
func (k *Slow) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	k.Pause()
	defer k.Pause()
	return k.KV.Peek(ctx, fn)
}
