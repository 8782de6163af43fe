package sharedlocks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

var bg = context.Background()

// store is one engine that gateways share.
type store struct {
	t *testing.T
	c *cluster.Cluster
	n uint64
	// all are to be closed, whatever happens.
	all []*gateway
}

// gateway is a Table with the fence of a session.
type gateway struct {
	*Table
	s     *store
	id    uint64
	away  atomic.Bool // the engine does not answer
	lost  atomic.Int32
	rules atomic.Uint32
	asked sync.Mutex
	// doubts are those that are not settled.
	doubts []func()
}

// onStore runs a test over an engine as it is, and as etcd at its worst, in time that costs
// nothing.
func onStore(t *testing.T, test func(t *testing.T, s *store)) {
	for name, o := range map[string]mem.Options{"mem": {}, "worst": mem.Distributed(1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{t: t, c: mem.New(o)}
				defer func() {
					for _, g := range s.all {
						g.Close()
					}
				}()
				test(t, s)
				must(t, s.c.Close())
			})
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

// open has a gateway come.
func (s *store) open() *gateway {
	s.n++
	g := &gateway{s: s, id: s.n}
	s.all = append(s.all, g)
	g.rules.Store(record.RulesVersion)
	must(s.t, s.c.KV.Update(bg, func(x cluster.Txn) error { return x.Set(record.FenceKey(g.id), []byte(`{"beside":true}`)) }))
	g.Table = New(Config{KV: &fenced{s.c.KV, g}, Gateway: g.id, Log: slog.New(slog.DiscardHandler),
		Rules: func() uint16 { return uint16(g.rules.Load()) },
		Doubt: func(settled func()) {
			g.asked.Lock()
			defer g.asked.Unlock()
			g.doubts = append(g.doubts, settled)
		}})
	return g
}

// settleDoubts is a beat that writes the fence anew.
func (g *gateway) settleDoubts() {
	for { // some ask again
		g.asked.Lock()
		list := g.doubts
		g.doubts = nil
		g.asked.Unlock()
		for _, fn := range list {
			fn()
		}
		if len(list) == 0 {
			return
		}
	}
}

// end has a gateway be gone, as after kill -9 and its eviction.
func (g *gateway) end() {
	g.Close()
	must(g.s.t, g.s.c.KV.Update(bg, func(x cluster.Txn) error { return x.Delete(record.FenceKey(g.id)) }))
}

// fenced is an engine as a session shows it.
type fenced struct {
	cluster.KV
	g *gateway
}

var errAway = fmt.Errorf("%w: for the test", cluster.ErrUnavailable)

func (k *fenced) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if k.g.away.Load() {
		return errAway
	}
	err := k.KV.Update(ctx, func(x cluster.Txn) error {
		if v, err := x.Get(record.FenceKey(k.g.id)); err != nil || v == nil {
			return errors.Join(err, errAway)
		}
		return fn(x)
	})
	if err == nil && k.g.lost.Load() > 0 { // it was done, and nobody is told
		k.g.lost.Add(-1)
		return errAway
	}
	return err
}

func (k *fenced) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	if k.g.away.Load() {
		return errAway
	}
	return k.KV.Peek(ctx, fn)
}

// pairs returns how many records of locks there are.
func (s *store) pairs() (n int) {
	must(s.t, s.c.KV.View(bg, func(r cluster.Reader) error {
		n = 0
		for _, tab := range []byte{record.TabLock, record.TabWait, record.TabLocker} {
			from, to := record.Table(tab)
			if err := r.Scan(from, to, cluster.ScanOptions{}, func(_, _ []byte) error { n++; return nil }); err != nil {
				return err
			}
		}
		return nil
	}))
	return n
}

// empty fails unless nothing is left, neither in the store nor in the gateways.
func (s *store) empty(list ...*gateway) {
	s.t.Helper()
	time.Sleep(2 * time.Second)
	if n := s.pairs(); n != 0 {
		s.t.Errorf("%d records are left", n)
	}
	for _, g := range list {
		g.mu.Lock()
		if len(g.files)+len(g.busy)+g.tally.Total() != 0 || g.polling {
			s.t.Errorf("gateway %d has %d files, %d to look at, %d locks, polls: %v", g.id, len(g.files), len(g.busy), g.tally.Total(), g.polling)
		}
		g.mu.Unlock()
		g.Close()
	}
}

func owner(g *gateway, id string) lock.Owner {
	return lock.Owner{Client: fmt.Sprint("mount ", g.id), ID: id}
}

func exclusive(o lock.Owner) lock.Lock {
	return lock.Lock{Owner: o, Type: lock.Exclusive, End: lock.EOF}
}

// waits has a request wait, and returns what it gets.
func waits(t *testing.T, g *gateway, ino uint64, s lock.Space, l lock.Lock) (result chan error, cancel func() bool) {
	t.Helper()
	result = make(chan error, 1)
	cancel, waiting, err := g.LockFunc(bg, ino, s, l, func(err error) { result <- err })
	if err != nil || !waiting {
		t.Fatalf("it does not wait: %v", err)
	}
	return result, cancel
}

// nothing fails if a request got something.
func nothing(t *testing.T, result chan error) {
	t.Helper()
	time.Sleep(time.Second)
	select {
	case err := <-result:
		t.Fatalf("it ended with %v, and should wait", err)
	default:
	}
}
