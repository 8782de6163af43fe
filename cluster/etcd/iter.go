package etcd

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

// iter walks a range.
type iter struct {
	occ.Pages[*mvccpb.KeyValue]
	source     *source
	start, end string // what has not been fetched yet
	keysOnly   bool
}

func newIter(s *source, start, end string, o cluster.ScanOptions) *iter {
	it := &iter{source: s, start: start, end: end, keysOnly: o.KeysOnly}
	it.Expect(o)
	it.Fetch = it.fetch
	it.Bytes = func(kv *mvccpb.KeyValue) int { return len(kv.Key) + len(kv.Value) }
	return it
}

func (it *iter) fetch(limit int, reverse bool) ([]*mvccpb.KeyValue, bool, error) {
	if it.start >= it.end {
		return nil, false, nil
	}
	page, more, err := it.source.page(it.start, it.end, int64(limit), reverse, it.keysOnly)
	if err != nil || len(page) == 0 {
		return nil, false, err
	}
	for _, kv := range page {
		it.source.recall.Versions().Met(it.source.keys.strip(kv.Key), kv.ModRevision)
	}
	last := string(page[len(page)-1].Key)
	if reverse {
		it.end = last
	} else {
		it.start = last + "\x00"
	}
	return page, more, nil
}

// Key implements occ.Iter.
func (it *iter) Key() []byte { return it.source.keys.strip(it.Pair().Key) }

// Value implements occ.Iter.
func (it *iter) Value() ([]byte, error) { return notNil(it.Pair().Value), nil }
