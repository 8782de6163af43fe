package engines

import (
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/postgres"
	"ogw/integration/testenv"
)

// lostLimit is what a request may take whose connection was lost: far below the bound of one.
const lostLimit = 7 * time.Second

// Connections that end just after they were used, as with a restart of the server, or are lost
// without a word, cost who asks next seconds at the most, and no error: what a request reads first
// is asked again by one that works.
func TestPostgresLostInUse(t *testing.T) {
	t.Parallel()
	p := testenv.StartPostgres(t)
	way := newRelay(t, p.Addr())
	kv := openPostgres(t, p.URL(way.addr()), newPrefix())
	for name, call := range firstReads(t, kv) {
		t.Run(name+" ended", func(t *testing.T) { afterLoss(t, kv, way.reset, besideLimit, call) })
		// A scan may take long, and a commit has an outcome: those connections the kernel ends.
		if name == "Peek" || name == "View" {
			t.Run(name+" lost", func(t *testing.T) { afterLoss(t, kv, way.lose, lostLimit, call) })
		}
	}
}

// firstReads are calls that begin with a read.
func firstReads(t *testing.T, kv *postgres.KV) map[string]func() error {
	key := []byte("a")
	get := func(r cluster.Reader) error {
		_, err := r.Get(key)
		return err
	}
	return map[string]func() error{
		"Peek": func() error { return kv.Peek(t.Context(), get) },
		"View": func() error { return kv.View(t.Context(), get) },
		"scan": func() error {
			return kv.View(t.Context(), func(r cluster.Reader) error {
				return r.Scan(key, []byte("b"), cluster.ScanOptions{}, func(_, _ []byte) error { return nil })
			})
		},
		"Update": func() error {
			return kv.Update(t.Context(), func(txn cluster.Txn) error {
				if err := get(txn); err != nil {
					return err
				}
				return txn.Set(key, []byte("1"))
			})
		},
	}
}

// afterLoss calls after several connections were used and lost.
func afterLoss(t *testing.T, kv *postgres.KV, lose func(), limit time.Duration, call func() error) {
	calls := firstReads(t, kv)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if err := calls["View"](); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := calls["Update"](); err != nil {
		t.Fatal(err)
	}
	lose()
	begin := time.Now()
	err := call()
	took := time.Since(begin).Round(time.Millisecond)
	if t.Logf("it took %v", took); err != nil || took > limit {
		t.Errorf("%v after %v", err, took)
	}
}
