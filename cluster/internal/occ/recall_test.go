package occ

import (
	"errors"
	"fmt"
	"testing"
)

// server counts round trips; versions grow with each change.
type server struct {
	pairs    map[string]pair
	version  int64
	requests int
}

type pair struct {
	value   []byte // nil: none
	version int64
}

func (p pair) string() string { return string(p.value) }

func newServer() *server { return &server{pairs: map[string]pair{}} }

func (s *server) set(key, value string) int64 {
	s.version++
	s.pairs[key] = pair{[]byte(value), s.version}
	return s.version
}

// asked is a Source of the server's newest pairs.
type asked struct {
	Source
	s *server
	c *Recall
}

func (a *asked) read(keys, values [][]byte) error {
	a.s.requests++
	for _, d := range a.c.Doubts() {
		p := a.s.pairs[string(d.Key)]
		a.c.Found(d, p.version)
	}
	for i, key := range keys {
		p := a.s.pairs[string(key)]
		values[i] = p.value
		a.c.Learned(key, p.value, p.version)
	}
	return a.c.Compared()
}

func (a *asked) Settle() error {
	if !a.c.Doubtful(false) {
		return nil
	}
	return a.read(nil, nil)
}

func (a *asked) get(key string) (string, error) {
	var values [1][]byte
	err := a.c.GetMany([][]byte{[]byte(key)}, values[:], a.read, a.Settle)
	return string(values[0]), err
}

func (s *server) peek(m *Memory, fn func(get func(string) (string, error)) error) error {
	return Peek(m, func(c *Recall) (Settler, error) {
		a := &asked{s: s, c: c}
		return a, fn(a.get)
	})
}

// What was read is asked for once, compared after that, and read again when it is
// another.
func TestPeekRequests(t *testing.T) {
	s, m := newServer(), NewMemory(nil)
	s.set("a", "1")
	both := func() (text string, err error) {
		err = s.peek(m, func(get func(string) (string, error)) error {
			a, err := get("a")
			none, e := get("none")
			again, _ := get("a")
			text = a + none + again
			return errors.Join(err, e)
		})
		return text, err
	}
	for i, test := range []struct {
		change   func()
		text     string
		requests int
	}{
		{func() {}, "11", 2},
		{func() {}, "11", 1},
		{func() { s.set("a", "2") }, "22", 3},
		{func() {}, "22", 1},
		{func() { s.set("none", "x") }, "2x2", 3},
		{func() { m.Wrote([][]byte{[]byte("a")}, [][]byte{[]byte("3")}, nil, s.set("a", "3"), 0) }, "3x3", 1},
		{func() { delete(s.pairs, "none"); m.Wrote([][]byte{[]byte("none")}, [][]byte{nil}, nil, 0, 0) }, "33", 1},
	} {
		test.change()
		s.requests = 0
		if text, err := both(); text != test.text || err != nil || s.requests != test.requests {
			t.Errorf("step %d: %q in %d requests, %v; want %q in %d", i, text, s.requests, err, test.text, test.requests)
		}
	}
}

// An error made of old reads is none; one of reads that hold is returned.
func TestPeekErrors(t *testing.T) {
	s, m := newServer(), NewMemory(nil)
	s.set("k", "old")
	want := func(text string) error {
		return s.peek(m, func(get func(string) (string, error)) error {
			if v, err := get("k"); err != nil || v != text {
				return fmt.Errorf("read %q %w", v, err)
			}
			return nil
		})
	}
	if err := want("old"); err != nil {
		t.Fatal(err)
	}
	s.set("k", "new")
	if err := want("new"); err != nil {
		t.Error(err)
	}
	if err := want("another"); err == nil {
		t.Error("an error was lost")
	}
}

// Reads that never fit together end: two pairs that lead to each other.
func TestPeekCircle(t *testing.T) {
	s, m := newServer(), NewMemory(nil)
	m.Wrote([][]byte{[]byte("a"), []byte("b")}, [][]byte{[]byte("b"), []byte("a")}, nil, 1, 0)
	s.set("a", "b")
	err := s.peek(m, func(get func(string) (string, error)) error {
		for at := "a"; at != ""; {
			next, err := get(at)
			if err != nil {
				return err
			}
			at = next
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A source that moves compares all that it read with each request.
func TestRecallMoves(t *testing.T) {
	s, m := newServer(), NewMemory(nil)
	s.set("a", "1")
	s.set("b", "1")
	c := NewRecall(m, true, nil)
	c.Move()
	a := &asked{s: s, c: c}
	if _, err := a.get("a"); err != nil {
		t.Fatal(err)
	}
	s.set("a", "2")
	if _, err := a.get("b"); !errors.Is(err, ErrTorn) || !c.Torn() {
		t.Errorf("a pair that was read has changed: %v", err)
	}
}

func TestMemoryOfLargeValues(t *testing.T) {
	m, key, large := NewMemory(nil), []byte("k"), make([]byte, MaxPairValue+1)
	m.Wrote([][]byte{key}, [][]byte{large[1:]}, nil, 1, 0)
	if m.get(key) == nil {
		t.Error("a value of the largest size was not remembered")
	}
	m.put(&PairEntry{Key: []byte("large"), Value: large, Version: 1})
	m.Wrote([][]byte{key}, [][]byte{large}, nil, 2, 0)
	if m.get([]byte("large")) != nil || m.get(key) != nil {
		t.Error("a large value was remembered, or a replaced one")
	}
}

// Commits and reads that end in another order than they had leave the newest pair, or
// none.
func TestMemoryOrder(t *testing.T) {
	k := [][]byte{[]byte("k")}
	text := func(s string) [][]byte { return [][]byte{[]byte(s)} }
	m := NewMemory(nil)
	m.Wrote(k, text("3"), nil, 3, 0)
	m.Wrote(k, text("2"), nil, 2, 0)
	NewRecall(m, false, nil).Learned(k[0], []byte("1"), 1)
	if p := m.get(k[0]); p == nil || string(p.Value) != "3" {
		t.Errorf("after older ones came late: %+v", p)
	}
	c := NewRecall(m, true, nil)
	c.Found(KeyVersion{k[0], 2}, 3)
	if m.get(k[0]) == nil {
		t.Error("a newer pair went with one that was old")
	}
	m.Wrote(k, [][]byte{nil}, nil, 0, 0)
	if p := m.get(k[0]); p == nil || p.Value != nil {
		t.Errorf("after it was deleted: %+v", p)
	}
	m.Forget(k...)
	if m.get(k[0]) != nil {
		t.Error("it was not forgotten")
	}
	m.Wrote(k, text("4"), nil, 4, 0)
	m.Wrote(k, text("5"), k, 5, 0)
	if p := m.get(k[0]); p != nil {
		t.Errorf("after another commit set it as the same version: %+v", p)
	}
}

// A caller may use the memory of a key again.
func TestRecallKeepsKeys(t *testing.T) {
	s, m := newServer(), NewMemory(nil)
	s.set("a", "1")
	c := NewRecall(m, true, nil)
	c.Move()
	a := &asked{s: s, c: c}
	key := []byte("a")
	var values [1][]byte
	if err := c.GetMany([][]byte{key}, values[:], a.read, a.Settle); err != nil {
		t.Fatal(err)
	}
	key[0] = 'z'
	if d := c.Doubts(); len(d) != 1 || string(d[0].Key) != "a" {
		t.Errorf("what was read: %+v", d)
	}
}

// What a scan met and a read by key of the same pair are both compared.
func TestVersionsOfBoth(t *testing.T) {
	v := NewVersions()
	v.BeginScan()
	v.Met([]byte("k"), 5)
	v.AddRange([]byte("a"), []byte("z"))
	v.Saw([]byte("k"), 0)
	seen := map[int64]int{}
	v.All(func(_ []byte, version int64) { seen[version]++ })
	if len(seen) != 2 || seen[0] != 1 || seen[5] != 1 {
		t.Errorf("compared at %v", seen)
	}
	v.Saw([]byte("k"), 5)
	clear(seen)
	v.All(func(_ []byte, version int64) { seen[version]++ })
	if len(seen) != 1 || seen[5] != 1 {
		t.Errorf("one version is compared at %v", seen)
	}
}
