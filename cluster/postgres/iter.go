package postgres

import (
	"bytes"

	"github.com/jackc/pgx/v5"
)

const (
	// firstPage answers most scans in one round trip; pages grow to maxPage.
	firstPage = 128
	pageGrows = 8
	maxPage   = 10_000
	// maxPageBytes is what a page should come to, by the pairs seen so far.
	maxPageBytes = 4 << 20

	selectForward  = "SELECT key, value, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4"
	selectBackward = "SELECT key, value, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key DESC LIMIT $4"
	keysForward    = "SELECT key, NULL::bytea, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4"
	keysBackward   = "SELECT key, NULL::bytea, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key DESC LIMIT $4"
)

type row struct{ key, value []byte }

// iter walks a range page by page. It moves in one direction, that of its first
// positioning.
type iter struct {
	source     *source
	start, end []byte // what has not been fetched yet
	keysOnly   bool
	reverse    bool

	page  []row
	at    int
	limit int
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
	return it.err == nil && len(it.page) == it.limit && it.fetch(it.nextLimit())
}

// nextLimit keeps a page of pairs like those of the last one below
// maxPageBytes.
func (it *iter) nextLimit() int {
	n := 0
	for _, r := range it.page {
		n += len(r.key) + len(r.value)
	}
	return max(1, min(it.limit*pageGrows, maxPage, len(it.page)*maxPageBytes/max(n, 1)))
}

func (it *iter) fetch(limit int) bool {
	if bytes.Compare(it.start, it.end) >= 0 {
		return false
	}
	it.limit, it.at, it.page = limit, 0, it.page[:0]
	it.err = it.source.query(it.statement(), func(rows pgx.Rows) error {
		var r row
		var version int64
		if err := rows.Scan(&r.key, &r.value, &version); err != nil {
			return err
		}
		it.page = append(it.page, r)
		it.source.reads.Met(r.key, version)
		return nil
	}, it.source.kv.store, it.start, it.end, limit)
	if it.err != nil || len(it.page) == 0 {
		it.page = nil
		return false
	}
	last := it.page[len(it.page)-1].key
	if it.reverse {
		it.end = last
	} else {
		it.start = append(bytes.Clone(last), 0)
	}
	return true
}

func (it *iter) statement() string {
	switch {
	case it.keysOnly && it.reverse:
		return keysBackward
	case it.keysOnly:
		return keysForward
	case it.reverse:
		return selectBackward
	}
	return selectForward
}

// Key implements occ.Iter.
func (it *iter) Key() []byte { return it.page[it.at].key }

// Value implements occ.Iter.
func (it *iter) Value() ([]byte, error) { return it.page[it.at].value, nil }

// Close implements occ.Iter.
func (it *iter) Close() error { return it.err }
