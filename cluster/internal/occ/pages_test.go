package occ

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ogw/cluster"
)

// paged is a range of numbers below n, each of which stands for size bytes.
type paged struct {
	Pages[int]
	limits []int
}

func newPaged(n, size, failAfter int) *paged {
	p := &paged{}
	next := 0
	p.Bytes = func(int) int { return size }
	p.Fetch = func(limit int, reverse bool) (page []int, more bool, err error) {
		if p.limits = append(p.limits, limit); len(p.limits) > failAfter {
			return nil, false, errors.New("away")
		}
		for ; next < n && len(page) < limit; next++ {
			page = append(page, next)
			if reverse {
				page[len(page)-1] = n - 1 - next
			}
		}
		return page, next < n, nil
	}
	return p
}

// A walk meets each pair once, in pages that grow up to their bounds.
func TestPages(t *testing.T) {
	const never = 1 << 30
	for _, c := range []struct {
		name    string
		n, size int
		limits  []int
	}{
		{"empty", 0, 1, []int{128}},
		{"one page", 128, 1, []int{128}},
		{"growing", 30_000, 1, []int{128, 1024, 8192, 10_000, 10_000, 10_000}},
		{"large pairs", 300, 1 << 20, nil},
		{"larger than a page", 130, maxPageBytes + 1, []int{128, 1, 1}},
	} {
		for _, reverse := range []bool{false, true} {
			p := newPaged(c.n, c.size, never)
			var got []int
			begin, move := p.First, p.Next
			if reverse {
				begin, move = p.Last, p.Prev
			}
			for on := begin(); on; on = move() {
				got = append(got, p.Pair())
			}
			if reverse {
				slices.Reverse(got)
			}
			if len(got) != c.n || !slices.IsSorted(got) || p.Close() != nil {
				t.Errorf("%s, reverse %v: %d of %d pairs, %v", c.name, reverse, len(got), c.n, p.Close())
			}
			if c.limits != nil && !slices.Equal(p.limits, c.limits) {
				t.Errorf("%s, reverse %v: pages of %v, want %v", c.name, reverse, p.limits, c.limits)
			}
			for _, l := range p.limits[1:] {
				if l > 1 && l*c.size > maxPageBytes {
					t.Errorf("%s: a page of %d pairs of %d bytes", c.name, l, c.size)
				}
			}
		}
	}
}

// A walk that is known to be short asks for what it visits: not for more, and of what may be
// large not for much more than a page at once.
func TestPagesWanted(t *testing.T) {
	for _, c := range []struct {
		name             string
		want, most, take int
		limits           []int
	}{
		{"one", 1, 0, 1, []int{1}},
		{"less than a page", 26, 0, 26, []int{26}},
		{"more than a page", 1001, 0, 1001, []int{128, 873}},
		{"more than a page, small ones", 1001, 100, 1001, []int{1001}},
		{"small ones, a short walk", 26, 100, 26, []int{26}},
		{"more than is to be in memory", 1001, maxPageBytes / 300, 1001, []int{300, 701}},
		{"large ones", 300, maxPageBytes, 300, []int{128, 172}},
		{"beyond what is wanted", 26, 0, 300, []int{26, 208, 1664}},
	} {
		p := newPaged(2000, 1, 1<<30)
		p.Expect(cluster.ScanOptions{Limit: c.want, PairBytes: c.most})
		n := 0
		for on := p.First(); on && n < c.take; n++ {
			if n+1 < c.take {
				on = p.Next()
			}
		}
		if n != c.take || !slices.Equal(p.limits, c.limits) {
			t.Errorf("%s: %d pairs in pages of %v, want %v", c.name, n, p.limits, c.limits)
		}
	}
}

// A page that fails ends the walk, and Close reports why.
func TestPagesFail(t *testing.T) {
	p := newPaged(300, 1, 1)
	n := 0
	for on := p.First(); on; on = p.Next() {
		n++
	}
	if n != firstPage || p.Close() == nil {
		t.Errorf("%d pairs, then %v", n, p.Close())
	}
}

// askedSource notes of a Source what its walks are said to be for.
type askedSource struct {
	tree *Tree
	o    cluster.ScanOptions
}

func (s *askedSource) Get([]byte) ([]byte, error)  { return nil, nil }
func (s *askedSource) GetMany(_, _ [][]byte) error { return nil }
func (s *askedSource) Iter(start, end []byte, o cluster.ScanOptions) (Iter, error) {
	s.o = o
	return NewTreeIter(s.tree, start, end), nil
}

// What a transaction deleted may hide as many pairs: its walks are that much longer.
func TestScanAsksForHidden(t *testing.T) {
	s := &askedSource{tree: NewTree()}
	for _, k := range []string{"a", "b", "c", "d"} {
		s.tree.Set(Pair{Key: []byte(k), Value: []byte("x")})
	}
	txn := NewTxn(context.Background(), s, nil, cluster.Limits{})
	scan := func(wantAsked int, wantKey string) {
		t.Helper()
		got := ""
		if err := txn.Scan([]byte("a"), []byte("z"), cluster.ScanOptions{Limit: 1}, func(k, _ []byte) error { got = string(k); return nil }); err != nil {
			t.Fatal(err)
		}
		if s.o.Limit != wantAsked || got != wantKey {
			t.Errorf("asked for %d pairs and got %q, want %d and %q", s.o.Limit, got, wantAsked, wantKey)
		}
	}
	scan(1, "a")
	for _, k := range []string{"a", "b"} {
		if err := txn.Delete([]byte(k)); err != nil {
			t.Fatal(err)
		}
	}
	scan(3, "c")
}
