package clustertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// rerun runs first as a transaction, and other in the midst of its first
// attempt. It returns how often first ran because of that; attempts that the
// engine repeats for reasons of its own are not told apart.
func rerun(t *testing.T, kv cluster.KV, first func(txn cluster.Txn) error, other func(), write func(txn cluster.Txn) error) (runs int) {
	t.Helper()
	update(t, kv, func(txn cluster.Txn) error {
		runs++
		if err := first(txn); err != nil {
			return err
		}
		if runs == 1 {
			other()
		}
		return write(txn)
	})
	return runs
}

func testLostUpdate(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"n", "1"})
	var seen []byte
	runs := rerun(t, kv,
		func(txn cluster.Txn) (err error) { seen, err = txn.Get([]byte("n")); return err },
		func() { set(t, kv, pair{"n", "12"}) },
		func(txn cluster.Txn) error { return txn.Set([]byte("n"), append(seen, '3')) })
	if v := get(t, kv, "n"); string(v) != "123" || runs < 2 {
		t.Errorf("%q after %d runs", v, runs)
	}
}

func testWriteSkew(t *testing.T, kv cluster.KV) {
	// At least one of two must stay on call.
	set(t, kv, pair{"alice", "on"}, pair{"bob", "on"})
	leave := func(me, other string) func(cluster.Txn) error {
		return func(txn cluster.Txn) error {
			v, err := txn.Get([]byte(other))
			if err != nil || string(v) != "on" {
				return err
			}
			return txn.Set([]byte(me), []byte("off"))
		}
	}
	runs := 0
	update(t, kv, func(txn cluster.Txn) error {
		if err := leave("alice", "bob")(txn); err != nil {
			return err
		}
		if runs++; runs == 1 {
			update(t, kv, leave("bob", "alice"))
		}
		return nil
	})
	if a, b := get(t, kv, "alice"), get(t, kv, "bob"); string(a) == "off" && string(b) == "off" {
		t.Errorf("both left, after %d runs", runs)
	}
}

// testPhantom: of "this directory is empty, so remove it" and "create a file
// in it", one loses.
func testPhantom(t *testing.T, kv cluster.KV) {
	for _, o := range []cluster.ScanOptions{{}, {KeysOnly: true}, {Reverse: true}, {Limit: 1}, {Limit: 1, KeysOnly: true}} {
		update(t, kv, func(txn cluster.Txn) error {
			return errors.Join(txn.Set([]byte("dir"), nil), txn.Delete([]byte("dir/new")))
		})
		empty := false
		runs := rerun(t, kv,
			func(txn cluster.Txn) error {
				found, err := scan(txn, "dir/", "dir0", o)
				empty = len(found) == 0
				return err
			},
			func() { set(t, kv, pair{"dir/new", "x"}) },
			func(txn cluster.Txn) error {
				if !empty {
					return nil
				}
				return txn.Delete([]byte("dir"))
			})
		if get(t, kv, "dir") == nil || runs < 2 {
			t.Errorf("%+v: the directory of a new file was removed, %d runs", o, runs)
		}
		// A deletion in the range counts as well.
		count := 0
		runs = rerun(t, kv,
			func(txn cluster.Txn) error {
				found, err := scan(txn, "dir/", "dir0", o)
				count = len(found)
				return err
			},
			func() { update(t, kv, func(txn cluster.Txn) error { return txn.Delete([]byte("dir/new")) }) },
			func(txn cluster.Txn) error { return txn.Set([]byte("count"), []byte{byte('0' + count)}) })
		if v := get(t, kv, "count"); string(v) != "0" || runs < 2 {
			t.Errorf("%+v: counted %q, %d runs", o, v, runs)
		}
	}
}

// testPhantomBehindStop: what a stopped scan did not visit is no conflict;
// what it passed is.
func testPhantomBehindStop(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"b", ""}, pair{"d", ""}, pair{"f", ""})
	stopAt := func(txn cluster.Txn, key string) error {
		return txn.Scan([]byte("a"), []byte("z"), cluster.ScanOptions{}, func(k, _ []byte) error {
			if string(k) == key {
				return cluster.ErrStop
			}
			return nil
		})
	}
	mark := func(txn cluster.Txn) error { return txn.Set([]byte("mark"), []byte("x")) }
	for _, test := range []struct {
		scan     func(txn cluster.Txn) error
		key      string
		conflict bool
	}{
		{func(txn cluster.Txn) error { return stopAt(txn, "d") }, "c", true},
		{func(txn cluster.Txn) error { return stopAt(txn, "d") }, "d", true},
		{func(txn cluster.Txn) error { return stopAt(txn, "d") }, "e", false},
		{func(txn cluster.Txn) error { return stopAt(txn, "d") }, "f", false},
		{func(txn cluster.Txn) error {
			_, err := scan(txn, "a", "z", cluster.ScanOptions{Limit: 2})
			return err
		}, "a", true},
		{func(txn cluster.Txn) error {
			_, err := scan(txn, "a", "z", cluster.ScanOptions{Limit: 2})
			return err
		}, "e", false},
		{func(txn cluster.Txn) error {
			_, err := scan(txn, "a", "z", cluster.ScanOptions{Limit: 9})
			return err
		}, "y", true},
	} {
		attempts := 0
		for try := range 20 { // an engine may repeat for reasons of its own
			attempts = rerun(t, kv, test.scan, func() { set(t, kv, pair{test.key, fmt.Sprint(try)}) }, mark)
			if test.conflict != (attempts == 1) {
				break
			}
		}
		if test.conflict && attempts == 1 {
			t.Errorf("a write of %s within the scan was no conflict", test.key)
		}
		if !test.conflict && attempts > 1 {
			t.Errorf("a write of %s behind the scan was a conflict", test.key)
		}
		update(t, kv, func(txn cluster.Txn) error {
			return errors.Join(txn.Delete([]byte("a")), txn.Delete([]byte("c")), txn.Delete([]byte("e")), txn.Delete([]byte("y")))
		})
	}
}

func testPhantomReverse(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"b", ""}, pair{"d", ""}, pair{"f", ""})
	last := func(txn cluster.Txn) error {
		found, err := scan(txn, "a", "z", cluster.ScanOptions{Reverse: true, Limit: 1, KeysOnly: true})
		if err != nil {
			return err
		}
		return txn.Set([]byte("last"), []byte(found[0]))
	}
	// The largest key counts on; a larger one in between must be seen. "last"
	// itself lies in the range, so the scan starts before it is written.
	update(t, kv, func(txn cluster.Txn) error { return txn.Delete([]byte("last")) })
	runs := 0
	update(t, kv, func(txn cluster.Txn) error {
		runs++
		found, err := scan(txn, "a", "i", cluster.ScanOptions{Reverse: true, Limit: 1, KeysOnly: true})
		if err != nil {
			return err
		}
		if runs == 1 {
			set(t, kv, pair{"h", ""})
		}
		return txn.Set([]byte("last"), []byte(found[0]))
	})
	if v := get(t, kv, "last"); string(v) != "h" {
		t.Errorf("last is %q", v)
	}
	update(t, kv, last)
}

// testAbsentKey: a key that was read as absent and created concurrently is a
// conflict: of two exclusive creates one wins.
func testAbsentKey(t *testing.T, kv cluster.KV) {
	exists := errors.New("exists")
	for _, many := range []bool{false, true} {
		key := []byte(fmt.Sprintf("name-%v", many))
		runs := 0
		err := kv.Update(ctx, func(txn cluster.Txn) error {
			runs++
			var value []byte
			var err error
			if many {
				var values [][]byte
				values, err = txn.GetMany([][]byte{[]byte("a"), []byte("b"), []byte("c"), key})
				if err == nil {
					value = values[3]
				}
			} else {
				value, err = txn.Get(key)
			}
			if err != nil {
				return err
			}
			if value != nil {
				return exists
			}
			if runs == 1 {
				set(t, kv, pair{string(key), "other"})
			}
			return txn.Set(key, []byte("mine"))
		})
		if err != exists || string(get(t, kv, string(key))) != "other" {
			t.Errorf("many %v: %v after %d runs, value %q", many, err, runs, get(t, kv, string(key)))
		}
	}
}

// testBlindWrites: writes without reads never conflict, also with reads of
// other keys and with each other.
func testBlindWrites(t *testing.T, kv cluster.KV) {
	attempts := 0
	for range 20 { // an engine may repeat for reasons of its own
		attempts = rerun(t, kv,
			func(txn cluster.Txn) error { _, err := txn.Get([]byte("parent")); return err },
			func() { set(t, kv, pair{"times", "1"}, pair{"entry1", ""}) },
			func(txn cluster.Txn) error {
				return errors.Join(txn.Set([]byte("times"), []byte("2")), txn.Set([]byte("entry2"), nil))
			})
		if attempts == 1 {
			break
		}
	}
	if attempts != 1 {
		t.Error("a blind write conflicted")
	}
	if v := get(t, kv, "times"); string(v) != "2" {
		t.Errorf("the later commit does not count: %q", v)
	}
}

// testDisjointCreates creates many entries in one directory at once; all are
// there at the end.
func testDisjointCreates(t *testing.T, kv cluster.KV) {
	const workers, each = 8, 25
	set(t, kv, pair{"dir", ""})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				key := fmt.Appendf(nil, "dir/%d-%d", w, i)
				if err := kv.Update(ctx, func(txn cluster.Txn) error {
					if _, err := txn.GetMany([][]byte{[]byte("dir"), key}); err != nil {
						return err
					}
					return errors.Join(txn.Set(key, nil), txn.Set([]byte("times"), key))
				}); err != nil {
					t.Errorf("create: %v", err)
				}
			}
		})
	}
	wg.Wait()
	view(t, kv, func(r cluster.Reader) error {
		found, err := scan(r, "dir/", "dir0", cluster.ScanOptions{KeysOnly: true})
		if len(found) != workers*each {
			t.Errorf("%d entries, want %d", len(found), workers*each)
		}
		return err
	})
}

func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// testCounter: a hot counter is exact.
func testCounter(t *testing.T, kv cluster.KV) {
	const workers, each = 8, 25
	var wg sync.WaitGroup
	var runs atomic.Int64
	for range workers {
		wg.Go(func() {
			for range each {
				if err := kv.Update(ctx, func(txn cluster.Txn) error {
					runs.Add(1)
					v, err := txn.Get([]byte("n"))
					if err != nil {
						return err
					}
					return txn.Set([]byte("n"), binary.BigEndian.AppendUint64(nil, number(v)+1))
				}); err != nil {
					t.Errorf("increment: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := number(get(t, kv, "n")); n != workers*each {
		t.Errorf("counted %d, want %d", n, workers*each)
	}
	t.Logf("%d runs for %d increments", runs.Load(), workers*each)
}

// testTransfers moves amounts between accounts while readers check that the
// sum never changes: atomic commits and consistent snapshots.
func testTransfers(t *testing.T, kv cluster.KV) {
	const accounts, amount, workers, each = 10, 100, 4, 30
	key := func(i int) []byte { return fmt.Appendf(nil, "account%d", i) }
	update(t, kv, func(txn cluster.Txn) error {
		for i := range accounts {
			if err := txn.Set(key(i), binary.BigEndian.AppendUint64(nil, amount)); err != nil {
				return err
			}
		}
		return nil
	})
	sum := func(r cluster.Reader) (total uint64, err error) {
		err = r.Scan([]byte("account"), []byte("accounu"), cluster.ScanOptions{}, func(_, v []byte) error {
			total += number(v)
			return nil
		})
		return total, err
	}
	check := func(r cluster.Reader) error {
		total, err := sum(r)
		if err == nil && total != accounts*amount {
			t.Errorf("the sum is %d", total)
		}
		return err
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := kv.View(ctx, check); err != nil {
					t.Errorf("View: %v", err)
				}
			}
		}
	})
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 0))
			for range each {
				a, b := rng.IntN(accounts), rng.IntN(accounts)
				if a == b {
					continue
				}
				if err := kv.Update(ctx, func(txn cluster.Txn) error {
					values, err := txn.GetMany([][]byte{key(a), key(b)})
					if err != nil || number(values[0]) == 0 {
						return err
					}
					return errors.Join(
						txn.Set(key(a), binary.BigEndian.AppendUint64(nil, number(values[0])-1)),
						txn.Set(key(b), binary.BigEndian.AppendUint64(nil, number(values[1])+1)))
				}); err != nil {
					t.Errorf("transfer: %v", err)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	readers.Wait()
	view(t, kv, check)
}

// testRealTime: a transaction sees all that was acknowledged before it began.
func testRealTime(t *testing.T, kv cluster.KV) {
	var acked atomic.Uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(1); i <= 100; i++ {
			if err := kv.Update(ctx, func(txn cluster.Txn) error {
				return txn.Set([]byte("n"), binary.BigEndian.AppendUint64(nil, i))
			}); err != nil {
				t.Errorf("Update: %v", err)
				return
			}
			acked.Store(i)
		}
	})
	wg.Go(func() {
		for acked.Load() < 100 && !t.Failed() {
			before := acked.Load()
			if err := kv.View(ctx, func(r cluster.Reader) error {
				v, err := r.Get([]byte("n"))
				if number(v) < before {
					t.Errorf("read %d after %d was acknowledged", number(v), before)
				}
				return err
			}); err != nil {
				t.Errorf("View: %v", err)
			}
		}
	})
	wg.Wait()
}
