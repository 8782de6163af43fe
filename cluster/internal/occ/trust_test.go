package occ

import (
	"context"
	"log/slog"
	"testing"

	"ogw/cluster"
	"ogw/cluster/coherence"
)

// alone returns a client that has nobody to be told by.
func alone(t *testing.T) *coherence.Client {
	t.Helper()
	c, err := coherence.New(coherence.Options{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Look(t.Context(), func(context.Context) ([]cluster.Peer, bool, error) { return nil, true, nil }); err != nil {
		t.Fatal(err)
	}
	return c
}

// changing changes pairs as another client does.
func (s *server) changing(t *testing.T, c *coherence.Client, value string, keys ...string) {
	t.Helper()
	var list [][]byte
	for _, key := range keys {
		list = append(list, []byte(key))
	}
	change, err := c.Announce(t.Context(), list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		s.set(key, value)
	}
	change.Done()
}

// What nobody changes is not compared.
func TestPeekTold(t *testing.T) {
	s, c := newServer(), alone(t)
	m := NewMemory(c.Trust())
	s.set("a", "1")
	both := func() (text string, err error) {
		err = s.peek(m, func(get func(string) (string, error)) error {
			a, err := get("a")
			if err != nil {
				return err
			}
			b, err := get("none")
			text = a + b
			return err
		})
		return text, err
	}
	for i, step := range []struct {
		do       func()
		text     string
		requests int
	}{
		{func() {}, "1", 2},
		{func() {}, "1", 0},
		{func() { s.changing(t, c, "2", "a") }, "2", 3}, // compared, read again
		{func() {}, "2", 0},
		{func() { s.changing(t, c, "x", "none") }, "2x", 3},
		{func() {}, "2x", 0},
		{func() { s.changing(t, c, "y", "other") }, "2x", 0},
		{c.Forget, "2x", 1},
		{func() {}, "2x", 0},
		{func() { m.Wrote([][]byte{[]byte("a")}, [][]byte{[]byte("3")}, nil, s.set("a", "3"), 0) }, "3x", 1},
		{func() { m.Wrote([][]byte{[]byte("a")}, [][]byte{[]byte("4")}, nil, s.set("a", "4"), c.Trust().Now()) }, "4x", 0},
	} {
		step.do()
		before := s.requests
		if text, err := both(); err != nil || text != step.text || s.requests-before != step.requests {
			t.Errorf("%d: %q in %d requests, %v; want %q in %d", i, text, s.requests-before, err, step.text, step.requests)
		}
	}
}

// Of pairs that change together while a run reads them, it sees both as they were, or both as
// they are.
func TestPeekToldMeanwhile(t *testing.T) {
	s, c := newServer(), alone(t)
	m := NewMemory(c.Trust())
	s.changing(t, c, "1", "a", "b")
	for _, remembered := range []bool{true, false} {
		var a, b string
		meanwhile := func() { s.changing(t, c, s.pairs["a"].string()+"1", "a", "b") }
		if !remembered {
			m.Forget([]byte("b"))
		}
		err := s.peekMoving(m, func(get func(string) (string, error)) (err error) {
			if a, err = get("a"); err != nil {
				return err
			}
			if meanwhile != nil {
				meanwhile()
				meanwhile = nil
			}
			b, err = get("b")
			return err
		})
		if err != nil || a != b || a != s.pairs["a"].string() {
			t.Errorf("%q and %q, %v", a, b, err)
		}
	}
}

// peekMoving is peek, each of whose requests is of a moment of its own.
func (s *server) peekMoving(m *Memory, fn func(get func(string) (string, error)) error) error {
	return Peek(m, func(c *Recall) (Settler, error) {
		c.Move()
		a := &asked{s: s, c: c}
		return a, fn(a.get)
	})
}

// Ranges are not remembered: who scanned asks.
func TestPeekToldScanned(t *testing.T) {
	s, c := newServer(), alone(t)
	m := NewMemory(c.Trust())
	s.set("a", "1")
	for range 2 {
		if err := s.peek(m, func(get func(string) (string, error)) error { _, err := get("a"); return err }); err != nil {
			t.Fatal(err)
		}
	}
	r := NewRecall(m, true, nil)
	if r.known([]byte("a")) == nil || r.Doubtful(false) || !r.Doubtful(true) {
		t.Error("what is told is asked for, or an urgent one does not ask")
	}
	if r.BeginScan(); !r.Doubtful(false) {
		t.Error("a run that scanned does not ask")
	}
}
