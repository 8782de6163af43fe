package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/tail"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tailLoad makes commits of which each differs from every other.
type tailLoad struct {
	rng    *rand.Rand
	at     int
	states []map[string]string // after each commit
	// strict is the newest commit that was durable when it was answered.
	strict int
}

func newTailLoad(seed uint64) *tailLoad {
	return &tailLoad{rng: rand.New(rand.NewPCG(seed, 7)), states: []map[string]string{{}}}
}

// step commits, relaxed or not, small or large, now and then only for the
// engine itself.
func (l *tailLoad) step(t *testing.T, kv *KV, relaxed bool) {
	t.Helper()
	l.at++
	state := maps.Clone(l.states[len(l.states)-1])
	size := 10 + l.rng.IntN(300)
	if l.rng.IntN(40) == 0 {
		size = 20 << 10
	}
	value := fmt.Sprintf("%d %s", l.at, bytes.Repeat([]byte{'x'}, size))
	key, other := fmt.Sprintf("k%d", l.rng.IntN(9)), fmt.Sprintf("k%d", l.rng.IntN(9))
	state["last"], state[key] = fmt.Sprint(l.at), value
	delete(state, other)
	c := cluster.Strict(ctx)
	if relaxed {
		c = cluster.Relaxed(ctx)
	}
	err := kv.Update(c, func(t cluster.Txn) error {
		t.Set([]byte("last"), []byte(state["last"]))
		t.Set([]byte(key), []byte(value))
		t.Delete([]byte(other))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.states = append(l.states, state)
	if !relaxed {
		l.strict = l.at
	}
	if l.rng.IntN(5) == 0 {
		err := kv.applyInternal(func(b *pebble.Batch) error { return b.Set(record.EraseKey, []byte(value), nil) })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// found returns the commit that the store is at.
func (l *tailLoad) found(t *testing.T, kv *KV) int {
	t.Helper()
	state := map[string]string{}
	err := kv.View(ctx, func(r cluster.Reader) error {
		return r.Scan([]byte("k"), []byte("m"), cluster.ScanOptions{}, func(k, v []byte) error {
			state[string(k)] = string(v)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	fmt.Sscan(state["last"], &n)
	if n >= len(l.states) || !maps.Equal(state, l.states[n]) {
		t.Fatalf("the store is at commit %d of %d, and is not what it was then", n, l.at)
	}
	return n
}

func tailOptions(fs vfs.FS) Options {
	o := memOptions(fs)
	o.tailHalf, o.tailRest, o.tailAlone = 8<<10, 3, 3
	return o
}

// TestKillTakesNothing kills the process, again and again, at random moments:
// what was written to files is there, what was in its memory is not.
func TestKillTakesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l := newTailLoad(seed)
	fs := newMem(t)
	for range 60 {
		o := tailOptions(fs)
		o.tailRest = l.rng.IntN(30)
		c := openAt(t, o)
		kv := c.KV.(*KV)
		if at := l.found(t, kv); at != l.at {
			t.Fatalf("%d commits were acknowledged, after the kill there are %d", l.at, at)
		}
		relaxed := l.rng.IntN(10) // of ten
		for range l.rng.IntN(120) {
			l.step(t, kv, l.rng.IntN(10) < relaxed)
		}
		fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: l.rng})
	}
}

// TestPowerCutLeavesPrefix cuts the power: what is there is what was at some
// moment, not before the last durable answer.
func TestPowerCutLeavesPrefix(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, kept := range []int{0, 30, 90} {
		l := newTailLoad(seed)
		fs := newMem(t)
		for range 30 {
			o := tailOptions(fs)
			o.tailHalf, o.tailRest = o.tailHalf<<l.rng.IntN(5), l.rng.IntN(30)
			c := openAt(t, o)
			kv := c.KV.(*KV)
			at := l.found(t, kv)
			if at < l.strict {
				t.Fatalf("commit %d was durable, after the power cut there are %d", l.strict, at)
			}
			l.states, l.at, l.strict = l.states[:at+1], at, min(l.strict, at)
			relaxed := l.rng.IntN(11)
			for range l.rng.IntN(120) {
				l.step(t, kv, l.rng.IntN(10) < relaxed)
			}
			fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: l.rng})
		}
	}
}

// stampedVersion is what Pebble holds of the newest commit for the tail.
func stampedVersion(t *testing.T, kv *KV) uint64 {
	t.Helper()
	value, closer, err := kv.db.Get(record.VersionKey)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return binary.LittleEndian.Uint64(value[8:])
}

// TestTailRests: durable commits of which there are many do without the tail and its key, but for
// those that follow a relaxed one closely.
func TestTailRests(t *testing.T) {
	kv := openAt(t, tailOptions(newMem(t))).KV.(*KV)
	kv.durability.waiting.Add(1) // there is another one all the time
	put := func(c context.Context, n int) {
		t.Helper()
		for range n {
			if err := kv.Update(c, func(t cluster.Txn) error { t.Set([]byte("k"), make([]byte, 64)); return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	tells := func(what string, stamped uint64, active bool) {
		t.Helper()
		if got := stampedVersion(t, kv); got != stamped || kv.tail.Stamps(2, tail.None) != active {
			t.Errorf("%s: version %d of %d is stamped, want %d; the tail is active: %t", what, got, kv.visible.Load(), stamped, kv.tail.Stamps(2, tail.None))
		}
	}
	put(cluster.Strict(ctx), 20)
	tells("durable commits", 1, false)
	put(cluster.Relaxed(ctx), 20)
	relaxed := kv.visible.Load()
	tells("relaxed commits", relaxed, true)
	put(cluster.Strict(ctx), 1)
	tells("a durable one after them", relaxed+1, true)
	put(cluster.Strict(ctx), 20)
	last := stampedVersion(t, kv)
	if last > relaxed+10 || kv.tail.Stamps(2, tail.None) {
		t.Errorf("versions up to %d of %d are stamped, %d is the last relaxed one", last, kv.visible.Load(), relaxed)
	}
	put(cluster.Strict(ctx), 20)
	tells("many more", last, false)
	put(cluster.Relaxed(ctx), 1)
	tells("a relaxed one", kv.visible.Load(), true)
}

// TestTailWaitsForBase: nobody is answered by the tail before what it goes on
// from is durable, the commit with which it became active included.
func TestTailWaitsForBase(t *testing.T) {
	kv := openAt(t, tailOptions(newMem(t))).KV.(*KV)
	kv.durability.stop()
	relaxed := func() committed {
		b := kv.db.NewBatch()
		if err := b.Set([]byte("k"), []byte("v"), nil); err != nil {
			t.Fatal(err)
		}
		c, ok, err := kv.apply(b, applyOptions{keys: [][]byte{[]byte("k")}, values: [][]byte{[]byte("v")}, relaxed: true})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return c
	}
	first, second, third := relaxed(), relaxed(), relaxed()
	for _, c := range []committed{first, second, third} {
		if c.due != first.version {
			t.Errorf("version %d is told once version %d is durable, the tail begins after %d", c.version, c.due, first.version)
		}
	}
}

// TestTailOfAnother: a tail is not replayed where another program changed the
// store meanwhile.
func TestTailOfAnother(t *testing.T) {
	l := newTailLoad(1)
	fs := newMem(t)
	kv := openAt(t, tailOptions(fs)).KV.(*KV)
	for range 20 {
		l.step(t, kv, true)
	}
	fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: l.rng})
	b, err := readWhole(fs, "/store/"+record.TailFile)
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := record.ParseTailHeader(b); !ok || len(record.ParseTailRecords(b[record.TailHeaderBytes:], h)) == 0 {
		t.Fatal("the tail has no records: the test is about nothing")
	}
	db, err := pebble.Open("/store/"+record.MetaDir, &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("k0"), []byte("another's"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	kv = openAt(t, tailOptions(fs)).KV.(*KV)
	err = kv.View(ctx, func(r cluster.Reader) error {
		v, err := r.Get([]byte("k0"))
		if err == nil && string(v) != "another's" {
			t.Errorf("k0 is %.20q", v)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// noWriteFS cannot write the tail.
type noWriteFS struct{ vfs.FS }

func (fs noWriteFS) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.PathBase(name) == record.TailFile {
		return nil, errors.New("no")
	}
	return fs.FS.Create(name, why)
}

// TestTailCannotBeWritten: relaxed commits are durable then.
func TestTailCannotBeWritten(t *testing.T) {
	l := newTailLoad(2)
	fs := newMem(t)
	kv := openAt(t, tailOptions(noWriteFS{fs})).KV.(*KV)
	for range 20 {
		l.step(t, kv, true)
	}
	fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: l.rng})
	kv = openAt(t, tailOptions(fs)).KV.(*KV)
	if at := l.found(t, kv); at != l.at {
		t.Errorf("%d commits were acknowledged, %d are there", l.at, at)
	}
}

// TestEraseWipesTail: no secret stays there.
func TestEraseWipesTail(t *testing.T) {
	fs := newMem(t)
	kv := openAt(t, tailOptions(fs)).KV.(*KV)
	set := func(v string) {
		err := kv.Update(cluster.Relaxed(ctx), func(t cluster.Txn) error { t.Set([]byte("secret"), []byte(v)); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	holds := func() bool {
		b, err := readWhole(fs, "/store/"+record.TailFile)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte("open sesame"))
	}
	set("a")
	set("open sesame")
	if !holds() {
		t.Fatal("the tail has not what was written: the test is about nothing")
	}
	set("b")
	if err := kv.Erase(ctx, cluster.KeyRange{Start: []byte("s"), End: []byte("t")}); err != nil {
		t.Fatal(err)
	}
	if holds() {
		t.Error("the tail holds what was erased")
	}
	set("c")
}

func readWhole(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	_, err = f.ReadAt(b, 0)
	return b, err
}
