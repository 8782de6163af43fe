package engines

import (
	"io"
	"math/rand/v2"
	"net"
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
	trips    atomic.Int64 // how often a client spoke after the member had
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
		_, _ = io.Copy(member, &asking{client, func() {
			if answered.Swap(false) {
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
	note func()
}

func (a *asking) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.note()
	}
	return n, err
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
