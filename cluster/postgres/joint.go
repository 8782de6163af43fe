package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"ogw/cluster/internal/gather"
)

const (
	// maxCommits is how many joint commits are under way at once, which those who come
	// meanwhile share.
	maxCommits = 2
	// maxJointBytes, MaxOps and maxLocks bound what is in one, maxJoinBytes what one may set
	// that goes with others.
	maxJointBytes = 4 << 20
	maxJoinBytes  = maxJointBytes / 8
	// jointWait is how long commits wait for a connection together, rather than each for one.
	jointWait = time.Second

	callJoint = "SELECT * FROM ogw_commits_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)"
)

// request is a commit that may go with others.
type request struct {
	*commit
	slot    []byte
	number  int64
	numbers []int64 // of its locks
	shared  []bool

	outcome outcome
	version int64
	err     error
	unsent  bool // there was no connection
}

// outcome of a commit that the server answered.
type outcome int

const (
	committed outcome = iota
	readChanged
	lockTaken
	slotGone // or not at its number
)

// joint are commits in one call and transaction. All are compared before any is written.
// None waits for a lock, which all would do, but for those of what several of them set.
type joint struct {
	pools      *pools
	store      string
	list       []*request
	keys       gather.Footprint
	locks      lockSet
	ops, bytes int
}

func newCommits(p *pools, store string) *gather.Group[*request] {
	return &gather.Group[*request]{Calls: maxCommits, New: func() gather.Batch[*request] {
		return &joint{pools: p, store: store, locks: lockSet{store: store, modes: make(map[int64]bool)}}
	}}
}

// joins reports whether c may go with others: it scanned nothing, and is small.
func (c *commit) joins() bool { return len(c.rangeStarts) == 0 && c.bytes() <= maxJoinBytes }

// bytes is how much c sets.
func (c *commit) bytes() (n int) {
	for _, value := range c.setValues {
		n += len(value)
	}
	return n
}

// Add implements gather.Batch.
func (j *joint) Add(r *request) bool {
	read, set, deleted := asStrings(r.readKeys, r.expectKeys), asStrings(r.setKeys), asStrings(r.deleteKeys)
	bytes := r.bytes()
	ops := len(read) + len(set) + len(deleted)
	if len(j.list) > 0 && (j.ops+ops > MaxOps || j.bytes+bytes > maxJointBytes || len(j.locks.modes)+len(r.numbers) > maxLocks) ||
		!j.keys.Add(read, set, deleted) {
		return false
	}
	for i, n := range r.numbers {
		j.locks.want(n, r.shared[i])
	}
	j.ops, j.bytes, j.list = j.ops+ops, j.bytes+bytes, append(j.list, r)
	return true
}

func asStrings(lists ...[][]byte) (all []string) {
	for _, list := range lists {
		for _, key := range list {
			all = append(all, string(key))
		}
	}
	return all
}

// Send implements gather.Batch.
func (j *joint) Send() {
	waits, cancel := context.WithTimeout(context.Background(), jointWait)
	conn, err := j.pools.shared.Acquire(waits)
	cancel()
	if err != nil {
		for _, r := range j.list {
			r.unsent = true
		}
		return
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	var version int64 // of all
	outcomes := make([]outcome, len(j.list))
	var lists [3][]int32
	err = conn.QueryRow(ctx, callJoint, j.arguments()...).Scan(&version, &lists[0], &lists[1], &lists[2])
	for i, o := range []outcome{readChanged, lockTaken, slotGone} {
		for _, n := range lists[i] {
			outcomes[n-1] = o
		}
	}
	for i, r := range j.list {
		r.err, r.outcome = err, outcomes[i]
		if len(r.setKeys) > 0 {
			r.version = version
		}
	}
	if err == nil {
		j.supersede()
	}
}

// supersede notes what later commits of the call set.
func (j *joint) supersede() {
	for i, key := range j.keys.Superseded(func(i int) bool { return j.list[i].outcome == committed }) {
		j.list[i].superseded = append(j.list[i].superseded, []byte(key))
	}
}

// arguments of ogw_commits_v2.
func (j *joint) arguments() []any {
	all := emptyCommit()
	slots, slotNumbers := make([][]byte, len(j.list)), make([]int64, len(j.list))
	locks := []int64{}
	lockOf, readOf, expectOf, setOf, deleteOf := owners{}, owners{}, owners{}, owners{}, owners{}
	for i, r := range j.list {
		slots[i], slotNumbers[i] = r.slot, r.number
		locks = append(locks, r.numbers...)
		lockOf.add(i, len(r.numbers))
		all.readKeys, all.readVersions = append(all.readKeys, r.readKeys...), append(all.readVersions, r.readVersions...)
		readOf.add(i, len(r.readKeys))
		all.expectKeys, all.expectValues = append(all.expectKeys, r.expectKeys...), append(all.expectValues, r.expectValues...)
		expectOf.add(i, len(r.expectKeys))
		all.setKeys, all.setValues = append(all.setKeys, r.setKeys...), append(all.setValues, r.setValues...)
		setOf.add(i, len(r.setKeys))
		all.deleteKeys = append(all.deleteKeys, r.deleteKeys...)
		deleteOf.add(i, len(r.deleteKeys))
	}
	waits := j.waits()
	numbers, shared := j.locks.sorted()
	return []any{j.store, slots, slotNumbers, waits, numbers, shared, locks, lockOf, all.readKeys, all.readVersions, readOf,
		all.expectKeys, all.expectValues, expectOf, all.setKeys, all.setValues, setOf, all.deleteKeys, deleteOf}
}

// waits takes the locks of what several set from the others, and returns them in their order.
func (j *joint) waits() []int64 {
	several := make(map[int64]bool)
	for _, r := range j.list {
		for _, key := range r.setKeys {
			if j.keys.Shared(string(key)) {
				n := j.locks.number(lockKey, key)
				several[n] = true
				delete(j.locks.modes, n)
			}
		}
	}
	numbers := slices.AppendSeq(make([]int64, 0, len(several)), maps.Keys(several)) // not nil, which is NULL
	slices.Sort(numbers)
	return numbers
}

// owners say to which commit, counted from 1, each of a list belongs.
type owners []int32

func (o *owners) add(i, n int) {
	for range n {
		*o = append(*o, int32(i)+1)
	}
}
