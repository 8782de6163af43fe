package local

import (
	"bytes"
	"fmt"
	"testing"

	"ogw/cluster"
	"ogw/cluster/internal/occ"
)

// What is larger than a pair may be is not remembered.
func TestPairCacheOfLargeValues(t *testing.T) {
	c, key, value := newPairCache(), []byte("k"), make([]byte, occ.MaxPairValue+1)
	s := c.Slot(key)
	c.fill(s, nil, &occ.PairEntry{Key: key, Value: value, Version: 1})
	if _, ok := pairAt(s, key, 1); ok {
		t.Error("a value above the limit is remembered")
	}
	c.fill(s, nil, &occ.PairEntry{Key: key, Value: value[1:], Version: 1})
	if _, ok := pairAt(s, key, 1); !ok {
		t.Error("a value of the limit is not")
	}
}

// What a snapshot said is not remembered when a commit came after it, even if
// the commit's own entry has been displaced since.
func TestPairCacheRefusesOldValues(t *testing.T) {
	c := newPairCache()
	key := []byte("k")
	s := c.Slot(key)
	old := s.Load()
	c.wrote(5, [][]byte{key}, [][]byte{[]byte("new")})
	c.fill(s, old, &occ.PairEntry{Key: key, Value: []byte("old"), Version: 4})
	if e, ok := pairAt(s, key, 9); !ok || string(e.Value) != "new" {
		t.Errorf("the commit's value was displaced: %+v", e)
	}
	if _, ok := pairAt(s, key, 4); ok {
		t.Error("a reader of an older version finds the commit's value")
	}
	c.Swap(s, nil)
	c.fill(s, nil, &occ.PairEntry{Key: key, Value: []byte("old"), Version: 4})
	if e, ok := pairAt(s, key, 9); ok {
		t.Errorf("an old value is remembered: %q", e.Value)
	}
	c.fill(s, nil, &occ.PairEntry{Key: key, Value: []byte("new"), Version: 5})
	if e, ok := pairAt(s, key, 5); !ok || string(e.Value) != "new" {
		t.Errorf("the value of a later snapshot is not remembered: %+v", e)
	}
	// The commit comes between the look at the slot and the entry, and leaves
	// the slot empty, as it found it.
	c.Swap(s, nil)
	s.Changed.Store(6)
	c.Swap(s, &occ.PairEntry{Key: key, Value: []byte("late"), Version: 5})
	if e, ok := pairAt(s, key, 9); ok {
		t.Errorf("a value that came late is found: %q", e.Value)
	}
}

// A large commit forgets what it changes, and leaves nothing in its place.
func TestPairCacheAndLargeCommits(t *testing.T) {
	c := newPairCache()
	keys, values := make([][]byte, maxWrittenPairs+1), make([][]byte, maxWrittenPairs+1)
	for i := range keys {
		keys[i], values[i] = fmt.Append(nil, i), []byte("v")
	}
	c.wrote(1, keys[:1], values[:1])
	c.wrote(2, keys, values)
	for _, key := range keys {
		if e, ok := pairAt(c.Slot(key), key, 9); ok {
			t.Errorf("%s is remembered as of version %d", key, e.Version)
		}
	}
}

// A peek that read a pair from memory which changes before it asks for
// another one that is not remembered runs again; so does a transaction.
func TestPeekRunsAgainWhenTorn(t *testing.T) {
	kv := openAt(t, Options{Dir: t.TempDir()}).KV.(*KV)
	put := func(a, b string) {
		t.Helper()
		if err := kv.Update(t.Context(), func(txn cluster.Txn) error {
			if err := txn.Set([]byte("a"), []byte(a)); err != nil {
				return err
			}
			return txn.Set([]byte("b"), append(bytes.Repeat([]byte{'.'}, maxWrittenPair), b...))
		}); err != nil {
			t.Fatal(err)
		}
	}
	put("1", "1")
	for name, run := range map[string]func(fn func(cluster.Reader) error) error{
		"peek": func(fn func(cluster.Reader) error) error { return kv.Peek(t.Context(), fn) },
		"update": func(fn func(cluster.Reader) error) error {
			return kv.Update(t.Context(), func(txn cluster.Txn) error { return fn(txn) })
		},
	} {
		runs, a, b := 0, []byte(nil), []byte(nil)
		err := run(func(r cluster.Reader) (err error) {
			runs++
			if a, err = r.Get([]byte("a")); err != nil {
				return err
			}
			if runs == 1 {
				put("2"+name, "2"+name)
			}
			b, err = r.Get([]byte("b"))
			return err
		})
		if err != nil || runs != 2 || string(a) != "2"+name || !bytes.HasSuffix(b, append([]byte{'.'}, a...)) {
			t.Errorf("%s: a is %q, b ends in %q, %v after %d runs", name, a, b[max(0, len(b)-10):], err, runs)
		}
	}
}

// What a commit wrote is read without a snapshot, an absent key as well.
func TestPeekTakesNoSnapshot(t *testing.T) {
	kv := openAt(t, Options{Dir: t.TempDir()}).KV.(*KV)
	if err := kv.Update(t.Context(), func(txn cluster.Txn) error {
		if err := txn.Delete([]byte("gone")); err != nil {
			return err
		}
		return txn.Set([]byte("there"), []byte("x"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := kv.Peek(t.Context(), func(r cluster.Reader) error {
		got, err := r.GetMany([][]byte{[]byte("gone"), []byte("there")})
		if err == nil && (got[0] != nil || string(got[1]) != "x") {
			t.Errorf("read %q", got)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if kv.snapshots.latest != nil {
		t.Error("a snapshot was taken")
	}
}

// A strict reader waits for what a relaxed writer left: remembered or not, and
// also what came between its begin and its snapshot.
func TestPeekIsDurable(t *testing.T) {
	kv := openAt(t, Options{Dir: t.TempDir()}).KV.(*KV)
	put := func(key string) (version uint64) {
		t.Helper()
		if err := kv.Update(cluster.Relaxed(t.Context()), func(txn cluster.Txn) error {
			return txn.Set([]byte(key), []byte("x"))
		}); err != nil {
			t.Fatal(err)
		}
		return kv.visible.Load()
	}
	count := func(r cluster.Reader) (n int, err error) {
		err = r.Scan([]byte("range/"), []byte("range0"), cluster.ScanOptions{}, func([]byte, []byte) error {
			n++
			return nil
		})
		return n, err
	}
	for name, run := range map[string]func(fn func(cluster.Reader) error) error{
		"peek": func(fn func(cluster.Reader) error) error { return kv.Peek(t.Context(), fn) },
		"update": func(fn func(cluster.Reader) error) error {
			return kv.Update(t.Context(), func(txn cluster.Txn) error { return fn(txn) })
		},
	} {
		written := put("k")
		if err := run(func(r cluster.Reader) error {
			_, err := r.Get([]byte("k"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if synced := kv.durability.synced.Load(); synced < written {
			t.Errorf("%s: version %d was read, %d is durable", name, written, synced)
		}
		n := 0
		if err := run(func(r cluster.Reader) (err error) {
			if written == kv.visible.Load() {
				written = put("range/" + name)
			}
			n, err = count(r)
			return err
		}); err != nil || n == 0 {
			t.Fatalf("%s: %d pairs in the range, %v", name, n, err)
		}
		if synced := kv.durability.synced.Load(); synced < written {
			t.Errorf("%s: version %d came before the snapshot, %d is durable", name, written, synced)
		}
	}
}

// What is written all the time does not keep a transaction from ending that
// reads a neighbour in the slot.
func TestTransactionBesideABusySlot(t *testing.T) {
	kv := openAt(t, Options{Dir: t.TempDir()}).KV.(*KV)
	if err := kv.Update(t.Context(), func(txn cluster.Txn) error {
		return txn.Set([]byte("k"), []byte("x"))
	}); err != nil {
		t.Fatal(err)
	}
	slot, runs := kv.pairs.Slot([]byte("k")), 0
	if err := kv.Update(t.Context(), func(txn cluster.Txn) error {
		runs++
		kv.pairs.Swap(slot, nil)
		slot.Changed.Store(kv.visible.Load() + 1) // as the neighbour's commit does
		got, err := txn.Get([]byte("k"))
		if err == nil && string(got) != "x" {
			t.Errorf("read %q", got)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if runs != hastyAttempts+1 {
		t.Errorf("%d runs, want %d", runs, hastyAttempts+1)
	}
}

// The head of a large value that was written or read is known without the value,
// which who asks for all of it gets from Pebble.
func TestHeadReadsNoValue(t *testing.T) {
	for _, from := range []string{"written", "read"} {
		kv := openAt(t, Options{Dir: t.TempDir()}).KV.(*KV)
		key, value := []byte("k"), bytes.Repeat([]byte("0123456789abcdef"), maxWrittenPair)
		if err := kv.Update(t.Context(), func(txn cluster.Txn) error { return txn.Set(key, value) }); err != nil {
			t.Fatal(err)
		}
		head := func() (length int) {
			if err := kv.View(t.Context(), func(r cluster.Reader) (err error) {
				var b []byte
				if b, length, err = r.Head(key); string(b) != "0123456789abcdef" {
					t.Errorf("%s: the head is %q", from, b)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return length
		}
		slot := kv.pairs.Slot(key)
		if from == "read" {
			kv.pairs.Swap(slot, nil)
			if n := head(); n != len(value) {
				t.Errorf("it has %d bytes, not %d", n, len(value))
			}
		}
		e := *slot.Load()
		e.More++ // seen by who reads memory
		kv.pairs.Swap(slot, &e)
		if n := head(); n != len(value)+1 || len(e.Value) != cluster.HeadBytes {
			t.Errorf("%s: %d bytes are remembered; a head gave %d, not %d", from, len(e.Value), n, len(value)+1)
		}
		if err := kv.View(t.Context(), func(r cluster.Reader) error {
			got, err := r.Get(key)
			if !bytes.Equal(got, value) {
				t.Errorf("%s: the value has %d bytes, not %d", from, len(got), len(value))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
