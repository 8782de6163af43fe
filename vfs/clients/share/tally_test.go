package share

import (
	"net/netip"
	"testing"

	"ogw/vfs/clients/subscriber"
)

// TestTally: a client alone gets half, the next ones their part, and everybody
// the floor while there is any.
func TestTally(t *testing.T) {
	tally := NewTally[subscriber.Key](1000, 4)
	fill := func(k subscriber.Key) (n int) {
		for tally.Take(k, 1) {
			n++
		}
		return n
	}
	first, second := key("10.0.0.1"), key("10.0.0.2")
	if n := fill(first); n != 500 {
		t.Errorf("alone: %d of 1000", n)
	}
	if n := fill(second); n != 250 {
		t.Errorf("the second: %d", n)
	}
	for i := range 4 {
		if n := fill(subscriber.Of(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}))); n < 4 {
			t.Errorf("number %d gets %d", i, n)
		}
	}
	held := tally.Held()
	for range 500 {
		tally.Give(first, 1)
	}
	if tally.Held() != held-500 || len(tally.parts) != 5 {
		t.Errorf("%d held by %d", tally.Held(), len(tally.parts))
	}
	// What was there before a restart counts, even over the size.
	small := NewTally[subscriber.Key](2, 1)
	for range 3 {
		small.Add(first, 1)
	}
	if small.Take(second, 1) {
		t.Error("a place beyond the size")
	}
	small.Give(first, 1)
	small.Give(first, 1)
	if !small.Take(second, 1) {
		t.Error("no place of two")
	}
}

// TestPart: what a client takes through its Part and by its name is one share, and
// the Part is there for as long as somebody uses it.
func TestPart(t *testing.T) {
	tally := NewTally[string](100, 10)
	p, same := tally.Join("a"), tally.Join("a")
	if p != same {
		t.Fatal("two parts of one client")
	}
	if !tally.Grow(p, 30) || !tally.Take("a", 20) || tally.Grow(p, 1) || tally.Take("a", 1) {
		t.Error("alone it gets half, however it asks")
	}
	tally.Shrink(p, 30)
	tally.Give("a", 20)
	tally.Leave(same)
	if tally.Join("a") != p {
		t.Error("a part went that was used")
	}
	tally.Leave(p)
	tally.Leave(p)
	if len(tally.parts) > 0 || tally.Held() > 0 {
		t.Errorf("%d held by %d after the end", tally.Held(), len(tally.parts))
	}
	if b := tally.Join("b"); !tally.Grow(b, 50) || tally.Grow(b, 1) {
		t.Error("a new client does not get its half")
	}
}
