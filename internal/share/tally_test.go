package share

import (
	"net/netip"
	"testing"

	"ogw/internal/subscriber"
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
	if tally.Held() != held-500 || len(tally.held) != 5 {
		t.Errorf("%d held by %d", tally.Held(), len(tally.held))
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
