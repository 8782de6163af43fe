package etcd

import "go.etcd.io/etcd/api/v3/mvccpb"

const (
	// firstPage answers most scans in one request. Each page costs a member
	// what is left of the range, so pages grow.
	firstPage = 128
	pageGrows = 8
	maxPage   = 10_000
	// maxPageBytes is what a page should come to, by the pairs seen so far.
	maxPageBytes = 4 << 20
)

// iter walks a range page by page. It moves in one direction, that of its
// first positioning.
type iter struct {
	source     *source
	start, end string // what has not been fetched yet
	keysOnly   bool
	reverse    bool

	page  []*mvccpb.KeyValue
	at    int
	limit int64
	more  bool
	err   error
}

// First implements occ.Iter.
func (it *iter) First() bool { return it.fetch(firstPage) }

// Last implements occ.Iter.
func (it *iter) Last() bool {
	it.reverse = true
	return it.fetch(firstPage)
}

// Next implements occ.Iter.
func (it *iter) Next() bool { return it.move() }

// Prev implements occ.Iter.
func (it *iter) Prev() bool { return it.move() }

func (it *iter) move() bool {
	if it.at++; it.at < len(it.page) {
		return true
	}
	return it.more && it.err == nil && it.fetch(it.nextLimit())
}

// nextLimit keeps a page of pairs like those of the last one below
// maxPageBytes.
func (it *iter) nextLimit() int64 {
	bytes := 0
	for _, kv := range it.page {
		bytes += len(kv.Key) + len(kv.Value)
	}
	fit := int64(len(it.page)) * maxPageBytes / int64(max(bytes, 1))
	return max(1, min(it.limit*pageGrows, maxPage, fit))
}

func (it *iter) fetch(limit int64) bool {
	if it.start >= it.end {
		return false
	}
	it.limit, it.at = limit, 0
	it.page, it.more, it.err = it.source.page(it.start, it.end, limit, it.reverse, it.keysOnly)
	if it.err != nil || len(it.page) == 0 {
		it.page = nil
		return false
	}
	for _, kv := range it.page {
		it.source.reads.Met(it.source.keys.strip(kv.Key), kv.ModRevision)
	}
	last := string(it.page[len(it.page)-1].Key)
	if it.reverse {
		it.end = last
	} else {
		it.start = last + "\x00"
	}
	return true
}

// Key implements occ.Iter.
func (it *iter) Key() []byte { return it.source.keys.strip(it.page[it.at].Key) }

// Value implements occ.Iter.
func (it *iter) Value() ([]byte, error) { return notNil(it.page[it.at].Value), nil }

// Close implements occ.Iter.
func (it *iter) Close() error { return it.err }
