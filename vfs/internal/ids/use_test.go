package ids

import (
	"context"
	"testing"

	"ogw/cluster/mem"
)

// Oldest is no larger than what a use under way or in doubt took, and passes what nobody
// needs any more.
func TestOldest(t *testing.T) {
	ctx := context.Background()
	c := mem.New(mem.Options{})
	defer c.Close()
	a := &Allocator{}
	if err := a.Init(ctx, c.KV); err != nil {
		t.Fatal(err)
	}
	take := func() uint64 {
		n, err := a.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	take()
	long, first := a.Begin(), take()
	short := a.Begin()
	second := take()
	short.Doubt()
	short.End() // comes after
	if n := a.Oldest(); n > first {
		t.Errorf("oldest is %d while %d is under way", n, first)
	}
	long.End()
	if n := a.Oldest(); n > second || n <= first {
		t.Errorf("oldest is %d while %d is in doubt", n, second)
	}
	if uses, doubts := a.Unsettled(); uses != 0 || doubts != 1 {
		t.Errorf("%d uses and %d doubts", uses, doubts)
	}
	a.Settle(1)
	if n := a.Oldest(); n <= second {
		t.Errorf("oldest is %d after all has ended", n)
	}
	other := &Allocator{}
	if err := other.Init(ctx, c.KV); err != nil {
		t.Fatal(err)
	}
	left, err := other.Take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Renew(ctx, left+1); err != nil {
		t.Fatal(err)
	}
	if n := a.Oldest(); n <= left {
		t.Errorf("oldest is %d, and %d was left by another one", n, left)
	}
	var none *Use
	none.End()
}
