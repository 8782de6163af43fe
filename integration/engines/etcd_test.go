package engines

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/etcd"
	"ogw/integration/testenv"
)

var stores atomic.Int64

// newPrefix is one of a store that nobody has used.
func newPrefix() string { return fmt.Sprintf("test%d/", stores.Add(1)) }

func openEtcd(t *testing.T, prefix string, endpoints ...string) *etcd.KV {
	t.Helper()
	return openEtcdOf(t, etcd.Options{Endpoints: endpoints, Prefix: prefix})
}

func openEtcdOf(t *testing.T, o etcd.Options) *etcd.KV {
	t.Helper()
	kv, err := etcd.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kv.Close() })
	return kv
}

func TestEtcd(t *testing.T) {
	e := testenv.StartEtcd(t, 3)
	t.Run("KV", func(t *testing.T) {
		clustertest.TestKV(t, func(t *testing.T) cluster.KV { return openEtcd(t, newPrefix(), e.Endpoints()...) })
	})
	// Each client has a member of its own, so that one could be behind.
	t.Run("Clients", func(t *testing.T) {
		clustertest.TestClients(t, func(t *testing.T) (a, b cluster.KV) {
			prefix := newPrefix()
			return openEtcd(t, prefix, e.Endpoints()[0]), openEtcd(t, prefix, e.Endpoints()[1])
		})
	})
	t.Run("Telling", func(t *testing.T) {
		clustertest.TestClients(t, func(t *testing.T) (a, b cluster.KV) {
			prefix, peers := newPrefix(), telling(t)
			return openEtcdOf(t, etcd.Options{Endpoints: e.Endpoints()[:1], Prefix: prefix, Peers: peers[0]}),
				openEtcdOf(t, etcd.Options{Endpoints: e.Endpoints()[1:2], Prefix: prefix, Peers: peers[1]})
		})
	})
}

// tally is a counter per worker, written by transactions that read it.
type tally struct {
	acked, unknown, failed atomic.Int64
}

// run increments key of worker w until stop, and notes how each one ended.
func (y *tally) run(t *testing.T, kv cluster.KV, w int, stop <-chan struct{}) {
	key := fmt.Appendf(nil, "count%d", w)
	for {
		select {
		case <-stop:
			return
		default:
		}
		err := kv.Update(context.Background(), func(txn cluster.Txn) error {
			v, err := txn.Get(key)
			if err != nil {
				return err
			}
			n := uint64(0)
			if v != nil {
				n = binary.BigEndian.Uint64(v)
			}
			return txn.Set(key, binary.BigEndian.AppendUint64(nil, n+1))
		})
		switch {
		case err == nil:
			y.acked.Add(1)
		case errors.Is(err, cluster.ErrUnavailable):
			if y.unknown.Add(1) == 1 {
				t.Logf("the first unknown outcome: %v", err)
			}
		default:
			y.failed.Add(1)
			t.Errorf("worker %d: %v", w, err)
		}
	}
}

// total is what all counters come to.
func total(t *testing.T, kv cluster.KV) (n int64) {
	t.Helper()
	err := kv.View(context.Background(), func(r cluster.Reader) error {
		n = 0
		return r.Scan([]byte("count"), []byte("counu"), cluster.ScanOptions{}, func(_, v []byte) error {
			n += int64(binary.BigEndian.Uint64(v))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// load runs workers on clients while disturb does its work, and holds the
// counters to what was acknowledged.
func load(t *testing.T, clients []cluster.KV, workers int, disturb func()) *tally {
	t.Helper()
	y, stop := &tally{}, make(chan struct{})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { y.run(t, clients[w%len(clients)], w, stop) })
	}
	disturb()
	close(stop)
	wg.Wait()
	n, acked, unknown := total(t, clients[0]), y.acked.Load(), y.unknown.Load()
	t.Logf("%d acknowledged, %d unknown, the counters are %d", acked, unknown, n)
	if n < acked || n > acked+unknown {
		t.Errorf("%d acknowledged and %d unknown, but the counters are %d", acked, unknown, n)
	}
	if acked == 0 {
		t.Error("nothing was acknowledged")
	}
	return y
}

// A lease that ends before its client knows, as by an operator's hand, costs commits no time:
// neither one that has a slot of it, nor those that would make theirs.
func TestEtcdLeaseRevoked(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	kv, other := openEtcd(t, newPrefix(), e.Endpoints()...), etcdClient(t, e.Endpoints()...)
	set := func(w int) {
		if err := kv.Update(t.Context(), func(txn cluster.Txn) error { return txn.Set(fmt.Append(nil, "key", w), nil) }); err != nil {
			t.Errorf("worker %d: %v", w, err)
		}
	}
	for _, workers := range []int{1, 16, 16} {
		set(0)
		leases, err := other.Leases(t.Context())
		if err != nil || len(leases.Leases) == 0 {
			t.Fatalf("leases: %v, %v", leases, err)
		}
		for _, l := range leases.Leases {
			if _, err := other.Revoke(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() { set(w) })
		}
		wg.Wait()
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%d commits took %v", workers, took)
		}
	}
}

// A transaction that etcd takes does not become too large by being refused: what it then
// asks for beside what it writes is bounded.
func TestEtcdLargeRefused(t *testing.T) {
	const keys, refusals = 60, 3
	e := testenv.StartEtcd(t, 1)
	prefix := newPrefix()
	kv, other := openEtcd(t, prefix, e.Endpoints()...), openEtcd(t, prefix, e.Endpoints()...)
	long, value := bytes.Repeat([]byte("k"), cluster.MaxKeyBytes-2), make([]byte, (kv.Limits().Bytes-1<<10)/2)
	runs := 0
	err := kv.Update(t.Context(), func(txn cluster.Txn) error {
		for i := range keys {
			if _, err := txn.Get(fmt.Appendf(nil, "%02d%s", i, long)); err != nil {
				return err
			}
		}
		if _, err := txn.Get([]byte("hot")); err != nil {
			return err
		}
		if runs++; runs <= refusals {
			if err := other.Update(t.Context(), func(txn cluster.Txn) error { return txn.Set([]byte("hot"), fmt.Append(nil, runs)) }); err != nil {
				return err
			}
		}
		return errors.Join(txn.Set([]byte("large1"), value), txn.Set([]byte("large2"), value))
	})
	if err != nil || runs <= refusals {
		t.Errorf("after %d runs: %v", runs, err)
	}
}

// Members that are killed and started again cost time, not a commit, and leave
// no outcome unknown.
func TestEtcdKill(t *testing.T) {
	e := testenv.StartEtcd(t, 3)
	prefix := newPrefix()
	clients := []cluster.KV{openEtcd(t, prefix, e.Endpoints()...), openEtcd(t, prefix, e.Endpoints()...)}
	y := load(t, clients, 8, func() {
		for i := range 3 {
			time.Sleep(time.Second)
			e.Kill(i)
			time.Sleep(2 * time.Second)
			e.Start(i)
			time.Sleep(2 * time.Second)
		}
	})
	if n := y.unknown.Load(); n > 0 {
		t.Errorf("%d outcomes were unknown while two members lived", n)
	}
}

const (
	// silentBeats is how long a gateway may be without a beat.
	silentBeats = 8 * time.Second
	beatEvery   = 2 * time.Second
)

// silentFor is how long each member stands still.
var silentFor = [3]time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second}

// A member that stands still keeps its connections. Requests to it cost time, but no
// client its beats, and no reader an answer.
func TestEtcdSilent(t *testing.T) {
	e := testenv.StartEtcd(t, 3)
	prefix := newPrefix()
	clients := []cluster.KV{openEtcd(t, prefix, e.Endpoints()...), openEtcd(t, prefix, e.Endpoints()...)}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	longest := make([]time.Duration, len(clients)) // since a beat that was acknowledged
	for i, kv := range clients {
		others.Go(func() { longest[i] = beats(ctx, kv, fmt.Append(nil, "beat", i)) })
		for range 4 {
			others.Go(func() {
				for ctx.Err() == nil {
					err := kv.Peek(t.Context(), func(r cluster.Reader) error {
						_, err := r.Get([]byte("count0"))
						return err
					})
					if err != nil {
						t.Errorf("a read: %v", err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	}
	load(t, clients, 8, func() {
		for i := range 3 {
			e.Signal(i, syscall.SIGSTOP)
			time.Sleep(silentFor[i])
			e.Signal(i, syscall.SIGCONT)
			time.Sleep(2 * time.Second)
		}
	})
	stop()
	others.Wait()
	t.Logf("at the most %v without a beat", longest)
	if slices.Max(longest) > silentBeats {
		t.Errorf("%v without a beat", longest)
	}
}

// beats makes beats as a gateway does, and returns the longest time after one that was
// acknowledged was sent.
func beats(ctx context.Context, kv cluster.KV, key []byte) (longest time.Duration) {
	acked := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		sent := time.Now()
		beat, cancel := context.WithTimeout(cluster.Urgent(context.Background()), 2*beatEvery)
		err := kv.Update(beat, func(txn cluster.Txn) error {
			if _, err := txn.Get(key); err != nil {
				return err
			}
			return txn.Set(key, fmt.Append(nil, n))
		})
		cancel()
		longest = max(longest, time.Since(acked))
		if err == nil {
			acked = sent
		}
		time.Sleep(time.Until(sent.Add(beatEvery)))
	}
	return longest
}

// Without a majority, calls end in bounded time, and go on when it is back.
func TestEtcdNoMajority(t *testing.T) {
	e := testenv.StartEtcd(t, 3)
	kv := openEtcd(t, newPrefix(), e.Endpoints()...)
	set := func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("v")) }
	if err := kv.Update(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	e.Kill(0)
	e.Kill(1)
	begin := time.Now()
	err := kv.Update(context.Background(), set)
	if !errors.Is(err, cluster.ErrUnavailable) || time.Since(begin) > time.Minute {
		t.Fatalf("Update without a majority: %v after %v", err, time.Since(begin))
	}
	err = kv.View(context.Background(), func(r cluster.Reader) error {
		_, err := r.Get([]byte("k"))
		return err
	})
	if !errors.Is(err, cluster.ErrUnavailable) {
		t.Fatalf("View without a majority: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err = kv.View(ctx, func(r cluster.Reader) error {
		_, err := r.Get([]byte("k"))
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("View of an impatient caller: %v", err)
	}
	e.Start(0)
	e.Start(1)
	if err := kv.Update(context.Background(), set); err != nil {
		t.Fatalf("Update after the majority was back: %v", err)
	}
}

// A full store says so, loses nothing, and can be read.
func TestEtcdFull(t *testing.T) {
	e := testenv.StartEtcd(t, 1, "--quota-backend-bytes", fmt.Sprint(8<<20))
	kv := openEtcd(t, newPrefix(), e.Endpoints()...)
	value, acked := make([]byte, 512<<10), 0
	var err error
	for i := range 100 {
		err = kv.Update(context.Background(), func(txn cluster.Txn) error {
			return txn.Set(fmt.Appendf(nil, "big%03d", i), value)
		})
		if err != nil {
			break
		}
		acked++
	}
	if !errors.Is(err, cluster.ErrNoSpace) {
		t.Fatalf("after %d values: %v", acked, err)
	}
	found := 0
	if err := kv.View(context.Background(), func(r cluster.Reader) error {
		found = 0
		return r.Scan(nil, nil, cluster.ScanOptions{}, func(_, v []byte) error {
			if len(v) != len(value) {
				return fmt.Errorf("value of %d bytes", len(v))
			}
			found++
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if found != acked {
		t.Errorf("%d values are there, %d were acknowledged", found, acked)
	}
}

func TestEtcdBadOptions(t *testing.T) {
	nobody := testenv.FreeAddr(t)
	for name, test := range map[string]struct {
		o    etcd.Options
		want error
		says string
	}{
		"no endpoints": {etcd.Options{}, cluster.ErrInvalid, "endpoints"},
		"long prefix":  {etcd.Options{Endpoints: []string{nobody}, Prefix: strings.Repeat("p", 200)}, cluster.ErrInvalid, "prefix of 200 bytes"},
		"nobody there": {etcd.Options{Endpoints: []string{nobody}}, cluster.ErrUnavailable, nobody},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := etcd.Open(ctx, test.o)
		cancel()
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
