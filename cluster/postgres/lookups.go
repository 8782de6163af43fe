package postgres

import (
	"bytes"
	"context"
	"time"

	"ogw/cluster/internal/gather"

	"github.com/jackc/pgx/v5"
)

const (
	// maxReads is how many queries of Peeks, and of first attempts of Updates, are under way
	// at once, which those who come meanwhile share.
	maxReads = 2
	// maxReadKeys bounds what several ask for in one.
	maxReadKeys = 1024

	// selectSome returns the values of some of the keys only, in one snapshot.
	selectSome = "SELECT key, CASE WHEN key = ANY($3) THEN value END, version FROM ogw_pairs WHERE store = $1 AND key = ANY($2)"
)

// pair is what the server has of a key: of an absent one nothing.
type pair struct {
	value   []byte
	version int64
}

// lookup is a round trip of a Peek: keys, of which it wants the values of the first ones and
// the versions of all.
type lookup struct {
	keys   [][]byte
	values int
	found  []pair // of each key
	err    error
}

// lookups are those of several Peeks, in one snapshot. Keys that several ask for are asked
// for once.
type lookups struct {
	pools  *pools
	store  string
	list   []*lookup
	at     [][]int // of the keys of each, in keys
	places map[string]int
	keys   [][]byte
	wanted map[string]struct{} // values
}

func newReads(p *pools, store string) *gather.Group[*lookup] {
	return &gather.Group[*lookup]{Calls: maxReads, Leave: true, New: func() gather.Batch[*lookup] { return newLookups(p, store) }}
}

func newLookups(p *pools, store string) *lookups {
	return &lookups{pools: p, store: store, places: make(map[string]int), wanted: make(map[string]struct{})}
}

// Add implements gather.Batch.
func (b *lookups) Add(l *lookup) bool {
	if len(b.list) > 0 && len(b.keys)+len(l.keys) > maxReadKeys {
		return false
	}
	at := make([]int, len(l.keys))
	for i, key := range l.keys {
		if _, ok := b.places[string(key)]; !ok {
			b.places[string(key)] = len(b.keys)
			b.keys = append(b.keys, bytes.Clone(key)) // whose caller may have left
		}
		if i < l.values {
			b.wanted[string(key)] = struct{}{}
		}
		at[i] = b.places[string(key)]
	}
	b.list, b.at = append(b.list, l), append(b.at, at)
	return true
}

// Send implements gather.Batch.
func (b *lookups) Send() { b.send(context.Background()) }

func (b *lookups) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	first, end := bounded(ctx, requestTimeout)
	found, err := b.query(first, silentTimeout)
	if end(); isLost(err) && ctx.Err() == nil {
		b.pools.doubt()
		found, err = b.query(ctx, requestTimeout)
	}
	for n, l := range b.list {
		if l.err = err; err != nil {
			continue
		}
		l.found = make([]pair, len(b.at[n]))
		for i, at := range b.at[n] {
			l.found[i] = found[at]
		}
	}
}

// query returns what the server has of each of the keys. Its connection has patience for the
// answer.
func (b *lookups) query(ctx context.Context, patience time.Duration) ([]pair, error) {
	wanted := make([][]byte, 0, len(b.wanted))
	for key := range b.wanted {
		wanted = append(wanted, []byte(key))
	}
	conn, err := b.pools.of(ctx).Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := conn.Query(ctx, selectSome, b.store, b.keys, wanted)
	if err != nil {
		return nil, err
	}
	found := make([]pair, len(b.keys))
	var key, value []byte
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&key, &value, &version}, func() error {
		found[b.places[string(key)]] = pair{value, version}
		return nil
	})
	return found, err
}
