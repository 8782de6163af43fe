package etcd

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"ogw/cluster"
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
	// maxSharers bounds how many commits in one request set the same key: as deep are their Txns.
	maxSharers = 64
	// onTop are the Txn of a request itself, and its mark.
	onTop = 2
)

// request is a Txn of a commit.
type request struct {
	cmps            []clientv3.Cmp
	then, otherwise []clientv3.Op
	bytes, compared int // set by joins: all that it has, and what it compares
	answer          *clientv3.TxnResponse
	err             error
	compares        []string // cmps (sharers), set when it is asked for
	superseded      []string // keys that a later commit of the same request set too
}

// joins reports whether r may go with others: it compares no range, and is small.
func (r *request) joins() bool {
	for i := range r.cmps {
		if len(r.cmps[i].RangeEnd) > 0 {
			return false
		}
	}
	r.compared = compared(r.cmps)
	r.bytes = r.compared
	for _, list := range [][]clientv3.Op{r.then, r.otherwise} {
		for i := range list {
			r.bytes += len(list[i].KeyBytes()) + len(list[i].ValueBytes())
		}
	}
	return r.bytes <= maxJoinBytes
}

// compared returns the length of what cmps compare.
func compared(cmps []clientv3.Cmp) (bytes int) {
	for i := range cmps {
		bytes += len(cmps[i].KeyBytes()) + len(cmps[i].ValueBytes()) + len(cmps[i].RangeEnd)
	}
	return bytes
}

// keys returns what r reads and writes.
func (r *request) keys() (read, set, deleted []string) {
	read = make([]string, len(r.cmps))
	for i := range r.cmps {
		read[i] = string(r.cmps[i].KeyBytes())
	}
	for i := range r.then {
		if key := string(r.then[i].KeyBytes()); r.then[i].IsPut() {
			set = append(set, key)
		} else {
			deleted = append(deleted, key)
		}
	}
	return read, set, deleted
}

// joint are commits in one Txn, as a Txn each within it. etcd decides which of them hold
// before it writes any. It takes no key that is set twice, but in a Txn's two branches: what
// several commits set is in a Txn of its own (sharers).
type joint struct {
	client     *clientv3.Client
	mark       string // a key that each writes
	list       []*request
	ops, bytes int // the most that one has; of all
	sets       map[string]*sharers
	shared     []string // keys of which there are several
	keys       gather.Footprint
}

// sharers are the commits that set a key. It is set by the last of them if that holds, else by
// the one before, and so on: Txns within Txns, the bounds of which etcd counts together. What all
// of them compare is compared once.
type sharers struct {
	list   []*request
	common map[string]bool // what all compare, if there are several
	ops    int             // comparisons of all
}

// with returns what would be common to all if r were one of them.
func (s *sharers) with(r *request) map[string]bool {
	common := make(map[string]bool, len(r.cmps))
	for _, c := range r.comparisons() {
		if s.common[c] || len(s.list) == 1 && slices.Contains(s.list[0].comparisons(), c) {
			common[c] = true
		}
	}
	return common
}

// depth returns the most operations in all of the Txns, with n commits that have ops comparisons.
func depth(n, ops, common int) int { return common + 1 + ops - n*common + n }

// comparisons returns cmps in a form that can be compared.
func (r *request) comparisons() []string {
	if r.compares == nil {
		r.compares = make([]string, len(r.cmps))
		for i := range r.cmps {
			b, _ := (*pb.Compare)(&r.cmps[i]).Marshal() // into memory
			r.compares[i] = string(b)
		}
	}
	return r.compares
}

// txn returns the Txn that sets key.
func (s *sharers) txn(key string) clientv3.Op {
	var chain []clientv3.Op
	var cmps []clientv3.Cmp
	for i, r := range s.list {
		var rest []clientv3.Cmp
		for k, c := range r.comparisons() {
			switch {
			case !s.common[c]:
				rest = append(rest, r.cmps[k])
			case i == 0:
				cmps = append(cmps, r.cmps[k])
			}
		}
		put := r.then[slices.IndexFunc(r.then, func(op clientv3.Op) bool { return string(op.KeyBytes()) == key })]
		chain = []clientv3.Op{clientv3.OpTxn(rest, []clientv3.Op{put}, chain)}
	}
	return clientv3.OpTxn(cmps, chain, nil)
}

func newCommits(client *clientv3.Client, mark string) *gather.Group[*request] {
	return &gather.Group[*request]{Calls: maxCommits, New: func() gather.Batch[*request] {
		return &joint{client: client, mark: mark, sets: make(map[string]*sharers)}
	}}
}

// Add implements gather.Batch.
func (j *joint) Add(r *request) bool {
	read, set, deleted := r.keys()
	ops, bytes, shared := max(j.ops, len(r.cmps), len(r.then), len(r.otherwise)), j.bytes+r.bytes, j.shared
	for _, key := range set {
		s := j.sets[key]
		if s == nil {
			continue
		}
		if len(s.list) == maxSharers {
			return false
		}
		ops = max(ops, depth(len(s.list)+1, s.ops+len(r.cmps), len(s.with(r))))
		bytes += r.compared
		if len(s.list) == 1 {
			shared, bytes = append(shared, key), bytes+s.list[0].compared
		}
	}
	if len(j.list) > 0 && (len(j.list)+len(shared)+onTop+ops > etcdMaxOps || bytes > maxJointBytes) || !j.keys.Add(read, set, deleted) {
		return false
	}
	for _, key := range set {
		s := j.sets[key]
		if s == nil {
			s = &sharers{}
			j.sets[key] = s
		} else {
			s.common = s.with(r)
		}
		s.list, s.ops = append(s.list, r), s.ops+len(r.cmps)
	}
	j.ops, j.bytes, j.shared = ops, bytes, shared
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
	answer, err := j.client.Txn(ctx).Then(j.operations()...).Commit()
	for i, r := range j.list {
		if r.err = err; err == nil {
			r.answer = (*clientv3.TxnResponse)(answer.Responses[i].GetResponseTxn())
			r.answer.Header = answer.Header
		}
	}
	if err == nil {
		j.supersede()
	}
}

// supersede notes what later commits of the request set.
func (j *joint) supersede() {
	for i, key := range j.keys.Superseded(func(i int) bool { return j.list[i].answer.Succeeded }) {
		j.list[i].superseded = append(j.list[i].superseded, key)
	}
}

// operations returns what is in the request, first a Txn for each commit.
func (j *joint) operations() []clientv3.Op {
	all := make([]clientv3.Op, len(j.list), len(j.list)+len(j.shared)+1)
	for i, r := range j.list {
		own := r.then
		if len(j.shared) > 0 {
			own = slices.DeleteFunc(slices.Clone(own), func(op clientv3.Op) bool { return j.keys.Shared(string(op.KeyBytes())) })
		}
		all[i] = clientv3.OpTxn(r.cmps, own, r.otherwise)
	}
	for _, key := range j.shared {
		all = append(all, j.sets[key].txn(key))
	}
	// Members of releases before July 2026 do not count what is in a Txn within another one
	// against their quota, and let it through when there is no space. This they count.
	return append(all, clientv3.OpPut(j.mark, ""))
}

// send sends a request by itself.
func (r *request) send(ctx context.Context, client *clientv3.Client) {
	timeout := commitTimeout
	if cluster.IsUrgent(ctx) { // beats: rather a fence, and the next one
		timeout = tryTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r.answer, r.err = client.Txn(ctx).If(r.cmps...).Then(r.then...).Else(r.otherwise...).Commit()
}
