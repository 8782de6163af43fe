package guess

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"ogw/vfs/clients/subscriber"
)

var (
	mallory = subscriber.Of(netip.MustParseAddr("192.0.2.66"))
	alice   = subscriber.Of(netip.MustParseAddr("192.0.2.1"))
)

// clocked returns a Guard whose time moves by hand.
func clocked() (*Guard, *time.Time) {
	g, now := New(), time.Unix(1_700_000_000, 0)
	g.now = func() time.Time { return now }
	return g, &now
}

// guesses tries n times within a time and returns how often it was let.
func guesses(g *Guard, now *time.Time, client subscriber.Key, account func(int) string, n int, within time.Duration) (let int) {
	for i := range n {
		if check(g, client, account(i)) == nil {
			let++
			wrong(g, client, account(i))
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
		if err := check(g, alice, "alice"); err != nil {
			t.Errorf("%s: another address: %v", name, err)
		}
	}
}

// A mistake is free, and the pause is reported and ends.
func TestPause(t *testing.T) {
	g, now := clocked()
	for range freeAccount {
		if err := check(g, alice, "alice"); err != nil {
			t.Fatal(err)
		}
		wrong(g, alice, "alice")
	}
	if err := check(g, alice, "alice"); err != nil {
		t.Fatal("free mistakes cost something:", err)
	}
	for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		wrong(g, alice, "alice")
		err := check(g, alice, "alice")
		var throttled *Throttled
		if !errors.As(err, &throttled) || !errors.Is(err, ErrThrottled) || throttled.Seconds() != want {
			t.Errorf("mistake %d: %v, want %d s", i, err, want)
		}
		*now = now.Add(time.Duration(want) * time.Second)
	}
	if err := check(g, alice, "alice"); err != nil {
		t.Error(err)
	}
	right(g, alice, "alice")
	wrong(g, alice, "alice")
	if err := check(g, alice, "alice"); err != nil {
		t.Error("mistakes are not forgotten:", err)
	}
}

// Who has an account works on beside a guesser at the same address.
func TestNeighbour(t *testing.T) {
	g, now := clocked()
	right(g, mallory, "alice")
	guesses(g, now, mallory, func(i int) string { return fmt.Sprint("user", i) }, 1000, time.Minute)
	if err := check(g, mallory, "alice"); err != nil {
		t.Error("guesses at others:", err)
	}
	if err := check(g, mallory, "nobody"); err == nil {
		t.Error("the guesser is let")
	}
	let := guesses(g, now, mallory, func(int) string { return "alice" }, 100_000, time.Minute)
	if let > 60*spareRate+freeAccount+spareRate+10 {
		t.Errorf("%d guesses at her own account in a minute", let)
	}
	*now = now.Add(time.Second)
	if err := check(g, mallory, "alice"); err != nil {
		t.Error("nothing is left for her:", err)
	}
	for account, want := range map[string]bool{"alice": true, "bob": false} {
		if a, _ := g.Try(mallory, door, account); a.Proven() != want {
			t.Errorf("%s is proven: %v", account, !want)
		}
	}
}

func TestMemory(t *testing.T) {
	g, now := clocked()
	for i := range 3 * maxEntries {
		wrong(g, subscriber.Of(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})), fmt.Sprint(i))
	}
	guesses(g, now, mallory, func(i int) string { return fmt.Sprint(i) }, 3*maxEntries, time.Minute)
	if len(g.entries) > maxEntries || g.order.Len() != len(g.entries) {
		t.Errorf("%d entries, %d in order", len(g.entries), g.order.Len())
	}
	var none *Guard
	wrong(none, alice, "x")
	right(none, alice, "x")
	if check(none, alice, "x") != nil {
		t.Error("a nil Guard throttles")
	}
}

const door = "s3"

func check(g *Guard, client subscriber.Key, account string) error {
	_, err := g.Try(client, door, account)
	return err
}

// wrong and right begin no attempt: one that is refused cannot be either.
func wrong(g *Guard, client subscriber.Key, account string) { attempt(g, client, account).Wrong() }
func right(g *Guard, client subscriber.Key, account string) { attempt(g, client, account).Right() }

func attempt(g *Guard, client subscriber.Key, account string) Attempt {
	if g == nil {
		return Attempt{}
	}
	return Attempt{g: g, key: key{client, g.hash(door, account)}}
}
