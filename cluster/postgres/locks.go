package postgres

import (
	"bytes"
	"maps"
	"slices"

	"ogw/cluster"

	"github.com/cespare/xxhash/v2"
)

const (
	// prefixBytes of a key share a lock for scans: a kind of record and the
	// number of an inode, which is what a directory is.
	prefixBytes = 9
	// maxLocks of a commit; one that needs more takes the whole store. A server
	// has 6,400 locks by default for all.
	maxLocks = 256
)

// What a lock is of. The numbers are part of what clients of all versions
// agree on.
const (
	lockStore  = 's'
	lockPrefix = 'p'
	lockKey    = 'k'
)

// lockSet is what a commit locks: number to shared.
type lockSet struct {
	store string
	modes map[int64]bool
}

func (l *lockSet) number(kind byte, of []byte) int64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString("ogw\x00" + l.store + "\x00")
	_, _ = d.Write([]byte{kind})
	_, _ = d.Write(of)
	return int64(d.Sum64())
}

// add asks for a lock; exclusive wins.
func (l *lockSet) add(kind byte, of []byte, shared bool) {
	l.want(l.number(kind, of), shared)
}

func (l *lockSet) want(n int64, shared bool) {
	if old, ok := l.modes[n]; ok {
		shared = shared && old
	}
	l.modes[n] = shared
}

// sorted returns the locks in the order in which they are taken.
func (l *lockSet) sorted() (numbers []int64, shared []bool) {
	numbers = slices.Sorted(maps.Keys(l.modes))
	for _, n := range numbers {
		shared = append(shared, l.modes[n])
	}
	return numbers, shared
}

// locksOf returns the locks of a commit in the order in which they are taken.
func locksOf(store string, c *commit) (numbers []int64, shared []bool) {
	l := &lockSet{store, map[int64]bool{}}
	l.add(lockStore, nil, !c.wide())
	for _, keys := range [][][]byte{c.readKeys, c.expectKeys} {
		for _, key := range keys {
			l.add(lockKey, key, true)
		}
	}
	for i, start := range c.rangeStarts {
		if prefix := prefixOf(start); within(prefix, start, c.rangeEnds[i]) {
			l.add(lockPrefix, prefix, false)
		}
	}
	for _, keys := range [][][]byte{c.setKeys, c.deleteKeys} {
		for _, key := range keys {
			l.add(lockKey, key, false)
			l.add(lockPrefix, prefixOf(key), true)
		}
	}
	if len(l.modes) > maxLocks {
		l.modes = map[int64]bool{}
		l.add(lockStore, nil, false)
	}
	return l.sorted()
}

func prefixOf(key []byte) []byte { return key[:min(len(key), prefixBytes)] }

// within reports whether start to end lies below a whole prefix, so that the
// prefix's lock holds its pairs still.
func within(prefix, start, end []byte) bool {
	if len(start) < prefixBytes {
		return false
	}
	after := cluster.PrefixEnd(prefix)
	return after != nil && bytes.Compare(end, after) <= 0
}
