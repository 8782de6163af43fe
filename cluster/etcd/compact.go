package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ogw/cluster"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// ViewMax is how long a transaction may read: its revision is kept for so
	// long, and at least.
	ViewMax = 5 * time.Minute
	// markEvery is how exact that is.
	markEvery = time.Minute
	// maxMarks are those that are younger than ViewMax, and the one to use.
	maxMarks = int(ViewMax/markEvery) + 2
)

// mark is a revision that was current at a time of this process' clock.
type mark struct {
	rev  int64
	when time.Time
}

// compactor drops revisions that nobody reads any more.
type compactor struct {
	client *clientv3.Client
	keys   keyspace
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	marks []mark // from the oldest
}

func newCompactor(client *clientv3.Client, keys keyspace) *compactor {
	ctx, cancel := context.WithCancel(context.Background())
	c := &compactor{client: client, keys: keys, cancel: cancel, done: make(chan struct{})}
	go c.run(ctx)
	return c
}

func (c *compactor) run(ctx context.Context) {
	defer close(c.done)
	ticker := time.NewTicker(markEvery)
	defer ticker.Stop()
	for {
		c.turn(ctx, time.Now()) // what fails now is done a minute later
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *compactor) close() {
	c.cancel()
	<-c.done
}

// turn notes the revision of now, and compacts to one of ViewMax ago.
func (c *compactor) turn(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := c.client.Get(ctx, c.keys.compacted())
	if err != nil {
		return
	}
	old := c.note(mark{answer.Header.Revision, now})
	if old == 0 || len(answer.Kvs) > 0 && answer.Kvs[0].ModRevision > old {
		return // too early, or somebody else compacted since
	}
	won, err := c.client.Txn(ctx).If(unchanged(c.keys.compacted(), answer)).Then(clientv3.OpPut(c.keys.compacted(), "")).Commit()
	if err != nil || !won.Succeeded {
		return
	}
	_, _ = c.client.Compact(ctx, old)
}

func unchanged(key string, answer *clientv3.GetResponse) clientv3.Cmp {
	rev := int64(0)
	if len(answer.Kvs) > 0 {
		rev = answer.Kvs[0].ModRevision
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", rev)
}

// note keeps m, and returns the newest revision that is older than ViewMax, or
// 0. Older marks are dropped.
func (c *compactor) note(m mark) (rev int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = append(c.marks, m)
	for len(c.marks) > 0 && (m.when.Sub(c.marks[0].when) >= ViewMax || len(c.marks) > maxMarks) {
		rev = c.marks[0].rev
		c.marks = c.marks[1:]
	}
	return rev
}

// Erase implements cluster.KV: it drops all revisions before now, which ends
// transactions that read at one of them, and gives back the space of each
// member's database. Members' logs keep what was in them until they are cut.
func (kv *KV) Erase(ctx context.Context, _ ...cluster.KeyRange) error {
	if err := kv.gate.Enter(); err != nil {
		return err
	}
	defer kv.gate.Leave()
	now, err := kv.client.Get(ctx, kv.keys.compacted())
	if err != nil {
		return callerOr(ctx, err)
	}
	_, err = kv.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return callerOr(ctx, err)
	}
	members, err := kv.client.MemberList(ctx)
	if err != nil {
		return callerOr(ctx, err)
	}
	for _, member := range members.Members {
		if err := kv.defragment(ctx, member.ClientURLs); err != nil {
			return fmt.Errorf("member %s of etcd: %w", member.Name, err)
		}
	}
	return nil
}

func (kv *KV) defragment(ctx context.Context, urls []string) error {
	if len(urls) == 0 {
		return fmt.Errorf("%w: it has not started yet", cluster.ErrUnavailable)
	}
	_, err := kv.client.Defragment(ctx, urls[0])
	if err != nil {
		return callerOr(ctx, err)
	}
	return nil
}
