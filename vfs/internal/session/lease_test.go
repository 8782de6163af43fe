package session

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

var quiet = slog.New(slog.DiscardHandler)

func member(host string) record.Gateway { return record.Gateway{Host: host, PID: 1, Version: "v"} }

// hand is a clock that moves when it is looked at.
type hand struct{ at, step time.Duration }

func (h *hand) now() time.Duration {
	h.at += h.step
	return h.at
}

// leased returns a lease that does not beat by itself.
func leased(t *testing.T, kv cluster.KV, host string, clock *hand) *Lease {
	t.Helper()
	l, err := newLease(kv, nil, member(host), quiet)
	if err != nil {
		t.Fatal(err)
	}
	l.clock, l.stop = clock.now, func() {}
	if err := l.take(bg); err != nil {
		t.Fatal(err)
	}
	return l
}

func get(kv cluster.KV, key string) (value string, err error) {
	err = kv.View(bg, func(r cluster.Reader) error {
		v, err := r.Get([]byte(key))
		value = string(v)
		return err
	})
	return value, err
}

func set(kv cluster.KV, key, value string) error {
	return kv.Update(bg, func(t cluster.Txn) error { return t.Set([]byte(key), []byte(value)) })
}

// A gateway that is alive keeps others out, and says who it is.
func TestJoinRefused(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, err := Join(bg, c.KV, nil, member("a.example"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Join(bg, c.KV, nil, member("b.example"), quiet)
	if !errors.Is(err, cluster.ErrInUse) || !strings.Contains(err.Error(), "host a.example, process 1") {
		t.Errorf("a second gateway: %v", err)
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := a.Live(); err == nil {
		t.Error("it is live after it left")
	}
	b, err := Join(bg, c.KV, nil, member("b.example"), quiet)
	if err != nil {
		t.Fatalf("after the first left: %v", err)
	}
	if err := b.Leave(); err != nil {
		t.Error(err)
	}
	if list, err := look(bg, c.KV, everybody); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// A gateway that does not move is put out, and what it does later fails, whatever
// it knows by then.
func TestTakeover(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	setCounter(t, c.KV, record.CounterNumber, 5)
	a := leased(t, c.KV, "a", &hand{})
	setCounter(t, c.KV, record.CounterNumber, 9)
	setCounter(t, c.KV, record.CounterSwept, 9)
	old := a.Fenced()
	if err := set(old, "k", "a"); err != nil {
		t.Fatal(err)
	}
	b := leased(t, c.KV, "b", &hand{step: 900 * time.Millisecond})
	if err := set(b.Fenced(), "k", "b"); err != nil {
		t.Fatal(err)
	}
	if err := a.Live(); err != nil {
		t.Errorf("it cannot know yet: %v", err)
	}
	if err := set(old, "k", "late"); !errors.Is(err, errLost) || !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("a late write: %v", err)
	}
	if v, err := get(c.KV, "k"); v != "b" || err != nil {
		t.Errorf("the store holds %q, %v", v, err)
	}
	select {
	case <-a.Gone():
	default:
		t.Error("it does not know that it was put out")
	}
	if _, err := get(old, "k"); !errors.Is(err, errLost) {
		t.Errorf("a late read: %v", err)
	}
	if err := a.once(bg); !errors.Is(err, errLost) {
		t.Errorf("a late beat: %v", err)
	}
	if err := errors.Join(a.Leave(), b.once(bg)); err != nil {
		t.Errorf("who was put out disturbs the other: %v", err)
	}
	if n := counter(t, c.KV, record.CounterSwept); n != 5 {
		t.Errorf("what it stored late is looked for from %d on", n)
	}
}

// Without an acknowledged beat nothing is answered, and with the next one again.
func TestLapse(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a := leased(t, c.KV, "a", clock)
	clock.at += LapseAfter - 1
	if err := a.Live(); err != nil {
		t.Errorf("before its time: %v", err)
	}
	clock.at++
	if _, err := get(a.Fenced(), "k"); !errors.Is(err, errLapsed) {
		t.Errorf("a read: %v", err)
	}
	if err := set(a.Fenced(), "k", "v"); !errors.Is(err, errLapsed) {
		t.Errorf("a write: %v", err)
	}
	if err := a.once(bg); err != nil {
		t.Fatal(err)
	}
	if err := set(a.Fenced(), "k", "v"); err != nil {
		t.Errorf("after a beat: %v", err)
	}
}

// What a read found is not returned if the lease lapsed while it ran.
func TestLapseWithin(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a := leased(t, c.KV, "a", clock)
	err := a.Fenced().Peek(bg, func(cluster.Reader) error {
		clock.at += LapseAfter
		return nil
	})
	if !errors.Is(err, errLapsed) {
		t.Error(err)
	}
}

// Two that start at a time do not both get the store.
func TestJoinRace(t *testing.T) {
	for range 50 {
		c := mem.New(mem.Options{})
		won := make(chan bool, 2)
		for range cap(won) {
			go func() {
				l, err := newLease(c.KV, nil, member("x"), quiet)
				if err != nil {
					t.Error(err)
				}
				done, err := l.register(bg, nil)
				if err != nil {
					t.Error(err)
				}
				won <- done
			}()
		}
		if a, b := <-won, <-won; a == b {
			t.Fatalf("both %v", a)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatch(t *testing.T) {
	at := func(id, beat uint64) []sighting {
		return []sighting{{record.Gateway{ID: id}, record.Beat{Number: beat}}}
	}
	const s = time.Second
	type step struct {
		at   time.Duration
		list []sighting
	}
	for name, test := range map[string]struct {
		steps        []step
		alive, still bool
	}{
		"nobody":           {[]step{{0, nil}}, false, true},
		"just seen":        {[]step{{0, at(1, 5)}}, false, false},
		"stands too short": {[]step{{0, at(1, 5)}, {2 * s, at(1, 5)}, {4 * s, at(1, 5)}, {6 * s, at(1, 5)}, {8 * s, at(1, 5)}, {9 * s, at(1, 5)}}, false, false},
		"stands":           {[]step{{0, at(1, 5)}, {2 * s, at(1, 5)}, {4 * s, at(1, 5)}, {6 * s, at(1, 5)}, {8 * s, at(1, 5)}, {10 * s, at(1, 5)}}, false, true},
		"moves":            {[]step{{0, at(1, 5)}, {2 * s, at(1, 6)}}, true, false},
		"another came":     {[]step{{0, at(1, 5)}, {2 * s, at(2, 1)}}, false, false},
		"the store stood still, and with it the beat": {[]step{{0, at(1, 5)}, {30 * s, at(1, 5)}}, false, false},
		"it stood, and the beat came after":           {[]step{{0, at(1, 5)}, {30 * s, at(1, 6)}, {31 * s, at(1, 7)}}, true, false},
		"it went":                                     {[]step{{0, at(1, 5)}, {2 * s, nil}}, false, true},
	} {
		w := newWatch(lookGap)
		for _, x := range test.steps {
			w.saw(x.at, x.at, x.list)
		}
		last := test.steps[len(test.steps)-1].at
		if got := w.alive() != nil; got != test.alive {
			t.Errorf("%s: alive is %v", name, got)
		}
		if got := len(w.still(last)) == len(w.seen); got != test.still {
			t.Errorf("%s: still is %v", name, got)
		}
	}
}

// A lease ends its beats with the context of nobody else.
func TestLeaveStopsBeats(t *testing.T) {
	c := mem.New(mem.Options{})
	ctx, cancel := context.WithCancel(bg)
	l, err := Join(ctx, c.KV, nil, member("a"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := l.once(bg); err != nil {
		t.Error(err)
	}
	if err := errors.Join(l.Fenced().Close(), c.Blobs.Close()); err != nil {
		t.Error(err)
	}
}
