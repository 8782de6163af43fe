package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"ogw/cluster/internal/gather"
)

// maxReads is how many requests of first reads are under way at once, which those who
// come meanwhile share.
const maxReads = 2

// lookup is the first read of a transaction: keys, of which it wants the values of the first
// ones and whether the others are as they were.
type lookup struct {
	keys   []string
	values int
	found  []*pb.RangeResponse // for each key
	rev    int64               // of all
	err    error
}

// lookups are those of several transactions, at one revision. Keys that several ask for are
// asked for once.
type lookups struct {
	client *clientv3.Client
	list   []*lookup
	places map[string]int
	keys   []string
	values []bool // whether somebody wants the value
}

func newReads(client *clientv3.Client) *gather.Group[*lookup] {
	return &gather.Group[*lookup]{Calls: maxReads, Leave: true, New: func() gather.Batch[*lookup] {
		return &lookups{client: client, places: make(map[string]int)}
	}}
}

// Add implements gather.Batch.
func (b *lookups) Add(l *lookup) bool {
	more := 0
	for _, key := range l.keys {
		if _, ok := b.places[key]; !ok {
			more++
		}
	}
	if len(b.list) > 0 && len(b.keys)+more > etcdMaxOps {
		return false
	}
	for i, key := range l.keys {
		at, ok := b.places[key]
		if !ok {
			at = len(b.keys)
			b.places[key] = at
			b.keys, b.values = append(b.keys, key), append(b.values, false)
		}
		b.values[at] = b.values[at] || i < l.values
	}
	b.list = append(b.list, l)
	return true
}

// Send implements gather.Batch.
func (b *lookups) Send() {
	ops := make([]clientv3.Op, len(b.keys))
	for i, key := range b.keys {
		if b.values[i] {
			ops[i] = clientv3.OpGet(key)
		} else {
			ops[i] = clientv3.OpGet(key, clientv3.WithKeysOnly())
		}
	}
	answers, rev, err := ask(context.Background(), b.client, ops)
	for _, l := range b.list {
		if l.rev, l.err = rev, err; err != nil {
			continue
		}
		l.found = make([]*pb.RangeResponse, len(l.keys))
		for i, key := range l.keys {
			l.found[i] = answers[b.places[key]]
		}
	}
}

// ask sends reads in one request, and returns their answers and the revision.
func ask(ctx context.Context, client *clientv3.Client, ops []clientv3.Op) (found []*pb.RangeResponse, rev int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = resend(ctx, resendTime, func(ctx context.Context) error {
		if len(ops) == 1 { // members have less to do than for a Txn
			answer, err := client.Do(ctx, ops[0])
			if err == nil {
				found, rev = []*pb.RangeResponse{(*pb.RangeResponse)(answer.Get())}, answer.Get().Header.Revision
			}
			return err
		}
		answer, err := client.Txn(ctx).Then(ops...).Commit()
		if err == nil {
			found, rev = ranges(answer.Responses), answer.Header.Revision
		}
		return err
	})
	return found, rev, err
}
