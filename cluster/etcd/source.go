package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"ogw/cluster"
	"ogw/cluster/internal/gather"
	"ogw/cluster/internal/occ"
)

// source is the store at one revision, as an occ.Source.
type source struct {
	ctx    context.Context
	client *clientv3.Client
	reads  *gather.Group[*lookup]
	keys   keyspace
	rev    int64       // 0 before the first read
	recall *occ.Recall // nil: each read asks
	// compacted is set when the revision was too old to be read.
	compacted bool
}

// newSource returns what the first read finds. Without a recall, each read asks.
func newSource(ctx context.Context, kv *KV, recall *occ.Recall) *source {
	return &source{ctx: ctx, client: kv.client, reads: kv.reads, keys: kv.keys, recall: recall}
}

// Get implements occ.Source.
func (s *source) Get(key []byte) ([]byte, error) {
	var values [1][]byte
	err := s.GetMany([][]byte{key}, values[:])
	return values[0], err
}

// GetMany implements occ.Source.
func (s *source) GetMany(keys, values [][]byte) error {
	if s.recall == nil {
		return s.getAll(keys, values)
	}
	return s.recall.GetMany(keys, values, s.getAll, s.Settle)
}

func (s *source) getAll(keys, values [][]byte) error {
	for len(keys) > 0 {
		n := min(len(keys), etcdMaxOps-occ.MaxDoubts)
		if err := s.getSome(keys[:n], values[:n]); err != nil {
			return err
		}
		keys, values = keys[n:], values[n:]
	}
	return nil
}

func (s *source) getSome(keys, values [][]byte) error {
	answers, err := s.look(keys)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		value, rev := pairOf(answer)
		values[i] = value
		s.recall.Learned(keys[i], value, rev)
	}
	return nil
}

// Settle implements occ.Settler.
func (s *source) Settle() error {
	if !s.recall.Doubtful(cluster.IsUrgent(s.ctx)) {
		return nil
	}
	_, err := s.look(nil)
	return err
}

// look reads keys, and compares what is in doubt. First reads share a request with those
// of other transactions.
func (s *source) look(keys [][]byte) ([]*pb.RangeResponse, error) {
	if s.rev != 0 || cluster.IsUrgent(s.ctx) {
		return s.read(func(o ...clientv3.OpOption) []clientv3.Op {
			ops := make([]clientv3.Op, len(keys))
			for i, key := range keys {
				ops[i] = clientv3.OpGet(s.keys.key(key), o...)
			}
			return ops
		})
	}
	doubts := s.recall.Doubts()
	l := &lookup{keys: make([]string, 0, len(keys)+len(doubts)), values: len(keys)}
	for _, key := range keys {
		l.keys = append(l.keys, s.keys.key(key))
	}
	for _, d := range doubts {
		l.keys = append(l.keys, s.keys.key(d.Key))
	}
	if _, err := s.reads.Do(s.ctx, l); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, s.failed(l.err)
	}
	s.fix(l.rev)
	return s.compared(l.found, doubts)
}

// page reads a range, at most limit pairs of it.
func (s *source) page(start, end string, limit int64, reverse, keysOnly bool) ([]*mvccpb.KeyValue, bool, error) {
	answers, err := s.read(func(o ...clientv3.OpOption) []clientv3.Op {
		o = append(o, clientv3.WithRange(end), clientv3.WithLimit(limit))
		if keysOnly {
			o = append(o, clientv3.WithKeysOnly())
		}
		if reverse {
			o = append(o, clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
		}
		return []clientv3.Op{clientv3.OpGet(start, o...)}
	})
	if err != nil {
		return nil, false, err
	}
	return answers[0].Kvs, answers[0].More, nil
}

// read asks for what ops returns, and compares what is in doubt. The first read is
// linearizable and fixes the revision; later ones are answered by whichever member
// has that revision.
func (s *source) read(ops func(...clientv3.OpOption) []clientv3.Op) ([]*pb.RangeResponse, error) {
	doubts := s.recall.Doubts()
	all := func(o ...clientv3.OpOption) []clientv3.Op {
		list := ops(o...)
		for _, d := range doubts {
			list = append(list, clientv3.OpGet(s.keys.key(d.Key), append(o[:len(o):len(o)], clientv3.WithKeysOnly())...))
		}
		return list
	}
	answers, err := s.readAt(all)
	if err != nil {
		return nil, s.failed(err)
	}
	return s.compared(answers, doubts)
}

// compared takes the answers to what was in doubt, which are the last ones, and returns the
// others.
func (s *source) compared(answers []*pb.RangeResponse, doubts []occ.KeyVersion) ([]*pb.RangeResponse, error) {
	n := len(answers) - len(doubts)
	for i, d := range doubts {
		_, rev := pairOf(answers[n+i])
		s.recall.Found(d, rev)
	}
	return answers[:n], s.recall.Compared()
}

func (s *source) readAt(ops func(...clientv3.OpOption) []clientv3.Op) ([]*pb.RangeResponse, error) {
	if s.rev != 0 {
		answers, err := s.ask(ops(clientv3.WithRev(s.rev), clientv3.WithSerializable()))
		if !errors.Is(err, rpctypes.ErrFutureRev) {
			return answers, err
		}
		return s.ask(ops(clientv3.WithRev(s.rev)))
	}
	return s.ask(ops())
}

func (s *source) failed(err error) error {
	if err == nil {
		return nil
	}
	s.compacted = errors.Is(err, rpctypes.ErrCompacted)
	return callerOr(s.ctx, err)
}

func (s *source) ask(ops []clientv3.Op) ([]*pb.RangeResponse, error) {
	answers, rev, err := ask(s.ctx, s.client, ops)
	if err == nil {
		s.fix(rev)
	}
	return answers, err
}

func (s *source) fix(rev int64) {
	if s.rev == 0 {
		s.rev = rev
		s.recall.Fix(rev)
	}
}

// Iter implements occ.Source.
func (s *source) Iter(start, end []byte, o cluster.ScanOptions) (occ.Iter, error) {
	s.recall.BeginScan()
	return newIter(s, s.keys.key(start), s.keys.end(end), o), nil
}

// compares returns the conditions under which the reads are still valid. That of a
// range finds what is new in it, those of the pairs that were met what is gone.
func (s *source) compares() []clientv3.Cmp {
	ranges := s.recall.Versions().Ranges()
	cmps := make([]clientv3.Cmp, 0, etcdMaxOps)
	for _, r := range ranges {
		cmp := clientv3.Compare(clientv3.ModRevision(s.keys.key(r.Start)), "<", s.rev+1)
		cmps = append(cmps, cmp.WithRange(s.keys.end(r.End)))
	}
	s.recall.Versions().All(func(key []byte, rev int64) {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(s.keys.key(key)), "=", rev))
	})
	return cmps
}
