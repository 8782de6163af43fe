package ids

import (
	"context"
	"errors"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// slow is a store whose Updates begin when they are let.
type slow struct {
	cluster.KV
	let chan struct{}
}

func (k slow) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	select {
	case <-k.let:
	case <-ctx.Done():
		return ctx.Err()
	}
	return k.KV.Update(ctx, fn)
}

// Who waits for numbers does so no longer than it may, and the others get them all the same.
func TestLeaseWaits(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	kv, a := slow{c.KV, make(chan struct{})}, &Allocator{}
	if err := a.Init(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	numbers := make(chan uint64)
	patient := func() {
		n, err := a.Take(context.Background())
		if err != nil {
			t.Error(err)
		}
		numbers <- n
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for i := range 2 { // who begins, and who waits for what is under way
		if err := a.Reserve(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is over: %v", err)
		}
		if _, err := a.Take(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is over: %v", err)
		}
		if i == 0 {
			go patient()
			go patient()
		}
	}
	kv.let <- struct{}{}
	if x, y := <-numbers, <-numbers; x == y {
		t.Errorf("%d twice", x)
	}
	if err := a.Reserve(t.Context()); err != nil {
		t.Errorf("with numbers at hand: %v", err)
	}
}
