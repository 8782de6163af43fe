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

// refusedRuns are those after which a transaction counts as refused.
const refusedRuns = 3

var errRefused = errors.New("refused")

// tried runs a transaction that expects something and writes a pair, and
// returns errRefused, without a trace of it, if it had to run refusedRuns times.
func tried(kv cluster.KV, fn func(cluster.Txn) error) error {
	runs := 0
	return kv.Update(ctx, func(txn cluster.Txn) error {
		if runs++; runs > refusedRuns {
			return errRefused
		}
		return errors.Join(fn(txn), txn.Set([]byte("written"), nil))
	})
}

// refuses holds kv to refuse what fn expects.
func refuses(t *testing.T, kv cluster.KV, fn func(cluster.Txn) error) {
	t.Helper()
	update(t, kv, func(txn cluster.Txn) error { return txn.Delete([]byte("written")) })
	if err := tried(kv, fn); !errors.Is(err, errRefused) {
		t.Errorf("what is not there was expected, and the transaction ended with %v", err)
	}
	if v := get(t, kv, "written"); v != nil {
		t.Error("a transaction that was refused has written")
	}
}

// testExpect: a value is not another one, nor an absent one; what the
// transaction writes itself does not count.
func testExpect(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"k", "v"}, pair{"empty", ""})
	values := map[string][]byte{"nil": nil, "empty": {}, "v": []byte("v"), "v and more": []byte("vv")}
	for key, is := range map[string]string{"k": "v", "empty": "empty", "none": "nil"} {
		for name, value := range values {
			expect := func(txn cluster.Txn) error { return txn.Expect([]byte(key), value) }
			if name != is {
				refuses(t, kv, expect)
			} else {
				update(t, kv, func(txn cluster.Txn) error { return errors.Join(expect(txn), txn.Set([]byte("written"), nil)) })
			}
		}
	}
	expect := func(txn cluster.Txn, value string) error { return txn.Expect([]byte("k"), []byte(value)) }
	refuses(t, kv, func(txn cluster.Txn) error {
		return errors.Join(txn.Set([]byte("k"), []byte("own")), expect(txn, "own"))
	})
	refuses(t, kv, func(txn cluster.Txn) error { return errors.Join(expect(txn, "v"), expect(txn, "w")) })
	update(t, kv, func(txn cluster.Txn) error { return errors.Join(txn.Delete([]byte("k")), expect(txn, "v")) })
	update(t, kv, func(txn cluster.Txn) error {
		return errors.Join(txn.Expect([]byte("k"), nil), txn.Set([]byte("k"), []byte("w")))
	})
	var read []byte // by the run that committed
	update(t, kv, func(txn cluster.Txn) (err error) {
		read, err = txn.Get([]byte("k"))
		return errors.Join(err, expect(txn, "w"), txn.Set([]byte("k"), []byte("x")))
	})
	if string(read) != "w" {
		t.Errorf("read %q of what was expected", read)
	}
	if v := get(t, kv, "k"); string(v) != "x" {
		t.Errorf("the pair is %q", v)
	}
	// Nothing was written, so that nothing is compared.
	update(t, kv, func(txn cluster.Txn) error { return expect(txn, "another") })
}

// testExpectChanged: what is expected holds at the commit, not before it.
func testExpectChanged(t *testing.T, kv cluster.KV) {
	k := []byte("k")
	for name, test := range map[string]struct {
		before, now []byte // of k; nil: absent
	}{
		"replaced": {[]byte("v"), []byte("w")},
		"removed":  {[]byte("v"), nil},
		"created":  {nil, []byte{}},
	} {
		put := func(v []byte) {
			update(t, kv, func(txn cluster.Txn) error {
				if v == nil {
					return txn.Delete(k)
				}
				return txn.Set(k, v)
			})
		}
		put(test.before)
		want := test.before
		runs := rerun(t, kv,
			func(txn cluster.Txn) error { return txn.Expect(k, want) },
			func() { put(test.now) },
			func(txn cluster.Txn) error {
				want = test.now // the next run knows
				return txn.Set([]byte("mark"), nil)
			})
		if runs < 2 {
			t.Errorf("a pair was %s, and the transaction that expected it as it was committed", name)
		}
	}
	// It has the value again: as good as ever.
	set(t, kv, pair{"k", "v"})
	rerun(t, kv,
		func(txn cluster.Txn) error { return txn.Expect(k, []byte("v")) },
		func() { set(t, kv, pair{"k", "w"}); set(t, kv, pair{"k", "v"}) },
		func(txn cluster.Txn) error { return txn.Set([]byte("mark"), nil) })
}

// testExpectMany: each of as many as a transaction may expect is compared.
func testExpectMany(t *testing.T, kv cluster.KV) {
	n := 200
	if ops := kv.Limits().Ops; ops > 0 {
		n = min(n, ops-2)
	}
	update(t, kv, func(txn cluster.Txn) error {
		var errs []error
		for i := range n {
			errs = append(errs, txn.Set(fmt.Appendf(nil, "k%d", i), []byte{byte(i)}))
		}
		return errors.Join(errs...)
	})
	for _, wrong := range []int{-1, 0, n / 2, n - 1} {
		expect := func(txn cluster.Txn) error {
			var errs []error
			for i := range n {
				value := []byte{byte(i)}
				if i == wrong {
					value[0]++
				}
				errs = append(errs, txn.Expect(fmt.Appendf(nil, "k%d", i), value))
			}
			return errors.Join(errs...)
		}
		if wrong >= 0 {
			refuses(t, kv, expect)
			continue
		}
		update(t, kv, func(txn cluster.Txn) error { return errors.Join(expect(txn), txn.Set([]byte("written"), nil)) })
	}
}
