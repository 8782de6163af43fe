package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/gather"
	"ogw/cluster/internal/occ"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxSlots is how many commits of one client are under way at once; more
	// wait. etcd itself works them off one by one.
	maxSlots = 256
	// resolveTimeout bounds the search for the outcome of a commit without an
	// answer: several elections.
	resolveTimeout = 15 * time.Second
)

// What a slot's value records about its last writer.
const (
	byCommit = 'c'
	byFence  = 'f'
)

// slot is a key that one commit at a time writes.
type slot struct {
	lease  *lease
	key    string
	rev    int64 // its ModRevision after its last writing
	number uint64
}

func (s *slot) value(by byte) string {
	return string(append(binary.BigEndian.AppendUint64(nil, s.number), by))
}

// mine is what holds as long as nobody else has written the slot since.
func (s *slot) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.key), "=", s.rev)
}

// put writes the slot, and never makes it.
func (s *slot) put(by byte) clientv3.Op {
	return clientv3.OpPut(s.key, s.value(by), clientv3.WithIgnoreLease())
}

func (s *slot) get() clientv3.Op { return clientv3.OpGet(s.key) }

// slots are those of one client.
type slots struct {
	client *clientv3.Client
	keys   keyspace
	// commits share requests.
	commits *gather.Group[*request]
	busy    chan struct{} // holds one for each slot in use, but for urgent commits

	mu    sync.Mutex
	lease *lease // nil before the first slot
	idle  []*slot
	made  int
}

func newSlots(client *clientv3.Client, keys keyspace) *slots {
	return &slots{client: client, keys: keys, busy: make(chan struct{}, maxSlots), commits: newCommits(client, keys.joint())}
}

// commit is what a transaction asks of etcd in the end.
type commit struct {
	cmps   []clientv3.Cmp
	writes []clientv3.Op
	looks  []occ.KeyVersion    // what was read, and is again if cmps do not hold
	found  []*pb.RangeResponse // what that found, in the same order

	// answered is set if the answer came; else it is not known what superseded would be.
	answered   bool
	superseded [][]byte // keys that a later commit of the same request set too
}

// otherwise is what is done if the comparisons do not hold.
func (c *commit) otherwise(s *slot, keys keyspace) []clientv3.Op {
	ops := make([]clientv3.Op, 1, 1+len(c.looks))
	ops[0] = s.get()
	for _, look := range c.looks {
		ops = append(ops, clientv3.OpGet(keys.key(look.Key)))
	}
	return ops
}

// commit applies c's writes if its comparisons hold, and returns the revision that they
// got. It returns 0 without an error if they do not hold, or if the commit was made
// impossible after its answer was lost.
func (p *slots) commit(ctx context.Context, c *commit) (rev int64, err error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	s, err := p.take(ctx)
	if err != nil {
		return 0, err
	}
	done, lost, err := p.try(ctx, s, c)
	if done && err == nil {
		rev = s.rev
	}
	if !lost {
		p.giveBack(s)
	}
	return rev, err
}

// enter waits for the turn of a commit. Urgent ones, which are few, have none.
func (p *slots) enter(ctx context.Context) (leave func(), err error) {
	if cluster.IsUrgent(ctx) {
		return func() {}, nil
	}
	select {
	case p.busy <- struct{}{}:
		return func() { <-p.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// try also reports whether the slot is lost: gone, or in an unknown state.
func (p *slots) try(ctx context.Context, s *slot, c *commit) (done, lost bool, err error) {
	s.number++
	r := &request{cmps: append(c.cmps, s.mine()), then: append(c.writes, s.put(byCommit)), otherwise: c.otherwise(s, p.keys)}
	// Once sent, a commit is not given up with its caller: its outcome counts.
	if cluster.IsUrgent(ctx) || !r.joins() {
		r.send(context.WithoutCancel(ctx), p.client)
	} else if sent, err := p.commits.Do(ctx, r); !sent {
		return true, false, err
	}
	answer, err := r.answer, r.err
	switch {
	case err == nil && answer.Succeeded:
		s.rev, c.answered = answer.Header.Revision, true
		for _, key := range r.superseded {
			c.superseded = append(c.superseded, p.keys.strip([]byte(key)))
		}
		return true, false, nil
	case err == nil:
		c.found = ranges(answer.Responses[1:])
		return p.refused(s, answer)
	case isRefusal(err):
		return true, false, mapError(err)
	}
	return p.resolve(ctx, s, err)
}

// refused looks at the slot after a commit whose comparisons failed. One that a proxy sends
// twice is refused by its own first copy, whose number the slot then has.
func (p *slots) refused(s *slot, answer *clientv3.TxnResponse) (done, lost bool, err error) {
	found := found(answer)
	if found != nil && found.ModRevision != s.rev && string(found.Value) == s.value(byCommit) {
		s.rev = found.ModRevision
		return true, false, nil
	}
	if found == nil {
		s.lease.over() // with which the slot went
	}
	return false, found == nil || found.ModRevision != s.rev, nil
}

// found returns the slot as the failed branch found it, or nil.
func found(answer *clientv3.TxnResponse) *mvccpb.KeyValue {
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// resolve finds the outcome of a commit that failed with cause, and makes it
// impossible if it has not happened yet.
func (p *slots) resolve(ctx context.Context, s *slot, cause error) (done, lost bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		answer, err := p.fence(ctx, s, patience(attempt))
		switch {
		case err == nil && answer.Succeeded:
			s.rev = answer.Header.Revision
			return p.notDone(cause)
		case err == nil:
			return p.outcome(s, found(answer), cause)
		case errors.Is(err, rpctypes.ErrNoSpace) && errors.Is(cause, rpctypes.ErrNoSpace):
			// The commit was answered, so it is not under way any more; a
			// full store takes no fence, and needs none.
			return p.readOutcome(ctx, s, cause)
		}
		if occ.Backoff(ctx, attempt) != nil {
			return true, true, occ.Unknown(cause)
		}
	}
}

func (p *slots) fence(ctx context.Context, s *slot, wait time.Duration) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return p.client.Txn(ctx).If(s.mine()).Then(s.put(byFence)).Else(s.get()).Commit()
}

// outcome returns the outcome that the slot records, once it was written since.
func (p *slots) outcome(s *slot, kv *mvccpb.KeyValue, cause error) (done, lost bool, err error) {
	if kv == nil {
		s.lease.over()
		return true, true, occ.Unknown(cause)
	}
	s.rev = kv.ModRevision
	switch string(kv.Value) {
	case s.value(byCommit):
		return true, false, nil
	case s.value(byFence): // whose answer was lost, too
		return p.notDone(cause)
	}
	return true, true, occ.Unknown(cause)
}

// readOutcome looks whether a full store took the commit.
func (p *slots) readOutcome(ctx context.Context, s *slot, cause error) (done, lost bool, err error) {
	answer, err := p.client.Get(ctx, s.key)
	switch {
	case err != nil:
		return true, true, occ.Unknown(cause)
	case len(answer.Kvs) == 0:
		return p.outcome(s, nil, cause)
	case answer.Kvs[0].ModRevision == s.rev:
		return true, false, mapError(cause)
	}
	return p.outcome(s, answer.Kvs[0], cause) // of the commit, or of a fence that was let through after all
}

// notDone is the end of a commit that cannot happen any more. A full store
// would refuse the next try as well.
func (p *slots) notDone(cause error) (done, lost bool, err error) {
	if errors.Is(cause, rpctypes.ErrNoSpace) {
		return true, false, mapError(cause)
	}
	return false, false, nil
}

// take returns an idle slot of a lease that lives, or makes one: of a new lease, if the
// members say that the old one has ended.
func (p *slots) take(ctx context.Context) (*slot, error) {
	s, err := p.takeOnce(ctx)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return p.takeOnce(ctx)
	}
	return s, err
}

func (p *slots) takeOnce(ctx context.Context) (*slot, error) {
	lease, err := p.alive(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.made++
	s := &slot{lease: lease, key: p.keys.slot(int64(lease.id()), p.made)}
	p.mu.Unlock()
	return s, p.create(ctx, s)
}

// create makes a slot that nobody else uses, so that a second Put after a lost
// answer is like the first. Were the first to come later still, the slot's next
// commit would be refused and the slot given up.
func (p *slots) create(ctx context.Context, s *slot) error {
	err := persist(ctx, func(ctx context.Context) error {
		answer, err := p.client.Put(ctx, s.key, s.value(byFence), clientv3.WithLease(s.lease.id()))
		if err == nil {
			s.rev = answer.Header.Revision
		}
		return err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.lease.over()
	}
	return err
}

func (p *slots) giveBack(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.lease == p.lease {
		p.idle = append(p.idle, s)
	}
}

// alive returns the client's lease; a new one, without slots, if the old one
// has ended.
func (p *slots) alive(ctx context.Context) (*lease, error) {
	p.mu.Lock()
	old := p.lease
	p.mu.Unlock()
	if old != nil && !old.ended() {
		return old, nil
	}
	fresh, err := newLease(ctx, p.client)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != old { // another caller was faster
		go fresh.close()
		return p.lease, nil
	}
	p.lease, p.idle = fresh, nil
	return fresh, nil
}

// close ends the lease and with it the slots.
func (p *slots) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != nil {
		p.lease.close()
	}
}
