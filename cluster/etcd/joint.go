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
	// that of one.
	maxJointBytes = maxBytes
)

// request is a Txn of a commit.
type request struct {
	cmps            []clientv3.Cmp
	then, otherwise []clientv3.Op
	answer          *clientv3.TxnResponse
	err             error
}

// keys returns what r reads and writes, and how much that is. It scans, if it compares a range.
func (r *request) keys() (read, written []string, bytes int, scans bool) {
	read, written = make([]string, len(r.cmps)), make([]string, len(r.then))
	for i := range r.cmps {
		read[i] = string(r.cmps[i].KeyBytes())
		bytes += len(read[i]) + len(r.cmps[i].ValueBytes())
		scans = scans || len(r.cmps[i].RangeEnd) > 0
	}
	for i := range r.then {
		written[i] = string(r.then[i].KeyBytes())
		bytes += len(written[i]) + len(r.then[i].ValueBytes())
	}
	for i := range r.otherwise {
		bytes += len(r.otherwise[i].KeyBytes())
	}
	return read, written, bytes, scans
}

// joint are commits in one Txn, as a Txn each within it. etcd decides which of them hold
// before it writes any.
type joint struct {
	client     *clientv3.Client
	list       []*request
	ops, bytes int // the most that one has; of all
	keys       gather.Footprint
	alone      bool // the only one scans
}

func newCommits(client *clientv3.Client) *gather.Group[*request] {
	return &gather.Group[*request]{Calls: maxCommits, New: func() gather.Batch[*request] { return &joint{client: client} }}
}

// Add implements gather.Batch.
func (j *joint) Add(r *request) bool {
	read, written, bytes, scans := r.keys()
	ops := max(j.ops, len(r.cmps), len(r.then), len(r.otherwise))
	if len(j.list) > 0 && (scans || j.alone || len(j.list)+1+ops > etcdMaxOps || j.bytes+bytes > maxJointBytes) || !j.keys.Add(read, written) {
		return false
	}
	j.ops, j.bytes, j.alone = ops, j.bytes+bytes, scans
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
	all := make([]clientv3.Op, len(j.list))
	for i, r := range j.list {
		all[i] = clientv3.OpTxn(r.cmps, r.then, r.otherwise)
	}
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
