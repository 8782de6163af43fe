package engines

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/postgres"
	"ogw/integration/testenv"
)

func openPostgres(t *testing.T, url, store string) *postgres.KV {
	t.Helper()
	kv, err := postgres.Open(context.Background(), postgres.Options{URL: url, Store: store})
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
