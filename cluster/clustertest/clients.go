package clustertest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// TestClients runs the contract of cluster.KV with two clients of one store.
// open returns two of a fresh, empty store each time.
func TestClients(t *testing.T, open func(t *testing.T) (a, b cluster.KV)) {
	t.Run("InTurns", func(t *testing.T) {
		TestKV(t, func(t *testing.T) cluster.KV {
			a, b := open(t)
			return &inTurns{clients: [2]cluster.KV{a, b}}
		})
	})
	t.Run("AtOnce", func(t *testing.T) {
		a, b := open(t)
		testAtOnce(t, a, b)
	})
	t.Run("HandOver", func(t *testing.T) {
		a, b := open(t)
		testHandOver(t, a, b)
	})
	t.Run("ExpectBaton", func(t *testing.T) {
		a, b := open(t)
		testExpectBaton(t, a, b)
	})
	t.Run("Crowd", func(t *testing.T) {
		a, b := open(t)
		testCrowd(t, a, b)
	})
	t.Run("OnDuty", func(t *testing.T) {
		a, b := open(t)
		testOnDuty(t, a, b)
	})
	t.Run("Blind", func(t *testing.T) {
		a, b := open(t)
		testBlind(t, a, b)
	})
	t.Run("OtherClosed", func(t *testing.T) {
		a, b := open(t)
		testOtherClosed(t, a, b)
	})
}

// TestBlobClients runs the contract of cluster.Blobs with two clients of one store,
// which count claims. open returns two of a fresh, empty store each time.
func TestBlobClients(t *testing.T, open func(t *testing.T) (a, b cluster.Blobs)) {
	t.Run("InTurns", func(t *testing.T) {
		TestBlobs(t, func(t *testing.T) cluster.Blobs {
			a, b := open(t)
			return &blobsInTurns{clients: [2]cluster.Blobs{a, b}}
		})
	})
	t.Run("ClaimHandOver", func(t *testing.T) {
		a, b := open(t)
		testClaimHandOver(t, a, b)
	})
	t.Run("ClaimAtOnce", func(t *testing.T) {
		a, b := open(t)
		testClaimAtOnce(t, a, b)
	})
	t.Run("ClaimOfTwoStores", func(t *testing.T) {
		for range 5 {
			a, b := open(t)
			testClaimOfTwoStores(t, a, b)
		}
	})
}

// inTurns is two clients as one: every second call goes to the other.
type inTurns struct {
	clients [2]cluster.KV
	calls   atomic.Uint64
}

func (k *inTurns) next() cluster.KV { return k.clients[k.calls.Add(1)%2] }

func (k *inTurns) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.next().View(ctx, fn)
}
func (k *inTurns) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.next().Peek(ctx, fn)
}
func (k *inTurns) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return k.next().Update(ctx, fn)
}
func (k *inTurns) Sync(ctx context.Context) error { return k.next().Sync(ctx) }
func (k *inTurns) Erase(ctx context.Context, ranges ...cluster.KeyRange) error {
	return k.next().Erase(ctx, ranges...)
}
func (k *inTurns) Limits() cluster.Limits { return k.clients[0].Limits() }
func (k *inTurns) Close() error           { return errors.Join(k.clients[0].Close(), k.clients[1].Close()) }

// testAtOnce: increments of one counter, and new members of one range whose
// number each transaction counts, from both clients at once.
func testAtOnce(t *testing.T, a, b cluster.KV) {
	const workers, rounds = 4, 15
	var wg sync.WaitGroup
	for w := range workers {
		kv := [2]cluster.KV{a, b}[w%2]
		wg.Go(func() {
			for i := range rounds {
				if err := countUp(kv, fmt.Sprintf("m%d/%d", w, i)); err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i, kv := range []cluster.KV{a, b} {
		if n := number(get(t, kv, "n")); n != workers*rounds {
			t.Errorf("client %d: the counter is %d, want %d", i, n, workers*rounds)
		}
	}
}

// countUp adds a member, and holds the counter to the number of members.
func countUp(kv cluster.KV, member string) error {
	return kv.Update(ctx, func(txn cluster.Txn) error {
		members := uint64(0)
		if err := txn.Scan([]byte("m"), []byte("n"), cluster.ScanOptions{KeysOnly: true}, func(_, _ []byte) error {
			members++
			return nil
		}); err != nil {
			return err
		}
		v, err := txn.Get([]byte("n"))
		if err != nil {
			return err
		}
		n := number(v)
		if n != members {
			return fmt.Errorf("%d members, but the counter is %d", members, n)
		}
		if err := txn.Set([]byte(member), nil); err != nil {
			return err
		}
		return txn.Set([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1))
	})
}

// testHandOver: what one client was answered, the other sees at once, by each
// kind of read, and expects.
func testHandOver(t *testing.T, a, b cluster.KV) {
	from, to := a, b
	for i := range 100 {
		want := fmt.Sprint(i)
		set(t, from, pair{"k", want})
		reads := map[string]func(func(cluster.Reader) error) error{
			"View": func(fn func(cluster.Reader) error) error { return to.View(ctx, fn) },
			"Peek": func(fn func(cluster.Reader) error) error { return to.Peek(ctx, fn) },
			"Update": func(fn func(cluster.Reader) error) error {
				return to.Update(ctx, func(txn cluster.Txn) error { return fn(txn) })
			},
		}
		update(t, to, func(txn cluster.Txn) error {
			return errors.Join(txn.Expect([]byte("k"), []byte(want)), txn.Set([]byte("seen"), nil))
		})
		if i > 0 {
			refuses(t, to, func(txn cluster.Txn) error { return txn.Expect([]byte("k"), fmt.Append(nil, i-1)) })
		}
		for name, read := range reads {
			var got []byte
			err := read(func(r cluster.Reader) (err error) {
				if got, err = r.Get([]byte("k")); err == nil && string(got) != want {
					err = errors.New("a run of old reads counted")
				}
				return err
			})
			if err != nil || string(got) != want {
				t.Fatalf("%s after hand-over %d: %q %v", name, i, got, err)
			}
		}
		from, to = to, from
	}
}

// testOtherClosed: the end of one client takes nothing from the other.
func testOtherClosed(t *testing.T, a, b cluster.KV) {
	set(t, a, pair{"a", "1"})
	set(t, b, pair{"b", "1"})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	set(t, b, pair{"b", "2"})
	view(t, b, func(r cluster.Reader) error {
		wantScan(t, r, "", "", cluster.ScanOptions{}, "a=1", "b=2")
		return nil
	})
}
