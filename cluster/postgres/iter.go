package postgres

import (
	"bytes"

	"github.com/jackc/pgx/v5"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

const (
	selectForward  = "SELECT key, value, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4"
	selectBackward = "SELECT key, value, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key DESC LIMIT $4"
	keysForward    = "SELECT key, NULL::bytea, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4"
	keysBackward   = "SELECT key, NULL::bytea, version FROM ogw_pairs WHERE store = $1 AND key >= $2 AND key < $3 ORDER BY key DESC LIMIT $4"
)

type row struct{ key, value []byte }

// iter walks a range.
type iter struct {
	occ.Pages[row]
	source     *source
	start, end []byte // what has not been fetched yet
	keysOnly   bool
	page       []row // of the last fetch, whose memory the next one takes
}

func newIter(s *source, start, end []byte, o cluster.ScanOptions) *iter {
	it := &iter{source: s, start: start, end: end, keysOnly: o.KeysOnly}
	it.Expect(o)
	it.Fetch = it.fetch
	it.Bytes = func(r row) int { return len(r.key) + len(r.value) }
	return it
}

func (it *iter) fetch(limit int, reverse bool) ([]row, bool, error) {
	if bytes.Compare(it.start, it.end) >= 0 {
		return nil, false, nil
	}
	it.page = it.page[:0]
	err := it.source.query(requestTimeout, it.statement(reverse), func(rows pgx.Rows) error {
		var r row
		var version int64
		if err := rows.Scan(&r.key, &r.value, &version); err != nil {
			return err
		}
		it.page = append(it.page, r)
		it.source.recall.Versions().Met(r.key, version)
		return nil
	}, it.source.kv.store, it.start, it.end, limit)
	if err != nil || len(it.page) == 0 {
		return nil, false, err
	}
	last := it.page[len(it.page)-1].key
	if reverse {
		it.end = last
	} else {
		it.start = append(bytes.Clone(last), 0)
	}
	return it.page, len(it.page) == limit, nil
}

func (it *iter) statement(reverse bool) string {
	switch {
	case it.keysOnly && reverse:
		return keysBackward
	case it.keysOnly:
		return keysForward
	case reverse:
		return selectBackward
	}
	return selectForward
}

// Key implements occ.Iter.
func (it *iter) Key() []byte { return it.Pair().key }

// Value implements occ.Iter.
func (it *iter) Value() ([]byte, error) { return it.Pair().value, nil }
