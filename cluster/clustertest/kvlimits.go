package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ogw/cluster"
)

// testScanOwnWritesRandom compares scans over own writes with a sorted list.
func testScanOwnWritesRandom(t *testing.T, kv cluster.KV) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	model := map[string]string{}
	key := func() string { return fmt.Sprintf("%02d", rng.IntN(40)) }
	for range 60 {
		next := map[string]string{}
		steps := rng.Uint64()
		update(t, kv, func(txn cluster.Txn) error {
			rng = rand.New(rand.NewPCG(steps, 1)) // a retry does the same
			clear(next)
			for k, v := range model {
				next[k] = v
			}
			for range rng.IntN(12) {
				k := key()
				if rng.IntN(3) == 0 {
					delete(next, k)
					if err := txn.Delete([]byte(k)); err != nil {
						return err
					}
					continue
				}
				next[k] = fmt.Sprint(rng.IntN(100))
				if err := txn.Set([]byte(k), []byte(next[k])); err != nil {
					return err
				}
			}
			for range 4 {
				o := cluster.ScanOptions{Reverse: rng.IntN(2) == 0, Limit: rng.IntN(6)}
				start, end := key(), key()
				wantScan(t, txn, start, end, o, expectScan(next, start, end, o)...)
			}
			return nil
		})
		model = next
	}
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "0", "9", cluster.ScanOptions{}, expectScan(model, "0", "9", cluster.ScanOptions{})...)
		return nil
	})
}

func expectScan(model map[string]string, start, end string, o cluster.ScanOptions) (want []string) {
	for k, v := range model {
		if k >= start && k < end {
			want = append(want, k+"="+v)
		}
	}
	slices.Sort(want)
	if o.Reverse {
		slices.Reverse(want)
	}
	if o.Limit > 0 && len(want) > o.Limit {
		want = want[:o.Limit]
	}
	return want
}

func testInvalid(t *testing.T, kv cluster.KV) {
	long := bytes.Repeat([]byte("k"), cluster.MaxKeyBytes+1)
	for _, key := range [][]byte{nil, {}, {0xff}, {0xff, 'b'}, long} {
		for name, fn := range map[string]func(cluster.Txn) error{
			"Get":     func(txn cluster.Txn) error { _, err := txn.Get(key); return err },
			"GetMany": func(txn cluster.Txn) error { _, err := txn.GetMany([][]byte{[]byte("ok"), key}); return err },
			"Set":     func(txn cluster.Txn) error { return txn.Set(key, nil) },
			"Delete":  func(txn cluster.Txn) error { return txn.Delete(key) },
			"Expect":  func(txn cluster.Txn) error { return txn.Expect(key, nil) },
		} {
			if err := kv.Update(ctx, fn); !errors.Is(err, cluster.ErrInvalid) {
				t.Errorf("%s with a key of %d bytes: %v", name, len(key), err)
			}
		}
	}
	big := make([]byte, cluster.MaxValueBytes+1)
	err := kv.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), big) })
	if !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("a value too long: %v", err)
	}
	// The longest legal ones.
	update(t, kv, func(txn cluster.Txn) error { return txn.Set(long[:cluster.MaxKeyBytes], big[:cluster.MaxValueBytes]) })
	if v := get(t, kv, string(long[:cluster.MaxKeyBytes])); len(v) != cluster.MaxValueBytes {
		t.Errorf("longest value: %d bytes", len(v))
	}
}

// testLimits: over a limit, a transaction fails whole, even if its function
// pays no attention.
func testLimits(t *testing.T, kv cluster.KV) {
	limits := kv.Limits()
	if limits.Ops > 0 {
		for name, fn := range map[string]func(cluster.Txn, int) error{
			"Set":     func(txn cluster.Txn, i int) error { return txn.Set(fmt.Appendf(nil, "%06d", i), nil) },
			"Delete":  func(txn cluster.Txn, i int) error { return txn.Delete(fmt.Appendf(nil, "%06d", i)) },
			"Expect":  func(txn cluster.Txn, i int) error { return txn.Expect([]byte("none"), nil) },
			"Get":     func(txn cluster.Txn, i int) error { _, err := txn.Get([]byte("k")); return err },
			"GetMany": func(txn cluster.Txn, i int) error { _, err := txn.GetMany([][]byte{[]byte("k")}); return err },
			"Scan": func(txn cluster.Txn, i int) error {
				return txn.Scan(nil, nil, cluster.ScanOptions{}, func(_, _ []byte) error { return nil })
			},
		} {
			try := func(n int) error {
				return kv.Update(ctx, func(txn cluster.Txn) error {
					for i := range n {
						_ = fn(txn, i)
					}
					return nil
				})
			}
			if err := try(limits.Ops + 1); !errors.Is(err, cluster.ErrTxTooLarge) {
				t.Errorf("%d times %s: %v", limits.Ops+1, name, err)
			}
			if name == "Set" {
				view(t, kv, func(r cluster.Reader) error {
					wantScan(t, r, "", "", cluster.ScanOptions{})
					return nil
				})
			}
			if err := try(limits.Ops); err != nil {
				t.Errorf("%d times %s: %v", limits.Ops, name, err)
			}
		}
		update(t, kv, func(txn cluster.Txn) error { return txn.Delete([]byte("none")) })
	}
	if limits.Bytes > 0 {
		value := make([]byte, cluster.MaxValueBytes)
		n := limits.Bytes/len(value) + 1
		err := kv.Update(ctx, func(txn cluster.Txn) error {
			for i := range n {
				_ = txn.Set(fmt.Appendf(nil, "big%06d", i), value)
			}
			return nil
		})
		if !errors.Is(err, cluster.ErrTxTooLarge) {
			t.Errorf("%d bytes: %v", n*len(value), err)
		}
		view(t, kv, func(r cluster.Reader) error {
			wantScan(t, r, "big", "bih", cluster.ScanOptions{KeysOnly: true})
			return nil
		})
	}
}

// testLargeTransaction writes as much as the limits allow, or a lot.
func testLargeTransaction(t *testing.T, kv cluster.KV) {
	limits := kv.Limits()
	n := 20000
	if limits.Ops > 0 {
		n = min(n, limits.Ops)
	}
	size := 1000
	if limits.Bytes > 0 {
		size = min(size, limits.Bytes/n-16)
	}
	value := make([]byte, size)
	update(t, kv, func(txn cluster.Txn) error {
		for i := range n {
			if err := txn.Set(fmt.Appendf(nil, "key%06d", (i*7919)%n), value); err != nil {
				return err
			}
		}
		return nil
	})
	count := 0
	view(t, kv, func(r cluster.Reader) error {
		count = 0
		return r.Scan(nil, nil, cluster.ScanOptions{}, func(_, v []byte) error {
			if len(v) != size {
				return fmt.Errorf("value of %d bytes", len(v))
			}
			count++
			return nil
		})
	})
	distinct := map[int]bool{}
	for i := range n {
		distinct[(i*7919)%n] = true
	}
	if count != len(distinct) {
		t.Errorf("%d keys, want %d", count, len(distinct))
	}
}

func testUseAfterEnd(t *testing.T, kv cluster.KV) {
	var kept cluster.Txn
	update(t, kv, func(txn cluster.Txn) error {
		kept = txn
		return txn.Set([]byte("a"), []byte("1"))
	})
	if err := kept.Set([]byte("a"), []byte("2")); err == nil {
		t.Error("Set after the end succeeded")
	}
	if err := kept.Expect([]byte("a"), []byte("1")); err == nil {
		t.Error("Expect after the end succeeded")
	}
	if v := get(t, kv, "a"); string(v) != "1" {
		t.Errorf("value %q", v)
	}
}

func testCancelled(t *testing.T, kv cluster.KV) {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	ran := false
	err := kv.Update(cancelled, func(txn cluster.Txn) error {
		ran = true
		return txn.Set([]byte("a"), nil)
	})
	if !errors.Is(err, context.Canceled) || ran {
		t.Errorf("Update: %v, ran %v", err, ran)
	}
	err = kv.View(cancelled, func(cluster.Reader) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("View: %v", err)
	}
	if v := get(t, kv, "a"); v != nil {
		t.Errorf("a cancelled Update wrote %q", v)
	}

	// A transaction that always conflicts ends with its context.
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err = kv.Update(short, func(txn cluster.Txn) error {
		if _, err := txn.Get([]byte("hot")); err != nil {
			return err
		}
		set(t, kv, pair{"hot", time.Now().String()})
		return txn.Set([]byte("mine"), nil)
	})
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("endless conflict: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func testRelaxed(t *testing.T, kv cluster.KV) {
	relaxed := cluster.Relaxed(ctx)
	for i := range 20 {
		key := fmt.Sprintf("k%02d", i)
		if err := kv.Update(relaxed, func(txn cluster.Txn) error { return txn.Set([]byte(key), []byte("v")) }); err != nil {
			t.Fatal(err)
		}
		// Visible to all at once, to strict readers and to later writers.
		c := ctx
		if i%2 == 0 {
			c = relaxed
		}
		if err := kv.View(c, func(r cluster.Reader) error {
			v, err := r.Get([]byte(key))
			if string(v) != "v" {
				t.Errorf("%s: %q", key, v)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Sync(ctx); err != nil {
		t.Errorf("Sync: %v", err)
	}
	// Relaxed transactions are serializable too.
	attempts := 0
	if err := kv.Update(relaxed, func(txn cluster.Txn) error {
		attempts++
		v, err := txn.Get([]byte("k00"))
		if err != nil {
			return err
		}
		if attempts == 1 {
			if err := kv.Update(relaxed, func(txn cluster.Txn) error { return txn.Set([]byte("k00"), []byte("w")) }); err != nil {
				return err
			}
		}
		return txn.Set([]byte("copy"), v)
	}); err != nil {
		t.Fatal(err)
	}
	if v := get(t, kv, "copy"); string(v) != "w" {
		t.Errorf("copied %q", v)
	}
}

func testClosed(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"a", "1"})
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		left <- kv.View(ctx, func(r cluster.Reader) error {
			close(entered)
			<-leave
			v, err := r.Get([]byte("a"))
			if err == nil && string(v) != "1" {
				err = fmt.Errorf("read %q", v)
			}
			return err
		})
	}()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- kv.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait for the View: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if err := <-left; err != nil {
		t.Errorf("View during Close: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	nothing := func(cluster.Txn) error { t.Error("ran on a closed engine"); return nil }
	if err := kv.Update(ctx, nothing); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("Update: %v", err)
	}
	if err := kv.View(ctx, func(cluster.Reader) error { return nothing(nil) }); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("View: %v", err)
	}
	if err := kv.Sync(ctx); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("Sync: %v", err)
	}
	if err := kv.Close(); !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}
