package etcd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// commitOf compares some keys that all do and some of its own, and sets what some others set.
func commitOf(r *rand.Rand, i, sharedKeys int) *request {
	q := &request{}
	for k := range 8 {
		if r.IntN(8) > 0 {
			q.cmps = append(q.cmps, clientv3.Compare(clientv3.ModRevision(fmt.Sprint("common", k)), "=", 7))
		}
	}
	own := fmt.Sprint("own", i)
	q.cmps = append(q.cmps, clientv3.Compare(clientv3.ModRevision(own), "=", 0))
	q.then = append(q.then, clientv3.OpPut(own, ""))
	for k := range sharedKeys {
		if r.IntN(4) > 0 {
			q.then = append(q.then, clientv3.OpPut(fmt.Sprint("shared", k), fmt.Sprint(i)))
		}
	}
	q.otherwise = []clientv3.Op{clientv3.OpGet(own)}
	q.joins()
	return q
}

// opsLeft is how etcd counts the operations of a Txn and of those within it.
func opsLeft(t *testing.T, cmps []clientv3.Cmp, then, otherwise []clientv3.Op, most int) {
	n := max(len(cmps), len(then), len(otherwise))
	if n > most {
		t.Fatalf("%d operations where %d may be", n, most)
	}
	for _, op := range slices.Concat(then, otherwise) {
		if op.IsTxn() {
			c, a, b := op.Txn()
			opsLeft(t, c, a, b, most-n)
		}
	}
}

// sets applies a Txn, of whose comparisons those of the commits in failed do not hold.
func sets(failed map[string]bool, ops []clientv3.Op, puts map[string]string) {
	for _, op := range ops {
		if op.IsPut() {
			puts[string(op.KeyBytes())] += "|" + string(op.ValueBytes())
		}
		if !op.IsTxn() {
			continue
		}
		cmps, then, otherwise := op.Txn()
		if slices.ContainsFunc(cmps, func(c clientv3.Cmp) bool { return failed[string(c.KeyBytes())] }) {
			then = otherwise
		}
		sets(failed, then, puts)
	}
}

// TestJointShares: in a request of many that set the same keys, etcd's bounds are kept, no key
// is set twice, and each has what the last commit that holds sets.
func TestJointShares(t *testing.T) {
	most := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		j := newCommits(nil, "mark").New().(*joint)
		n := 0
		for i, keys := 0, r.IntN(3); i < 100; i++ {
			if j.Add(commitOf(r, i, keys)) {
				n++
			}
		}
		most = max(most, n)
		ops := j.operations()
		opsLeft(t, nil, ops, nil, etcdMaxOps)
		failed := map[string]bool{}
		want := map[string]string{"mark": "|"}
		for _, q := range j.list {
			if own := string(q.then[0].KeyBytes()); r.IntN(3) == 0 {
				failed[own] = true
			} else {
				for _, op := range q.then {
					want[string(op.KeyBytes())] = "|" + string(op.ValueBytes())
				}
			}
		}
		got := map[string]string{}
		sets(failed, ops, got)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d keys are set, want %d", seed, len(got), len(want))
		}
		for key, value := range want {
			if got[key] != value {
				t.Fatalf("seed %d: %s is set to %q, want %q", seed, key, got[key], value)
			}
		}
		for _, q := range j.list {
			q.answer = &clientv3.TxnResponse{Succeeded: !failed[string(q.then[0].KeyBytes())]}
		}
		j.supersede()
		for _, q := range j.list {
			for _, op := range q.then[1:] {
				key := string(op.KeyBytes())
				holds := q.answer.Succeeded && got[key] == "|"+string(op.ValueBytes())
				if q.answer.Succeeded && holds == slices.Contains(q.superseded, key) {
					t.Fatalf("seed %d: %s of %s: superseded %v", seed, key, op.ValueBytes(), q.superseded)
				}
			}
		}
	}
	if most < 20 {
		t.Errorf("at most %d commits go together", most)
	}
}
