package postgres

import "ogw/cluster/internal/occ"

// commit is the argument of ogw_commit_v4, and with others that of ogw_commits_v2.
type commit struct {
	readKeys     [][]byte // locked and compared
	metKeys      [][]byte // compared; the lock of their range holds them
	readVersions []int64
	metVersions  []int64

	rangeStarts, rangeEnds [][]byte
	rangeCounts            []int64

	expectKeys, expectValues [][]byte // nil: absent

	setKeys, setValues, deleteKeys [][]byte
	superseded                     [][]byte // of setKeys: a later commit of the same call set them too
}

// emptyCommit returns one without a nil slice, which would be NULL.
func emptyCommit() *commit {
	return &commit{
		readKeys: [][]byte{}, metKeys: [][]byte{}, readVersions: []int64{}, metVersions: []int64{},
		rangeStarts: [][]byte{}, rangeEnds: [][]byte{}, rangeCounts: []int64{},
		expectKeys: [][]byte{}, expectValues: [][]byte{},
		setKeys: [][]byte{}, setValues: [][]byte{}, deleteKeys: [][]byte{},
	}
}

// newCommit returns what t wrote and expects.
func newCommit(t *occ.Txn) *commit {
	c := emptyCommit()
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
