package guess

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ogw/httpapi/fair"
)

var (
	mallory = fair.Address("192.0.2.66:1")
	alice   = fair.Address("192.0.2.1:1")
)

// clocked returns a Guard whose time moves by hand.
func clocked() (*Guard, *time.Time) {
	g, now := New(), time.Unix(1_700_000_000, 0)
	g.now = func() time.Time { return now }
	return g, &now
}

// guesses tries n times within a time and returns how often it was let.
func guesses(g *Guard, now *time.Time, client fair.Key, account func(int) string, n int, within time.Duration) (let int) {
	for i := range n {
		if g.Check(client, account(i)) == nil {
			let++
			g.Wrong(client, account(i))
		}
		*now = now.Add(within / time.Duration(n))
	}
	return let
}

func TestGuesses(t *testing.T) {
	one := func(int) string { return "alice" }
	many := func(i int) string { return fmt.Sprint("user", i) }
	for name, c := range map[string]struct {
		account func(int) string
		most    int
	}{"one account": {one, freeAccount + 6 + 60}, "many accounts": {many, freeClient + 6 + 60}} {
		g, now := clocked()
		if let := guesses(g, now, mallory, c.account, 36_000, time.Hour); let > c.most {
			t.Errorf("%s: %d guesses in an hour, want at most %d", name, let, c.most)
		}
		if err := g.Check(alice, "alice"); err != nil {
			t.Errorf("%s: another address: %v", name, err)
		}
	}
}

// A mistake is free, and the pause is told and ends.
func TestPause(t *testing.T) {
	g, now := clocked()
	for range freeAccount {
		if err := g.Check(alice, "alice"); err != nil {
			t.Fatal(err)
		}
		g.Wrong(alice, "alice")
	}
	if err := g.Check(alice, "alice"); err != nil {
		t.Fatal("free mistakes cost something:", err)
	}
	for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		g.Wrong(alice, "alice")
		err := g.Check(alice, "alice")
		var throttled *Throttled
		if !errors.As(err, &throttled) || !errors.Is(err, ErrThrottled) || throttled.Seconds() != want {
			t.Errorf("mistake %d: %v, want %d s", i, err, want)
		}
		*now = now.Add(time.Duration(want) * time.Second)
	}
	if err := g.Check(alice, "alice"); err != nil {
		t.Error(err)
	}
	g.Right(alice, "alice")
	g.Wrong(alice, "alice")
	if err := g.Check(alice, "alice"); err != nil {
		t.Error("mistakes are not forgotten:", err)
	}
}

// Who has an account works on beside a guesser at the same address.
func TestNeighbour(t *testing.T) {
	g, now := clocked()
	g.Right(mallory, "alice")
	guesses(g, now, mallory, func(i int) string { return fmt.Sprint("user", i) }, 1000, time.Minute)
	if err := g.Check(mallory, "alice"); err != nil {
		t.Error("guesses at others:", err)
	}
	if err := g.Check(mallory, "nobody"); err == nil {
		t.Error("the guesser is let")
	}
	let := guesses(g, now, mallory, func(int) string { return "alice" }, 100_000, time.Minute)
	if let > 60*spareRate+freeAccount+spareRate+10 {
		t.Errorf("%d guesses at her own account in a minute", let)
	}
	*now = now.Add(time.Second)
	if err := g.Check(mallory, "alice"); err != nil {
		t.Error("nothing is left for her:", err)
	}
}

func TestMemory(t *testing.T) {
	g, now := clocked()
	for i := range 3 * maxEntries {
		g.Wrong(fair.Address(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)), fmt.Sprint(i))
	}
	guesses(g, now, mallory, func(i int) string { return fmt.Sprint(i) }, 3*maxEntries, time.Minute)
	if len(g.entries) > maxEntries || g.order.Len() != len(g.entries) {
		t.Errorf("%d entries, %d in order", len(g.entries), g.order.Len())
	}
	var none *Guard
	none.Wrong(alice, "x")
	none.Right(alice, "x")
	if none.Check(alice, "x") != nil {
		t.Error("a nil Guard throttles")
	}
}
