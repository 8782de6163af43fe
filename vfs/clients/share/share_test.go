package share

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"ogw/vfs/clients/subscriber"
)

func key(s string) subscriber.Key { return subscriber.Of(netip.MustParseAddr(s)) }

// fill takes n at a time until it is refused.
func fill(h *Holder, n int) (held int) {
	for h.TryAcquire(n) {
		held += n
	}
	return held
}

func TestShares(t *testing.T) {
	p := NewPool(1200, 10)
	a, b, c := p.Join(key("10.0.0.1")), p.Join(key("10.0.0.2")), p.Join(key("10.0.0.3"))
	if n := fill(a, 1); n != 600 {
		t.Errorf("alone: %d of 1200", n)
	}
	if n := fill(b, 1); n != 300 {
		t.Errorf("the second: %d", n)
	}
	if n := fill(c, 10); n != 150 {
		t.Errorf("the third: %d", n)
	}
	a.Release(600)
	if n := fill(c, 10); n < 200 {
		t.Errorf("the third after the first left: %d more", n)
	}
	// However greedy a hundred are, the next finds its floor.
	for i := range 100 {
		fill(p.Join(subscriber.Of(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}))), 1)
	}
	if free := p.Free(); free > 12 {
		t.Fatalf("%d free, the test is void", free)
	}
}

// TestSameClient: two connections of one client have one share.
func TestSameClient(t *testing.T) {
	p := NewPool(100, 1)
	a, b := p.Join(key("2001:db8::1")), p.Join(key("2001:db8::2"))
	if fill(a, 1)+fill(b, 1) != 50 {
		t.Error("an address more is a share more")
	}
	b.Release(50)
	a.Leave()
	b.Leave()
	if len(p.holders) != 0 {
		t.Error("a client is remembered")
	}
}

// TestFloorIsKept: a large wish within the floor is not starved by small ones.
func TestFloorIsKept(t *testing.T) {
	p := NewPool(100, 40)
	var small []*Holder
	for i := range 10 {
		h := p.Join(subscriber.Of(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)})))
		h.TryAcquire(8)
		small = append(small, h)
	}
	large := p.Join(key("10.0.0.1"))
	got := make(chan error, 1)
	go func() { got <- large.Acquire(context.Background(), 40) }()
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		waiting = len(large.waiters) == 1
		p.mu.Unlock()
	}
	for _, h := range small[:3] { // each gives back and asks again
		h.Release(8)
		if h.TryAcquire(8) && len(got) == 0 {
			t.Error("a small wish overtakes")
		}
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestTurns: of two clients that wait, the one that asks a hundred times gets
// no more turns.
func TestTurns(t *testing.T) {
	p := NewPool(10, 1)
	var all []*Holder
	for i := range 10 {
		h := p.Join(subscriber.Of(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)})))
		h.TryAcquire(1)
		all = append(all, h)
	}
	greedy, modest := p.Join(key("10.0.0.1")), p.Join(key("10.0.0.2"))
	order := make(chan string, 200)
	wait := func(h *Holder, name string) {
		if h.Acquire(context.Background(), 1) == nil {
			order <- name
			h.Release(1)
		}
	}
	if p.Free() > 0 {
		t.Fatal("something is free")
	}
	for range 100 {
		go wait(greedy, "greedy")
	}
	for n := 0; n < 100; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n = len(greedy.waiters)
		p.mu.Unlock()
	}
	go wait(modest, "modest")
	for n := 0; n < 1; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n = len(modest.waiters)
		p.mu.Unlock()
	}
	all[0].Release(1)
	for at := range 101 {
		if <-order == "modest" {
			if at > 50 {
				t.Errorf("served as number %d", at)
			}
			return
		}
	}
}

func TestAbandon(t *testing.T) {
	p := NewPool(4, 4)
	a, b := p.Join(key("10.0.0.1")), p.Join(key("10.0.0.2"))
	a.TryAcquire(4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Acquire(ctx, 4); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a.Release(4)
	if p.Free() != 4 || len(p.ring) != 0 || p.starved {
		t.Errorf("%d free, %d wait, starved %v", p.Free(), len(p.ring), p.starved)
	}
}

// TestMany: whatever many clients do at the same time, all is given back.
func TestMany(t *testing.T) {
	p := NewPool(1000, 100)
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			h := p.Join(subscriber.Of(netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 8)})))
			defer h.Leave()
			for range 2000 {
				n := 1 + r.IntN(100)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(3000))*time.Microsecond)
				if h.Acquire(ctx, n) == nil {
					h.Release(n)
				}
				cancel()
			}
		})
	}
	wait.Wait()
	if p.Free() != 1000 || len(p.ring) != 0 || len(p.holders) != 0 {
		t.Errorf("%d free, %d wait, %d clients", p.Free(), len(p.ring), len(p.holders))
	}
}

func BenchmarkAcquire(b *testing.B) {
	p := NewPool(2048, 8)
	b.RunParallel(func(pb *testing.PB) {
		h := p.Join(key("10.0.0.1"))
		for pb.Next() {
			if h.TryAcquire(1) {
				h.Release(1)
			}
		}
	})
}
