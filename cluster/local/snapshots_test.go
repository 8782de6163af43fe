package local

import (
	"fmt"
	"sync"
	"testing"

	"ogw/cluster"
)

// Readers that begin between two commits share a snapshot, none outlives its
// readers once something was committed, and none is older than what was
// acknowledged before it was taken.
func TestSnapshotsAreShared(t *testing.T) {
	c, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kv := c.KV.(*KV)
	set := func(value string) {
		t.Helper()
		err := kv.Update(cluster.Relaxed(t.Context()), func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte(value)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	a, b := kv.snapshots.acquire(), kv.snapshots.acquire()
	if a != b {
		t.Error("two snapshots of one version")
	}
	set("2")
	if kv.snapshots.latest != nil {
		t.Error("a snapshot without a future is kept")
	}
	fresh := kv.snapshots.acquire()
	for snap, want := range map[*snapshot]string{a: "1", fresh: "2"} {
		if got, _, err := lookup(snap, []byte("k"), false); err != nil || string(got) != want {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}
	kv.snapshots.release(a)
	kv.snapshots.release(b)
	kv.snapshots.release(fresh)
	if a.users != 0 || fresh.users != 1 {
		t.Errorf("%d and %d users are left", a.users, fresh.users)
	}
}

// A commit that was acknowledged is read, whatever others read concurrently.
func TestSnapshotsShowWhatWasAcknowledged(t *testing.T) {
	c, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := cluster.Relaxed(t.Context())
	const workers, rounds = 4, 500
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			key := []byte{'k', byte(w)}
			for i := range rounds {
				want := fmt.Sprint(i)
				var got []byte
				err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set(key, []byte(want)) })
				if err == nil {
					err = c.KV.View(ctx, func(r cluster.Reader) (err error) { got, err = r.Get(key); return err })
				}
				if err != nil || string(got) != want {
					t.Errorf("read %q after writing %q: %v", got, want, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
