package occ

import (
	"cmp"

	"ogw/cluster"
)

const (
	// firstPage answers most scans in one request. Each page costs the server a
	// search, and some what is left of the range, so pages grow.
	firstPage = 128
	pageGrows = 8
	maxPage   = 10_000
	// maxPageBytes is what a page should come to, by the pairs of the last one.
	maxPageBytes = 4 << 20
)

// Pages walks a range page by page: the part of an Iter that engines share whose
// pairs are behind a network. T is a pair as the engine's client returns it. The
// walk has one direction, that of its first positioning.
type Pages[T any] struct {
	// Fetch returns the next pairs in the direction of the walk, at most limit,
	// and whether there are more.
	Fetch func(limit int, reverse bool) (page []T, more bool, err error)
	// Bytes returns the length of a pair.
	Bytes func(T) int

	wanted  int // pairs, beyond what was fetched; 0: not known
	first   int // pairs of the first page
	page    []T
	at      int
	limit   int
	reverse bool
	more    bool
	err     error
}

// Expect says what the walk is for, before it begins.
func (p *Pages[T]) Expect(o cluster.ScanOptions) {
	p.wanted, p.first = o.Limit, firstPage
	if o.PairBytes > 0 && o.Limit > firstPage {
		p.first = max(firstPage, min(maxPage, maxPageBytes/o.PairBytes))
	}
}

// First implements Iter.
func (p *Pages[T]) First() bool { return p.fetch(cmp.Or(p.first, firstPage)) }

// Last implements Iter.
func (p *Pages[T]) Last() bool {
	p.reverse = true
	return p.First()
}

// Next implements Iter.
func (p *Pages[T]) Next() bool { return p.move() }

// Prev implements Iter.
func (p *Pages[T]) Prev() bool { return p.move() }

func (p *Pages[T]) move() bool {
	if p.at++; p.at < len(p.page) {
		return true
	}
	return p.more && p.err == nil && p.fetch(p.nextLimit())
}

// nextLimit keeps a page of pairs like those of the last one below maxPageBytes.
func (p *Pages[T]) nextLimit() int {
	bytes := 0
	for _, pair := range p.page {
		bytes += p.Bytes(pair)
	}
	fit := len(p.page) * maxPageBytes / max(bytes, 1)
	return max(1, min(p.limit*pageGrows, maxPage, fit))
}

// fetch reads the next page, of what is wanted no more than that.
func (p *Pages[T]) fetch(limit int) bool {
	if p.wanted > 0 {
		limit = min(limit, p.wanted)
	}
	p.limit, p.at = limit, 0
	p.page, p.more, p.err = p.Fetch(limit, p.reverse)
	p.wanted = max(0, p.wanted-len(p.page))
	if p.err != nil {
		p.page = nil
	}
	return len(p.page) > 0
}

// Pair returns the pair at which the walk stands.
func (p *Pages[T]) Pair() T { return p.page[p.at] }

// Close implements Iter.
func (p *Pages[T]) Close() error { return p.err }
