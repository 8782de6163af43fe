package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ogw/cluster"
)

// TestKV runs the whole contract of cluster.KV.
func TestKV(t *testing.T, open func(t *testing.T) cluster.KV) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, kv cluster.KV)
	}{
		{"GetSetDelete", testGetSetDelete},
		{"EmptyValue", testEmptyValue},
		{"ValuesStay", testValuesStay},
		{"Head", testHead},
		{"GetMany", testGetMany},
		{"ScanOrder", testScanOrder},
		{"ScanOptions", testScanOptions},
		{"ScanBounds", testScanBounds},
		{"ScanStop", testScanStop},
		{"ReadYourWrites", testReadYourWrites},
		{"ScanOwnWrites", testScanOwnWrites},
		{"ScanOwnWritesRandom", testScanOwnWritesRandom},
		{"Rollback", testRollback},
		{"ErrorPassthrough", testErrorPassthrough},
		{"Snapshot", testSnapshot},
		{"Invalid", testInvalid},
		{"Limits", testLimits},
		{"LargeTransaction", testLargeTransaction},
		{"UseAfterEnd", testUseAfterEnd},
		{"Cancelled", testCancelled},
		{"Relaxed", testRelaxed},
		{"Erase", testErase},
		{"LostUpdate", testLostUpdate},
		{"WriteSkew", testWriteSkew},
		{"Phantom", testPhantom},
		{"PhantomBehindStop", testPhantomBehindStop},
		{"PhantomReverse", testPhantomReverse},
		{"AbsentKey", testAbsentKey},
		{"BlindWrites", testBlindWrites},
		{"DisjointCreates", testDisjointCreates},
		{"Counter", testCounter},
		{"Transfers", testTransfers},
		{"RealTime", testRealTime},
		{"Expect", testExpect},
		{"ExpectChanged", testExpectChanged},
		{"ExpectMany", testExpectMany},
		{"Peek", testPeek},
		{"ScanThenGet", testScanThenGet},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var ctx = context.Background()

type pair struct{ key, value string }

func update(t *testing.T, kv cluster.KV, fn func(cluster.Txn) error) {
	t.Helper()
	if err := kv.Update(ctx, fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t *testing.T, kv cluster.KV, fn func(cluster.Reader) error) {
	t.Helper()
	if err := kv.View(ctx, fn); err != nil {
		t.Fatalf("View: %v", err)
	}
}

func set(t *testing.T, kv cluster.KV, pairs ...pair) {
	t.Helper()
	update(t, kv, func(txn cluster.Txn) error {
		for _, p := range pairs {
			if err := txn.Set([]byte(p.key), []byte(p.value)); err != nil {
				return err
			}
		}
		return nil
	})
}

func get(t *testing.T, kv cluster.KV, key string) (value []byte) {
	t.Helper()
	view(t, kv, func(r cluster.Reader) (err error) {
		value, err = r.Get([]byte(key))
		return err
	})
	return value
}

// scan collects "key=value" (or "key" with KeysOnly) in the order of visits.
func scan(r cluster.Reader, start, end string, o cluster.ScanOptions) (found []string, err error) {
	var from, to []byte
	if start != "" {
		from = []byte(start)
	}
	if end != "" {
		to = []byte(end)
	}
	err = r.Scan(from, to, o, func(key, value []byte) error {
		if o.KeysOnly {
			if value != nil {
				return errors.New("a value in a scan of keys")
			}
			found = append(found, string(key))
			return nil
		}
		found = append(found, fmt.Sprintf("%s=%s", key, value))
		return nil
	})
	return found, err
}

func wantScan(t *testing.T, r cluster.Reader, start, end string, o cluster.ScanOptions, want ...string) {
	t.Helper()
	got, err := scan(r, start, end, o)
	if err != nil {
		t.Errorf("Scan(%q, %q, %+v): %v", start, end, o, err)
	} else if !slices.Equal(got, want) {
		t.Errorf("Scan(%q, %q, %+v) = %q, want %q", start, end, o, got, want)
	}
}

func testGetSetDelete(t *testing.T, kv cluster.KV) {
	if v := get(t, kv, "a"); v != nil {
		t.Errorf("absent key: %q", v)
	}
	set(t, kv, pair{"a", "1"}, pair{"b", "2"})
	set(t, kv, pair{"a", "3"})
	if v := get(t, kv, "a"); string(v) != "3" {
		t.Errorf("replaced value: %q", v)
	}
	update(t, kv, func(txn cluster.Txn) error {
		return errors.Join(txn.Delete([]byte("a")), txn.Delete([]byte("never")))
	})
	if v := get(t, kv, "a"); v != nil {
		t.Errorf("deleted key: %q", v)
	}
	if v := get(t, kv, "b"); string(v) != "2" {
		t.Errorf("other key: %q", v)
	}
}

func testEmptyValue(t *testing.T, kv cluster.KV) {
	update(t, kv, func(txn cluster.Txn) error {
		if err := errors.Join(txn.Set([]byte("e"), []byte{}), txn.Set([]byte("n"), nil)); err != nil {
			return err
		}
		for _, key := range []string{"e", "n"} {
			if v, err := txn.Get([]byte(key)); err != nil || v == nil || len(v) != 0 {
				t.Errorf("own %s: %#v, %v", key, v, err)
			}
		}
		return nil
	})
	view(t, kv, func(r cluster.Reader) error {
		many, err := r.GetMany([][]byte{[]byte("e"), []byte("n"), []byte("x"), []byte("y"), []byte("z")})
		if err != nil {
			return err
		}
		for i, v := range many {
			if (i < 2) != (v != nil) || len(v) != 0 {
				t.Errorf("GetMany value %d: %#v", i, v)
			}
		}
		v, err := r.Get([]byte("e"))
		if v == nil || len(v) != 0 {
			t.Errorf("Get: %#v", v)
		}
		return err
	})
}

// testValuesStay: slices that were given to a transaction are the caller's
// again when it ended, and those that were read stay as they are.
func testValuesStay(t *testing.T, kv cluster.KV) {
	key, value := []byte("k"), []byte("value")
	update(t, kv, func(txn cluster.Txn) error { return txn.Set(key, value) })
	key[0], value[0] = 'x', 'X'
	var read [][]byte
	view(t, kv, func(r cluster.Reader) error {
		for range 2 {
			v, err := r.Get([]byte("k"))
			if err != nil {
				return err
			}
			many, err := r.GetMany([][]byte{[]byte("k")})
			if err != nil {
				return err
			}
			read = append(read, v, many[0])
		}
		return nil
	})
	update(t, kv, func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("other")) })
	for _, v := range read {
		if string(v) != "value" {
			t.Errorf("read %q", v)
		}
	}
}

// testHead: the head and the length are those of the value, whoever read or wrote it
// before, and so is the value for who reads all of it later.
func testHead(t *testing.T, kv cluster.KV) {
	values := map[string][]byte{"absent": nil, "deleted": nil, "empty": {}, "short": []byte("short")}
	for _, n := range []int{cluster.HeadBytes, cluster.HeadBytes + 1, 1 << 10, 1<<10 + 1, 40_000} {
		values[fmt.Sprint(n)] = bytes.Repeat([]byte{'0', byte(n), byte(n >> 8)}, n)[:n]
	}
	var wrong []string // of the last run: an earlier one may have read what is old
	check := func(r cluster.Reader) (err error) {
		wrong = nil
		for range 2 {
			for key, value := range values {
				head, n, e := r.Head([]byte(key))
				if n != len(value) || (head == nil) != (value == nil) || !bytes.Equal(head, value[:min(n, len(value), cluster.HeadBytes)]) {
					wrong = append(wrong, fmt.Sprintf("%s has %d bytes, which begin with %q", key, n, head))
				}
				whole, e2 := r.Get([]byte(key))
				if !bytes.Equal(whole, value) {
					wrong = append(wrong, fmt.Sprintf("%s has %d bytes afterwards", key, len(whole)))
				}
				err = errors.Join(err, e, e2)
			}
		}
		return err
	}
	report := func(from string) {
		t.Helper()
		for _, what := range wrong {
			t.Errorf("%s: %s", from, what)
		}
	}
	set(t, kv, pair{"deleted", "once"})
	update(t, kv, func(txn cluster.Txn) error {
		for key, value := range values {
			if err := errors.Join(txn.Delete([]byte("deleted")), setUnlessNil(txn, key, value)); err != nil {
				return err
			}
		}
		return check(txn)
	})
	report("the transaction that wrote")
	for range 2 {
		view(t, kv, check)
		report("a view")
		update(t, kv, func(txn cluster.Txn) error { return check(txn) })
		report("a transaction")
		if err := kv.Peek(ctx, check); err != nil {
			t.Error(err)
		}
		report("a peek")
	}
	// It counts as a read.
	runs := rerun(t, kv,
		func(txn cluster.Txn) error { _, _, err := txn.Head([]byte("40000")); return err },
		func() { set(t, kv, pair{"40000", "another"}) },
		func(txn cluster.Txn) error { return txn.Set([]byte("mark"), nil) })
	if runs < 2 {
		t.Error("a pair was replaced, and the transaction that had read its head was committed")
	}
	view(t, kv, func(r cluster.Reader) error {
		if _, _, err := r.Head(nil); !errors.Is(err, cluster.ErrInvalid) {
			t.Errorf("Head of an empty key: %v", err)
		}
		return nil
	})
}

func setUnlessNil(txn cluster.Txn, key string, value []byte) error {
	if value == nil {
		return nil
	}
	return txn.Set([]byte(key), value)
}

func testGetMany(t *testing.T, kv cluster.KV) {
	const n = 300
	for from := 0; from < n; from += 50 {
		update(t, kv, func(txn cluster.Txn) error {
			for i := from; i < from+50; i++ {
				if err := txn.Set(fmt.Appendf(nil, "k%04d", 2*i), fmt.Appendf(nil, "v%d", 2*i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check := func(r cluster.Reader, order []int) {
		keys := make([][]byte, len(order))
		for i, k := range order {
			keys[i] = fmt.Appendf(nil, "k%04d", k)
		}
		values, err := r.GetMany(keys)
		if err != nil || len(values) != len(keys) {
			t.Fatalf("GetMany: %d values, %v", len(values), err)
		}
		for i, k := range order {
			want := fmt.Sprintf("v%d", k)
			if k%2 == 1 || k >= 2*n {
				if values[i] != nil {
					t.Fatalf("absent key %d: %q", k, values[i])
				}
			} else if string(values[i]) != want {
				t.Fatalf("key %d: %q", k, values[i])
			}
		}
	}
	var sorted, reversed, sparse []int
	for i := range 100 {
		sorted = append(sorted, i)
		reversed = append(reversed, 620-i)
		sparse = append(sparse, (i*37)%640)
	}
	view(t, kv, func(r cluster.Reader) error {
		check(r, nil)
		check(r, []int{4})
		check(r, []int{4, 4, 5, 4, 4, 900, 4})
		check(r, sorted)
		check(r, reversed)
		check(r, sparse)
		return nil
	})
	update(t, kv, func(txn cluster.Txn) error {
		if err := errors.Join(txn.Set([]byte("k0003"), []byte("own")), txn.Delete([]byte("k0004"))); err != nil {
			return err
		}
		values, err := txn.GetMany([][]byte{[]byte("k0002"), []byte("k0003"), []byte("k0004"), []byte("k0005"), []byte("k0006")})
		if err != nil {
			return err
		}
		if got := fmt.Sprintf("%q", values); got != `["v2" "own" "" "" "v6"]` || values[2] != nil {
			t.Errorf("GetMany over own writes: %s", got)
		}
		return nil
	})
}

func testScanOrder(t *testing.T, kv cluster.KV) {
	keys := [][]byte{{0}, {0, 0}, {0, 1}, {1}, []byte("a"), []byte("a\x00"), []byte("a/"), []byte("a/b"), []byte("aa"),
		[]byte("b"), {0x7f}, {0x80}, {0xfe}, {0xfe, 0xff}, {0xfe, 0xff, 0xff}}
	update(t, kv, func(txn cluster.Txn) error {
		for i := range keys {
			if err := txn.Set(keys[(i*7)%len(keys)], []byte("v")); err != nil {
				return err
			}
		}
		return nil
	})
	for _, reverse := range []bool{false, true} {
		view(t, kv, func(r cluster.Reader) error {
			var got [][]byte
			err := r.Scan(nil, nil, cluster.ScanOptions{Reverse: reverse}, func(key, _ []byte) error {
				got = append(got, bytes.Clone(key))
				return nil
			})
			if reverse {
				slices.Reverse(got)
			}
			if !slices.EqualFunc(got, keys, bytes.Equal) {
				t.Errorf("reverse %v: %q", reverse, got)
			}
			return err
		})
	}
}

func testScanOptions(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"a", "1"}, pair{"b", "2"}, pair{"c", "3"}, pair{"d", "4"})
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "", "", cluster.ScanOptions{}, "a=1", "b=2", "c=3", "d=4")
		wantScan(t, r, "b", "d", cluster.ScanOptions{}, "b=2", "c=3")
		wantScan(t, r, "b", "d", cluster.ScanOptions{Reverse: true}, "c=3", "b=2")
		wantScan(t, r, "b", "", cluster.ScanOptions{Limit: 1}, "b=2")
		wantScan(t, r, "", "d", cluster.ScanOptions{Limit: 2, Reverse: true}, "c=3", "b=2")
		wantScan(t, r, "", "", cluster.ScanOptions{Limit: 9}, "a=1", "b=2", "c=3", "d=4")
		wantScan(t, r, "", "", cluster.ScanOptions{KeysOnly: true}, "a", "b", "c", "d")
		wantScan(t, r, "", "", cluster.ScanOptions{KeysOnly: true, Reverse: true, Limit: 3}, "d", "c", "b")
		return nil
	})
}

func testScanBounds(t *testing.T, kv cluster.KV) {
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "", "", cluster.ScanOptions{})
		wantScan(t, r, "", "", cluster.ScanOptions{Reverse: true})
		return nil
	})
	set(t, kv, pair{"b", "1"}, pair{"b\x00", "2"}, pair{"c", "3"})
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "b", "b", cluster.ScanOptions{})
		wantScan(t, r, "c", "b", cluster.ScanOptions{})
		wantScan(t, r, "c", "b", cluster.ScanOptions{Reverse: true})
		wantScan(t, r, "b", "b\x00", cluster.ScanOptions{}, "b=1")
		wantScan(t, r, "b\x00", "c", cluster.ScanOptions{}, "b\x00=2")
		wantScan(t, r, "a", "b", cluster.ScanOptions{})
		wantScan(t, r, "d", "", cluster.ScanOptions{})
		wantScan(t, r, "a", "z", cluster.ScanOptions{Reverse: true}, "c=3", "b\x00=2", "b=1")
		// What engines keep for themselves is never shown.
		wantScan(t, r, "d", "\xff\xff\xff", cluster.ScanOptions{})
		wantScan(t, r, "\xff", "", cluster.ScanOptions{})
		return nil
	})
}

func testScanStop(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"a", "1"}, pair{"b", "2"}, pair{"c", "3"})
	boom := errors.New("boom")
	for _, stop := range []error{cluster.ErrStop, fmt.Errorf("wrapped: %w", cluster.ErrStop), boom} {
		err := kv.View(ctx, func(r cluster.Reader) error {
			seen := 0
			err := r.Scan(nil, nil, cluster.ScanOptions{}, func(_, _ []byte) error {
				seen++
				if seen == 2 {
					return stop
				}
				return nil
			})
			if seen != 2 {
				t.Errorf("visited %d pairs", seen)
			}
			return err
		})
		if stop == boom && err != boom || stop != boom && err != nil {
			t.Errorf("stopped with %v: %v", stop, err)
		}
	}
}

func testReadYourWrites(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"a", "old"}, pair{"b", "old"})
	update(t, kv, func(txn cluster.Txn) error {
		expect := func(key, want string) {
			v, err := txn.Get([]byte(key))
			if err != nil || string(v) != want || (want == "") != (v == nil) {
				t.Errorf("Get(%s) = %#v, %v, want %q", key, v, err, want)
			}
		}
		expect("a", "old")
		if err := errors.Join(txn.Set([]byte("a"), []byte("new")), txn.Delete([]byte("b")), txn.Set([]byte("c"), []byte("new"))); err != nil {
			return err
		}
		expect("a", "new")
		expect("b", "")
		expect("c", "new")
		if err := errors.Join(txn.Set([]byte("b"), []byte("again")), txn.Delete([]byte("c"))); err != nil {
			return err
		}
		expect("b", "again")
		expect("c", "")
		return nil
	})
	if a, b, c := get(t, kv, "a"), get(t, kv, "b"), get(t, kv, "c"); string(a) != "new" || string(b) != "again" || c != nil {
		t.Errorf("after commit: %q %q %q", a, b, c)
	}
}

func testScanOwnWrites(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"b", "1"}, pair{"d", "1"}, pair{"f", "1"}, pair{"h", "1"})
	update(t, kv, func(txn cluster.Txn) error {
		for _, p := range []pair{{"a", "2"}, {"d", "2"}, {"e", "2"}, {"i", "2"}} {
			if err := txn.Set([]byte(p.key), []byte(p.value)); err != nil {
				return err
			}
		}
		if err := errors.Join(txn.Delete([]byte("b")), txn.Delete([]byte("h")), txn.Delete([]byte("x"))); err != nil {
			return err
		}
		wantScan(t, txn, "", "", cluster.ScanOptions{}, "a=2", "d=2", "e=2", "f=1", "i=2")
		wantScan(t, txn, "", "", cluster.ScanOptions{Reverse: true}, "i=2", "f=1", "e=2", "d=2", "a=2")
		wantScan(t, txn, "b", "f", cluster.ScanOptions{}, "d=2", "e=2")
		wantScan(t, txn, "b", "g", cluster.ScanOptions{Reverse: true, Limit: 2}, "f=1", "e=2")
		wantScan(t, txn, "", "", cluster.ScanOptions{Limit: 3}, "a=2", "d=2", "e=2")
		wantScan(t, txn, "", "", cluster.ScanOptions{KeysOnly: true, Limit: 2}, "a", "d")
		wantScan(t, txn, "g", "i", cluster.ScanOptions{})
		return nil
	})
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "", "", cluster.ScanOptions{}, "a=2", "d=2", "e=2", "f=1", "i=2")
		return nil
	})
}

func testRollback(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"a", "1"})
	boom := errors.New("boom")
	err := kv.Update(ctx, func(txn cluster.Txn) error {
		return errors.Join(txn.Set([]byte("a"), []byte("2")), txn.Set([]byte("b"), nil), txn.Delete([]byte("a")), boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("Update: %v", err)
	}
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "", "", cluster.ScanOptions{}, "a=1")
		return nil
	})
}

func testErrorPassthrough(t *testing.T, kv cluster.KV) {
	boom := errors.New("boom")
	if err := kv.Update(ctx, func(cluster.Txn) error { return boom }); err != boom {
		t.Errorf("Update returned %v, not the error itself", err)
	}
	if err := kv.View(ctx, func(cluster.Reader) error { return boom }); err != boom {
		t.Errorf("View returned %v, not the error itself", err)
	}
}

func testSnapshot(t *testing.T, kv cluster.KV) {
	set(t, kv, pair{"a", "1"}, pair{"b", "1"})
	view(t, kv, func(r cluster.Reader) error {
		if v, err := r.Get([]byte("a")); err != nil || string(v) != "1" {
			t.Fatalf("before: %q, %v", v, err)
		}
		update(t, kv, func(txn cluster.Txn) error {
			return errors.Join(txn.Set([]byte("a"), []byte("2")), txn.Delete([]byte("b")), txn.Set([]byte("c"), []byte("2")))
		})
		wantScan(t, r, "", "", cluster.ScanOptions{}, "a=1", "b=1")
		values, err := r.GetMany([][]byte{[]byte("a"), []byte("b"), []byte("c")})
		if err != nil || string(values[0]) != "1" || string(values[1]) != "1" || values[2] != nil {
			t.Errorf("GetMany: %q, %v", values, err)
		}
		return nil
	})
	view(t, kv, func(r cluster.Reader) error {
		wantScan(t, r, "", "", cluster.ScanOptions{}, "a=2", "c=2")
		return nil
	})
}
