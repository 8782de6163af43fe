package postgres

import (
	"context"

	"ogw/cluster/internal/occ"

	"github.com/jackc/pgx/v5"
)

// commit is the argument of ogw_commit_v4.
type commit struct {
	readKeys     [][]byte // locked and compared
	metKeys      [][]byte // compared; the lock of their range holds them
	readVersions []int64
	metVersions  []int64

	rangeStarts, rangeEnds [][]byte
	rangeCounts            []int64

	expectKeys, expectValues [][]byte // nil: absent

	setKeys, setValues, deleteKeys [][]byte
}

// newCommit returns what t wrote and expects. No slice is nil, which would be NULL.
func newCommit(t *occ.Txn) *commit {
	c := &commit{
		readKeys: [][]byte{}, metKeys: [][]byte{}, readVersions: []int64{}, metVersions: []int64{},
		rangeStarts: [][]byte{}, rangeEnds: [][]byte{}, rangeCounts: []int64{},
		expectKeys: [][]byte{}, expectValues: [][]byte{},
		setKeys: [][]byte{}, setValues: [][]byte{}, deleteKeys: [][]byte{},
	}
	for _, p := range t.Expected() {
		c.expectKeys, c.expectValues = append(c.expectKeys, p.Key), append(c.expectValues, p.Value)
	}
	keys, values := t.Written()
	for i, key := range keys {
		if values[i] == nil {
			c.deleteKeys = append(c.deleteKeys, key)
		} else {
			c.setKeys, c.setValues = append(c.setKeys, key), append(c.setValues, values[i])
		}
	}
	return c
}

func (c *commit) empty() bool { return len(c.setKeys)+len(c.deleteKeys) == 0 }

func (c *commit) addReads(reads *occ.Versions) {
	for _, r := range reads.Ranges() {
		if r.Start == nil {
			r.Start = []byte{}
		}
		c.rangeStarts, c.rangeEnds = append(c.rangeStarts, r.Start), append(c.rangeEnds, r.End)
		c.rangeCounts = append(c.rangeCounts, int64(len(r.Met)))
		for _, m := range r.Met {
			c.metKeys, c.metVersions = append(c.metKeys, m.Key), append(c.metVersions, m.Version)
		}
	}
	reads.Keys(func(key []byte, version int64) {
		c.readKeys, c.readVersions = append(c.readKeys, key), append(c.readVersions, version)
	})
}

// wide reports whether a range that was read has no lock but the store's.
func (c *commit) wide() bool {
	for i, start := range c.rangeStarts {
		if !within(prefixOf(start), start, c.rangeEnds[i]) {
			return true
		}
	}
	return false
}

const callCommit = "SELECT ogw_commit_v4($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"

// answerChanged is what ogw_commit_v4 returns if a read does not hold, or a lock is
// not free for who holds others.
const answerChanged = -1

// call is the one round trip of a commit. It ends the snapshot too.
func (c *commit) call(ctx context.Context, from *source, s *slot) (answer int64, err error) {
	numbers, shared := locksOf(from.kv.store, c)
	batch := &pgx.Batch{}
	began := from.began
	if began {
		batch.Queue(rollback)
	}
	batch.Queue(callCommit, from.kv.store, numbers, shared, !from.held,
		append(c.readKeys, c.metKeys...), append(c.readVersions, c.metVersions...),
		c.rangeStarts, c.rangeEnds, c.rangeCounts, c.expectKeys, c.expectValues, c.setKeys, c.setValues, c.deleteKeys, s.id, s.number)
	from.began = false
	err = send(ctx, from.conn, batch, func(results pgx.BatchResults) error {
		if began {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		return results.QueryRow().Scan(&answer)
	})
	return answer, err
}
