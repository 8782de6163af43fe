package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/postgres"
	"ogw/integration/testenv"
	"ogw/vfs"
)

func openPostgres(t *testing.T, url, store string) *postgres.KV {
	t.Helper()
	return openPostgresOf(t, postgres.Options{URL: url, Store: store})
}

func openPostgresOf(t *testing.T, o postgres.Options) *postgres.KV {
	t.Helper()
	kv, err := postgres.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kv.Close() })
	return kv
}

func TestPostgres(t *testing.T) {
	p := testenv.StartPostgres(t)
	url := p.URL(p.Addr())
	t.Run("KV", func(t *testing.T) {
		clustertest.TestKV(t, func(t *testing.T) cluster.KV { return openPostgres(t, url, newPrefix()) })
	})
	t.Run("Clients", func(t *testing.T) {
		clustertest.TestClients(t, func(t *testing.T) (a, b cluster.KV) {
			store := newPrefix()
			return openPostgres(t, url, store), openPostgres(t, url, store)
		})
	})
	t.Run("Telling", func(t *testing.T) {
		clustertest.TestClients(t, func(t *testing.T) (a, b cluster.KV) {
			store, peers := newPrefix(), telling(t)
			return openPostgresOf(t, postgres.Options{URL: url, Store: store, Peers: peers[0]}),
				openPostgresOf(t, postgres.Options{URL: url, Store: store, Peers: peers[1]})
		})
	})
}

// Urgent transactions have connections of their own: clients that are stuck in as many as
// there are keep no gateway from its beats.
func TestPostgresUrgent(t *testing.T) {
	p := testenv.StartPostgres(t)
	clustertest.TestUrgent(t, openPostgres(t, p.URL(p.Addr()), newPrefix()), postgres.MaxConnections)
}

// Connections that are lost without a word cost no gateway its lease: the next beat finds
// one that works.
func TestPostgresLostConnections(t *testing.T) {
	t.Parallel()
	p := testenv.StartPostgres(t)
	way, store := newRelay(t, p.Addr()), newPrefix()
	join := func(addr, host string) *cluster.Cluster {
		c, err := vfs.Join(t.Context(), &cluster.Cluster{KV: openPostgres(t, p.URL(addr), store)},
			vfs.Gateway{Host: host, Beside: true, Serves: true}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.KV.Close() })
		return c
	}
	a, b := join(way.addr(), "a"), join(p.Addr(), "b")
	alive := time.NewTicker(50 * time.Millisecond)
	defer alive.Stop()
	for range 3 { // as long as b takes to put a out
		way.lose()
		for begin := time.Now(); time.Since(begin) < vfs.MaxTakeover*2/3; <-alive.C {
			if err := errors.Join(a.Live(), b.Live()); err != nil {
				t.Fatalf("%v after the connections were lost: %v", time.Since(begin), err)
			}
		}
	}
}

// An urgent transaction whose connection is lost before it commits finds out what became of
// that, and commits, within the time that a beat has.
func TestPostgresLostBeforeCommit(t *testing.T) {
	t.Parallel()
	p := testenv.StartPostgres(t)
	way := newRelay(t, p.Addr())
	kv := openPostgres(t, p.URL(way.addr()), newPrefix())
	for _, lost := range []bool{true, false, false, false} { // the first one makes its slot
		begin := time.Now()
		ctx, cancel := context.WithTimeout(cluster.Urgent(t.Context()), 2*vfs.BeatEvery)
		err := kv.Update(ctx, func(txn cluster.Txn) error {
			if _, err := txn.Get([]byte("a")); err != nil {
				return err
			}
			if !lost {
				lost = true
				way.lose()
			}
			return txn.Set([]byte("a"), nil)
		})
		cancel()
		t.Logf("it took %v", time.Since(begin).Round(time.Millisecond))
		if err != nil {
			t.Error(err)
		}
	}
}

// A server that is killed and started again costs time, not a commit; who asks
// while it is away for long is told so.
func TestPostgresKill(t *testing.T) {
	p := testenv.StartPostgres(t)
	store, url := newPrefix(), p.URL(p.Addr())
	clients := []cluster.KV{openPostgres(t, url, store), openPostgres(t, url, store)}
	load(t, clients, 8, func() {
		for range 3 {
			time.Sleep(time.Second)
			p.Kill()
			time.Sleep(time.Second)
			p.Start()
		}
		time.Sleep(time.Second)
	})
}

// Commits whose answers are lost are found again or made impossible.
func TestPostgresLostAnswers(t *testing.T) {
	p := testenv.StartPostgres(t)
	proxy := newLossyProxy(t, p.Addr())
	store, url := newPrefix(), p.URL(proxy.addr())
	clients := []cluster.KV{openPostgres(t, url, store), openPostgres(t, url, store)}
	proxy.losing.Store(true)
	load(t, clients, 8, func() {
		time.Sleep(10 * time.Second)
		proxy.losing.Store(false)
	})
	t.Logf("%d connections were cut with an answer", proxy.lost.Load())
	if proxy.lost.Load() == 0 {
		t.Error("no answer was lost")
	}
}

// A commit of more pairs than the server has locks takes the whole store.
func TestPostgresManyLocks(t *testing.T) {
	p := testenv.StartPostgres(t)
	store, url := newPrefix(), p.URL(p.Addr())
	clients := []cluster.KV{openPostgres(t, url, store), openPostgres(t, url, store)}
	value := []byte("v")
	load(t, clients, 4, func() {
		for round := range 10 {
			err := clients[round%2].Update(context.Background(), func(txn cluster.Txn) error {
				for i := range postgres.MaxOps {
					if err := txn.Set([]byte{'m', byte(round), byte(i >> 8), byte(i)}, value); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
	})
}

// A transaction that holds locks since it met conflicts does not wait for those of what
// it reads and writes only now: somebody who has them may wait for its own.
func TestPostgresHoldAndWait(t *testing.T) {
	p := testenv.StartPostgres(t)
	store, url := newPrefix(), p.URL(p.Addr())
	a, b := openPostgres(t, url, store), openPostgres(t, url, store)
	hot := []byte("hot")
	set := func(kv cluster.KV, keys ...[]byte) error {
		return kv.Update(t.Context(), func(txn cluster.Txn) error { return setAll(txn, keys) })
	}
	for i := range 8 { // the order of locks is that of hashes
		late := fmt.Append(nil, "late", i)
		runs, other := 0, make(chan error, 1)
		if err := a.Update(t.Context(), func(txn cluster.Txn) error {
			if _, err := txn.Get(hot); err != nil {
				return err
			}
			runs++
			switch {
			case runs <= 3: // so many take no locks
				if err := set(b, hot); err != nil {
					return err
				}
				return txn.Set(hot, nil)
			case runs == 4:
				go func() { other <- set(b, late, hot) }()
				awaitServer(t, url, "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
			}
			return setAll(txn, [][]byte{late, hot})
		}); err != nil {
			t.Error(err)
		}
		if runs < 4 {
			t.Fatalf("%d runs: no locks were held", runs)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
	}
	if n := p.Logged("deadlock detected"); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// A client that stands still while it queues for locks has them when they are free, and
// keeps nobody else from them.
func TestPostgresHoldsAndStops(t *testing.T) {
	p := testenv.StartPostgres(t)
	way := newRelay(t, p.Addr())
	store, url := newPrefix(), p.URL(p.Addr())
	a, b := openPostgres(t, p.URL(way.addr()), store), openPostgres(t, url, store)
	hot := []byte("hot")
	lock := int64(xxhash.Sum64String("ogw\x00" + store + "\x00k" + string(hot)))
	set := func(txn cluster.Txn) error { return txn.Set(hot, nil) }
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	runs, others := 0, make(chan error, 1)
	update := func() error {
		return a.Update(t.Context(), func(txn cluster.Txn) error {
			if _, err := txn.Get(hot); err != nil {
				return err
			}
			if runs++; runs <= 3 { // so many take no locks
				if err := b.Update(t.Context(), set); err != nil {
					return err
				}
			}
			if runs == 3 {
				if _, err := c.Exec(t.Context(), "SELECT pg_advisory_lock($1)", lock); err != nil {
					return err
				}
			}
			return txn.Set(hot, nil)
		})
	}
	go func() { others <- update() }()
	awaitServer(t, url, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%ogw_hold%'")
	way.cut(true, true)
	if _, err := c.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := b.Update(t.Context(), set); err != nil || time.Since(begin) > besideLimit {
		t.Errorf("beside a client that stands still: %v after %v", err, time.Since(begin))
	}
	way.cut(false, false)
	if err := <-others; err != nil {
		t.Errorf("the client that stood still: %v", err)
	}
}

// A commit that its synchronous standby does not have is not acknowledged.
func TestPostgresStandbyAway(t *testing.T) {
	t.Parallel()
	p := testenv.StartPostgres(t)
	kv := openPostgres(t, p.URL(p.Addr()), newPrefix())
	set := func(txn cluster.Txn) error { return txn.Set([]byte("a"), nil) }
	if err := kv.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	sql(t, p, "ALTER SYSTEM SET synchronous_standby_names = 'away'")
	sql(t, p, "SELECT pg_reload_conf()")
	awaitStandbyWaits(t, p.URL(p.Addr()))
	begin := time.Now()
	err := kv.Update(t.Context(), set)
	if !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("without the standby: %v after %v", err, time.Since(begin))
	}
	t.Logf("it ends after %v: %v", time.Since(begin), err)
	sql(t, p, "ALTER SYSTEM RESET synchronous_standby_names")
	sql(t, p, "SELECT pg_reload_conf()")
	if err := kv.Update(t.Context(), set); err != nil {
		t.Errorf("after nobody asks for it any more: %v", err)
	}
}

// awaitStandbyWaits returns when commits wait for a standby: the server's checkpointer
// makes them, some time after the configuration was read again.
func awaitStandbyWaits(t *testing.T, url string) {
	ctx, stop := context.WithCancel(t.Context())
	var commits sync.WaitGroup
	defer commits.Wait()
	defer stop()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	commits.Go(func() {
		defer c.Close(context.Background())
		for ctx.Err() == nil {
			if _, err := c.Exec(ctx, "SELECT pg_logical_emit_message(true, 'test', '')"); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	awaitServer(t, url, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

func setAll(txn cluster.Txn, keys [][]byte) error {
	for _, key := range keys {
		if err := txn.Set(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// awaitServer returns when a query returns true.
func awaitServer(t *testing.T, url, query string) {
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close(context.Background())
	for is := false; !is && err == nil; {
		err = c.QueryRow(t.Context(), query).Scan(&is)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestPostgresBadOptions(t *testing.T) {
	nobody := testenv.FreeAddr(t)
	for name, test := range map[string]struct {
		o    postgres.Options
		want error
		says string
	}{
		"no address":   {postgres.Options{URL: "postgres://%zz"}, cluster.ErrInvalid, "parse"},
		"long name":    {postgres.Options{Store: strings.Repeat("p", 200)}, cluster.ErrInvalid, "200 bytes"},
		"nobody there": {postgres.Options{URL: "postgres://u:secret@" + nobody + "/db"}, cluster.ErrUnavailable, "127.0.0.1"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := postgres.Open(ctx, test.o)
		cancel()
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client of a newer version, whose function is missing, opens a store beside one that reads for
// long, and keeps nobody from reading.
func TestPostgresOpenBesideReader(t *testing.T) {
	p := testenv.StartPostgres(t)
	url := p.URL(p.Addr())
	older := openPostgres(t, url, "ogw")
	set := func(txn cluster.Txn) error { return txn.Set([]byte("a"), []byte("1")) }
	if err := older.Update(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	sql(t, p, "DROP FUNCTION ogw_commits_v2")
	err := older.View(context.Background(), func(r cluster.Reader) error {
		if _, err := r.Get([]byte("a")); err != nil {
			return err
		}
		begin := time.Now()
		newer := openPostgres(t, url, "ogw")
		if took := time.Since(begin); took > besideLimit {
			t.Errorf("it is open after %v", took)
		}
		return newer.Update(context.Background(), set)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// besideLimit is far below what locks are waited for.
const besideLimit = 3 * time.Second

// Who gives up waits for no server, also where its read shares a request with others.
func TestPostgresGivesUp(t *testing.T) {
	p := testenv.StartPostgres(t)
	kv := openPostgres(t, p.URL(p.Addr()), "ogw")
	givesUp(t, kv, func() { p.Signal(syscall.SIGSTOP) }, func() { p.Signal(syscall.SIGCONT) })
}

func TestEtcdGivesUp(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	kv := openEtcd(t, newPrefix(), e.Endpoints()[0])
	givesUp(t, kv, func() { e.Signal(0, syscall.SIGSTOP) }, func() { e.Signal(0, syscall.SIGCONT) })
}

func givesUp(t *testing.T, kv cluster.KV, stop, cont func()) {
	read := func(r cluster.Reader) error {
		_, err := r.Get([]byte("a"))
		return err
	}
	if err := kv.Peek(context.Background(), read); err != nil {
		t.Fatal(err)
	}
	stop()
	defer cont()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			begin := time.Now()
			call := kv.Peek
			if i%2 == 0 {
				call = kv.View
			}
			err := call(ctx, read)
			if took := time.Since(begin); err == nil || took > besideLimit {
				t.Errorf("it ended after %v with %v", took, err)
			}
		})
	}
	wg.Wait()
}
