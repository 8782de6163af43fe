package occ

import (
	"errors"
	"slices"
	"testing"
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
