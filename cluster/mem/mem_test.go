package mem

import (
	"context"
	"errors"
	"sync"
	"testing"

	"ogw/cluster"
)

func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	faults := &Faults{}
	c := New(Options{Faults: faults})
	defer c.Close()
	ctx := context.Background()
	set := func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("v")) }
	get := func() (value []byte) {
		c.KV.View(ctx, func(r cluster.Reader) (err error) {
			value, err = r.Get([]byte("k"))
			return err
		})
		return value
	}

	faults.FailAt(2, boom, OpUpdate)
	if err := c.KV.Update(ctx, func(cluster.Txn) error { return nil }); err != nil {
		t.Fatalf("first call: %v", err)
	}
	if err := c.KV.Update(ctx, set); !errors.Is(err, boom) {
		t.Fatalf("second call: %v", err)
	}
	faults.FailAt(1, boom, OpCommit)
	if err := c.KV.Update(ctx, set); !errors.Is(err, boom) {
		t.Fatalf("commit: %v", err)
	}
	if get() != nil {
		t.Fatal("a failed commit was applied")
	}
	faults.FailFrom(1, boom, OpCommitted)
	if err := c.KV.Update(ctx, set); !errors.Is(err, boom) {
		t.Fatalf("committed: %v", err)
	}
	if string(get()) != "v" {
		t.Fatal("a lost answer lost the commit as well")
	}
	faults.Clear()
	if err := c.KV.Update(ctx, set); err != nil {
		t.Fatal(err)
	}
}

// With unknown outcomes, a counter ends between the acknowledged increments
// and all of them.
func TestUnknownOutcomes(t *testing.T) {
	o := Distributed(1)
	o.UnknownRate, o.Latency = 0.5, 0
	c := New(o)
	defer c.Close()
	ctx := context.Background()
	acked, unknown := 0, 0
	for range 200 {
		err := c.KV.Update(ctx, func(txn cluster.Txn) error {
			v, err := txn.Get([]byte("n"))
			if err != nil {
				return err
			}
			return txn.Set([]byte("n"), append(v, 'x'))
		})
		switch {
		case err == nil:
			acked++
		case errors.Is(err, cluster.ErrUnavailable):
			unknown++
		default:
			t.Fatal(err)
		}
	}
	var n int
	c.KV.View(ctx, func(r cluster.Reader) error {
		v, err := r.Get([]byte("n"))
		n = len(v)
		return err
	})
	if n <= acked || n >= acked+unknown {
		t.Fatalf("%d applied of %d acknowledged and %d unknown", n, acked, unknown)
	}
}

func TestCounter(t *testing.T) {
	c := New(Distributed(2))
	defer c.Close()
	ctx := context.Background()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := c.KV.Update(ctx, func(txn cluster.Txn) error {
					v, err := txn.Get([]byte("n"))
					if err != nil {
						return err
					}
					return txn.Set([]byte("n"), append(v, 'x'))
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	c.KV.View(ctx, func(r cluster.Reader) error {
		v, err := r.Get([]byte("n"))
		if len(v) != 160 {
			t.Errorf("%d increments, want 160", len(v))
		}
		return err
	})
}
