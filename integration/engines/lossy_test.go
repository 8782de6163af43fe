package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/integration/testenv"
)

// lossyProxy stands before a member. What clients send arrives; of the
// answers, some are dropped with their connection.
type lossyProxy struct {
	listener net.Listener
	member   string
	rate     float64 // of reads from the member that end their connection
	lost     atomic.Int64
	losing   atomic.Bool
	trips    atomic.Int64 // how often a client spoke after the member had, and not to ping it
}

// lossRate is the usual one: an answer is a read or two.
const lossRate = 0.02

func newLossyProxy(t *testing.T, member string) *lossyProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyProxy{listener: l, member: member, rate: lossRate}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *lossyProxy) addr() string { return p.listener.Addr().String() }

func (p *lossyProxy) serve(client net.Conn) {
	defer client.Close()
	member, err := net.Dial("tcp", p.member)
	if err != nil {
		return
	}
	defer member.Close()
	var answered atomic.Bool
	answered.Store(true)
	go func() {
		_, _ = io.Copy(member, &asking{client, func(message []byte) {
			if answered.Swap(false) && !isPing(message) {
				p.trips.Add(1)
			}
		}})
		member.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := member.Read(buf)
		answered.Store(true)
		if n > 0 && p.losing.Load() && rand.Float64() < p.rate {
			p.lost.Add(1)
			return
		}
		if _, e := client.Write(buf[:n]); err != nil || e != nil {
			return
		}
	}
}

// asking notes each read.
type asking struct {
	io.Reader
	note func(message []byte)
}

func (a *asking) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.note(p[:n])
	}
	return n, err
}

// isPing reports whether a message to PostgreSQL asks whether the connection works. A pool asks
// one that was idle for a second, before its next use: how often is a matter of how fast the
// machine is, and not of what operations need.
func isPing(message []byte) bool {
	return bytes.Equal(message, []byte("Q\x00\x00\x00\x0c-- ping\x00"))
}

// Commits whose answers are lost are found again or made impossible: each
// increment counts once, and no caller is left without an outcome.
func TestEtcdLostAnswers(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	p := newLossyProxy(t, e.Endpoints()[0])
	prefix := newPrefix()
	clients := []cluster.KV{openEtcd(t, prefix, p.addr()), openEtcd(t, prefix, p.addr())}
	p.losing.Store(true)
	y := load(t, clients, 8, func() {
		time.Sleep(10 * time.Second)
		p.losing.Store(false)
	})
	t.Logf("%d connections were cut with an answer", p.lost.Load())
	if p.lost.Load() == 0 {
		t.Error("no answer was lost")
	}
	if n := y.unknown.Load(); n > 0 {
		t.Errorf("%d outcomes stayed unknown", n)
	}
}

// A client's first commit asks for a lease and a slot, whose answers are lost as
// well.
func TestEtcdLostFirstAnswers(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	p := newLossyProxy(t, e.Endpoints()[0])
	p.rate = 0.1
	prefix := newPrefix()
	clients := make([]cluster.KV, 24)
	for i := range clients {
		clients[i] = openEtcd(t, prefix, p.addr())
	}
	p.losing.Store(true)
	defer p.losing.Store(false)
	for i, kv := range clients {
		err := kv.Update(t.Context(), func(txn cluster.Txn) error { return txn.Set([]byte{'c', byte(i)}, nil) })
		if err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	}
	if p.lost.Load() == 0 {
		t.Error("no answer was lost")
	}
}

func TestEtcdLostShared(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	prefix := newPrefix()
	testLostShared(t, e.Endpoints()[0], func(addr string) cluster.KV { return openEtcd(t, prefix, addr) })
}

func TestPostgresLostShared(t *testing.T) {
	p := testenv.StartPostgres(t)
	store := newPrefix()
	testLostShared(t, p.Addr(), func(addr string) cluster.KV { return openPostgres(t, p.URL(addr), store) })
}

// testLostShared: commits that set the same pair, which none has read, go together. Also where
// the answer to all is lost, a client remembers of it what the store has, or nothing.
func testLostShared(t *testing.T, server string, open func(addr string) cluster.KV) {
	const rounds, commits = 20, 16
	p := newLossyProxy(t, server)
	p.rate = 0.1
	kv, shared := open(p.addr()), []byte("times")
	for round := range rounds {
		p.losing.Store(true)
		var wg sync.WaitGroup
		for i := range commits {
			wg.Go(func() {
				if err := kv.Update(t.Context(), func(txn cluster.Txn) error {
					return errors.Join(txn.Set(shared, fmt.Appendf(nil, "%d/%d", round, i)), txn.Set(fmt.Append(nil, "own", i), nil))
				}); err != nil && !errors.Is(err, cluster.ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		p.losing.Store(false)
		seen := func(f func(context.Context, func(cluster.Reader) error) error) (value string) {
			if err := f(t.Context(), func(r cluster.Reader) error {
				b, err := r.Get(shared)
				value = string(b)
				return err
			}); err != nil {
				t.Error(err)
			}
			return value
		}
		there := seen(open(server).View)
		if got := seen(kv.Peek); got != there {
			t.Errorf("round %d: a Peek has %q, the store %q", round, got, there)
		}
		if got := seen(func(ctx context.Context, fn func(cluster.Reader) error) error {
			return kv.Update(ctx, func(txn cluster.Txn) error { return errors.Join(fn(txn), txn.Set([]byte("mark"), nil)) })
		}); got != there {
			t.Errorf("round %d: an Update read %q, the store has %q", round, got, there)
		}
	}
	t.Logf("%d connections were cut with an answer", p.lost.Load())
	if p.lost.Load() == 0 {
		t.Error("no answer was lost")
	}
}
