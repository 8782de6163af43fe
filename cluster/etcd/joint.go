package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"ogw/cluster/internal/gather"
)

const (
	// maxCommits is how many requests of commits are under way at once, which those who
	// come meanwhile share.
	maxCommits = 2
	// maxJointBytes bounds what commits in one request write and compare, as maxBytes does
	// that of one, and maxJoinBytes what one may that goes with others.
	maxJointBytes = maxBytes
	maxJoinBytes  = maxBytes / 8
)

// request is a Txn of a commit.
type request struct {
	cmps            []clientv3.Cmp
	then, otherwise []clientv3.Op
	bytes           int // set by joins
	answer          *clientv3.TxnResponse
	err             error
}

// joins reports whether r may go with others: it compares no range, and is small.
func (r *request) joins() bool {
	for i := range r.cmps {
		if len(r.cmps[i].RangeEnd) > 0 {
			return false
		}
		r.bytes += len(r.cmps[i].KeyBytes()) + len(r.cmps[i].ValueBytes())
	}
	for _, list := range [][]clientv3.Op{r.then, r.otherwise} {
		for i := range list {
			r.bytes += len(list[i].KeyBytes()) + len(list[i].ValueBytes())
		}
	}
	return r.bytes <= maxJoinBytes
}

// keys returns what r reads and writes.
func (r *request) keys() (read, written []string) {
	read, written = make([]string, len(r.cmps)), make([]string, len(r.then))
	for i := range r.cmps {
		read[i] = string(r.cmps[i].KeyBytes())
	}
	for i := range r.then {
		written[i] = string(r.then[i].KeyBytes())
	}
	return read, written
}

// joint are commits in one Txn, as a Txn each within it. etcd decides which of them hold
// before it writes any.
type joint struct {
	client     *clientv3.Client
	mark       string // a key that each writes
	list       []*request
	ops, bytes int // the most that one has; of all
	keys       gather.Footprint
}

func newCommits(client *clientv3.Client, mark string) *gather.Group[*request] {
	return &gather.Group[*request]{Calls: maxCommits, New: func() gather.Batch[*request] { return &joint{client: client, mark: mark} }}
}

// Add implements gather.Batch.
func (j *joint) Add(r *request) bool {
	read, written := r.keys()
	ops := max(j.ops, len(r.cmps), len(r.then), len(r.otherwise))
	if len(j.list) > 0 && (len(j.list)+2+ops > etcdMaxOps || j.bytes+r.bytes > maxJointBytes) || !j.keys.Add(read, nil, written) {
		return false
	}
	j.ops, j.bytes = ops, j.bytes+r.bytes
	j.list = append(j.list, r)
	return true
}

// Send implements gather.Batch.
func (j *joint) Send() {
	if len(j.list) == 1 {
		r := j.list[0]
		r.send(context.Background(), j.client)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	all := make([]clientv3.Op, len(j.list), len(j.list)+1)
	for i, r := range j.list {
		all[i] = clientv3.OpTxn(r.cmps, r.then, r.otherwise)
	}
	// Members of releases before July 2026 do not count what is in a Txn within another one
	// against their quota, and let it through when there is no space. This they count.
	all = append(all, clientv3.OpPut(j.mark, ""))
	answer, err := j.client.Txn(ctx).Then(all...).Commit()
	for i, r := range j.list {
		if r.err = err; err == nil {
			r.answer = (*clientv3.TxnResponse)(answer.Responses[i].GetResponseTxn())
			r.answer.Header = answer.Header
		}
	}
}

// send sends a request by itself.
func (r *request) send(ctx context.Context, client *clientv3.Client) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	r.answer, r.err = client.Txn(ctx).If(r.cmps...).Then(r.then...).Else(r.otherwise...).Commit()
}
