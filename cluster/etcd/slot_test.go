package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Urgent commits do not wait for the turn of others.
func TestUrgentTurn(t *testing.T) {
	p := newSlots(nil, "")
	for range maxSlots {
		if _, err := p.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.enter(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("one commit too many: %v", err)
	}
	leave, err := p.enter(cluster.Urgent(ended))
	if err != nil {
		t.Fatalf("an urgent one: %v", err)
	}
	if leave(); len(p.busy) != maxSlots {
		t.Errorf("%d turns are taken", len(p.busy))
	}
}

// A commit that is refused by its own first copy has happened.
func TestRefusedByItself(t *testing.T) {
	const rev, number = 7, 3
	for _, c := range []struct {
		name       string
		slot       *mvccpb.KeyValue
		done, lost bool
	}{
		{"as it was", &mvccpb.KeyValue{ModRevision: rev, Value: []byte((&slot{number: number - 1}).value(byCommit))}, false, false},
		{"by the first copy", &mvccpb.KeyValue{ModRevision: rev + 2, Value: []byte((&slot{number: number}).value(byCommit))}, true, false},
		{"by somebody else", &mvccpb.KeyValue{ModRevision: rev + 2, Value: []byte((&slot{}).value(byFence))}, false, true},
	} {
		found := &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{c.slot}}
		s := &slot{key: "slot", rev: rev, number: number}
		done, lost, err := newSlots(nil, "").refused(s, &clientv3.TxnResponse{
			Responses: []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}}},
		})
		if done != c.done || lost != c.lost || err != nil {
			t.Errorf("%s: done %v, lost %v, %v", c.name, done, lost, err)
		}
		if done && s.rev != c.slot.ModRevision {
			t.Errorf("%s: the slot is at %d", c.name, s.rev)
		}
	}
}

// The client does not send a commit again that somebody else ended than its caller.
func TestEndedByOthers(t *testing.T) {
	live := t.Context()
	ended, end := context.WithCancel(live)
	end()
	for _, c := range []struct {
		ctx        context.Context
		req        any
		code, want codes.Code
	}{
		{live, &pb.TxnRequest{}, codes.Canceled, codes.Unavailable},
		{live, &pb.TxnRequest{}, codes.DeadlineExceeded, codes.Unavailable},
		{live, &pb.TxnRequest{}, codes.ResourceExhausted, codes.ResourceExhausted},
		{ended, &pb.TxnRequest{}, codes.Canceled, codes.Canceled},
		{live, &pb.RangeRequest{}, codes.Canceled, codes.Canceled},
	} {
		err := newMembers([]string{"m"}).interceptor()(c.ctx, "", c.req, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return status.Error(c.code, "ended")
			})
		if got := status.Code(err); got != c.want {
			t.Errorf("%s of %T: %s, want %s", c.code, c.req, got, c.want)
		}
	}
}

// A commit that is refused asks for all that it read, or, where that would make it too large,
// for nothing.
func TestLooksAreBounded(t *testing.T) {
	kv := &KV{keys: "prefix/", memory: occ.NewMemory(nil)}
	for _, c := range []struct{ keys, bytes, want int }{{MaxOps, 100, MaxOps}, {MaxOps, cluster.MaxKeyBytes, 0}} {
		reads := occ.NewVersions()
		s := &source{keys: kv.keys, recall: occ.NewRecall(kv.memory, false, reads)}
		for i := range c.keys {
			key := fmt.Appendf(nil, "%03d%s", i, bytes.Repeat([]byte("k"), c.bytes-3))
			kv.memory.Found(key, nil, int64(i+1), 0)
			reads.Saw(key, int64(i+1))
		}
		looks := kv.remembered(reads, maxLooks-compared(s.compares()))
		// Two keys may have one place in the memory.
		if len(looks) > c.want || len(looks) < c.want-c.want/10 {
			t.Errorf("of %d keys of %d bytes: %d", c.keys, c.bytes, len(looks))
		}
	}
}
