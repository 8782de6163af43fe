package local

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/tail"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// powerCut returns what is left where nothing stays that was not synced.
func powerCut(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
}

// TestAlone: the tail makes a commit durable that is alone, Pebble's log those that are not.
func TestAlone(t *testing.T) {
	l := newTailLoad(rand.Uint64())
	fs := newMem(t)
	o := tailOptions(fs)
	o.tailHalf = 1 << 20
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop() // the log is not synced by time
	strict := func(n int) (inLog int) {
		for range n {
			l.step(t, kv, false)
			if kv.durability.logged.Load() == kv.durability.synced.Load() {
				inLog++
			}
		}
		return inLog
	}
	if n := strict(50); n > 25 {
		t.Errorf("%d of 50 commits that were alone wait for the log", n)
	}
	kv.durability.waiting.Add(1)
	if n := strict(50); n != 50 {
		t.Errorf("%d of 50 commits that were not alone are in the log", n)
	}
	kv.durability.waiting.Add(-1)
	strict(50)
	kv = openAt(t, tailOptions(powerCut(fs))).KV.(*KV)
	if at := l.found(t, kv); at != l.at {
		t.Errorf("%d commits were durable, %d are there", l.at, at)
	}
}

// TestSyncNeedsBase: a sync of the tail makes durable what follows on what the log has, and nothing else.
func TestSyncNeedsBase(t *testing.T) {
	commit := func(t *testing.T, kv *KV, relaxed bool) committed {
		t.Helper()
		key := binary.BigEndian.AppendUint64([]byte("k"), kv.visible.Load())
		b := kv.db.NewBatch()
		if err := b.Set(key, []byte("v"), nil); err != nil {
			t.Fatal(err)
		}
		c, ok, err := kv.apply(b, applyOptions{keys: [][]byte{key}, values: [][]byte{[]byte("v")}, relaxed: relaxed})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if !relaxed && !c.inTail {
			err = kv.finishSync(b, c.version)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	open := func(t *testing.T) (*KV, *vfs.MemFS) {
		t.Helper()
		fs := newMem(t)
		o := tailOptions(fs)
		o.tailHalf = 1 << 20
		kv := openAt(t, o).KV.(*KV)
		kv.durability.stop()
		kv.durability.alone = kv.durability.aloneMin
		return kv, fs
	}
	t.Run("commit", func(t *testing.T) {
		kv, _ := open(t)
		first := commit(t, kv, true)
		if c := commit(t, kv, false); c.inTail {
			t.Errorf("version %d is in the tail, which begins with version %d, of which %d is in the log",
				c.version, first.version, kv.durability.logged.Load())
		}
	})
	t.Run("sync", func(t *testing.T) {
		kv, fs := open(t)
		for range 3 {
			commit(t, kv, true)
		}
		if err := kv.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		again := openAt(t, tailOptions(powerCut(fs))).KV.(*KV)
		n := 0
		err := again.View(ctx, func(r cluster.Reader) error {
			return r.Scan([]byte("k"), []byte("l"), cluster.ScanOptions{}, func(_, _ []byte) error { n++; return nil })
		})
		if err != nil || n != 3 {
			t.Errorf("%d of 3 pairs are there, %v", n, err)
		}
	})
	t.Run("later base", func(t *testing.T) {
		kv, _ := open(t)
		var c committed
		for range 3 {
			c = commit(t, kv, false)
		}
		if !c.inTail {
			t.Fatal("not in the tail: the test is about nothing")
		}
		for kv.tail.Stamps(2, tail.None) { // until it rests
			if err := kv.applyInternal(func(b *pebble.Batch) error { return b.Set(record.EraseKey, nil, nil) }); err != nil {
				t.Fatal(err)
			}
		}
		last := kv.durability.tailed.Load()
		commit(t, kv, true)
		if later := commit(t, kv, true); later.due == later.version {
			t.Fatal("not in the tail: the test is about nothing")
		}
		if err := kv.durability.syncTail(c.version); err != nil {
			t.Fatal(err)
		}
		if synced := kv.durability.synced.Load(); synced < c.version || synced > last {
			t.Errorf("version %d is said to be durable, those up to %d are", synced, last)
		}
	})
}

// TestLogIsNear: what the log does not have fits into a memtable several times, so that its errors show before
// memtables that cannot be flushed stop all commits.
func TestLogIsNear(t *testing.T) {
	o := tailOptions(newMem(t))
	o.tailHalf, o.memTable = 1<<20, 64<<10
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop()
	ahead := uint64(0)
	for i := range 200 {
		err := kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error { return t.Set([]byte{'k', byte(i)}, make([]byte, 2000)) })
		if err != nil {
			t.Fatal(err)
		}
		ahead = max(ahead, kv.visible.Load()-kv.durability.logged.Load())
	}
	if most := o.memTable / unloggedShare / 2000; ahead == 0 || ahead > most {
		t.Errorf("up to %d commits are not in the log, it may be %d", ahead, most)
	}
}

// TestTailSyncFails: what the tail cannot make durable the log does, from then on.
func TestTailSyncFails(t *testing.T) {
	l := newTailLoad(3)
	fs := newMem(t)
	syncs := 0
	broken := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && fs.PathBase(op.Path) == record.TailFile {
			if syncs++; syncs == 20 {
				return syscall.EIO
			}
		}
		return nil
	}))
	o := tailOptions(broken)
	o.tailHalf = 1 << 20
	kv := openAt(t, o).KV.(*KV)
	for range 60 {
		l.step(t, kv, false)
	}
	if syncs != 20 {
		t.Errorf("%d syncs of the tail, of which the 20th failed", syncs)
	}
	if synced, logged := kv.durability.synced.Load(), kv.durability.logged.Load(); logged != synced {
		t.Errorf("version %d of %d is in the log", logged, synced)
	}
	kv = openAt(t, tailOptions(powerCut(fs))).KV.(*KV)
	if at := l.found(t, kv); at != l.at {
		t.Errorf("%d commits were durable, %d are there", l.at, at)
	}
}

// TestMarkInLog: a mark says of nothing that it is there which is in the tail alone, since a start looks
// at it before it replays that.
func TestMarkInLog(t *testing.T) {
	l := newTailLoad(4)
	fs := newMem(t)
	for range 20 {
		o := tailOptions(fs)
		o.tailHalf, o.markEvery = 1<<20, time.Hour
		kv := openAt(t, o).KV.(*KV)
		for range 5 + l.rng.IntN(60) {
			l.step(t, kv, false)
		}
		if !kv.marker.count() {
			t.Fatal("no mark")
		}
		kv.marker.guard.Write()
		l.step(t, kv, false)
		fs = powerCut(fs)
		kv = openAt(t, tailOptions(fs)).KV.(*KV)
		if at := l.found(t, kv); at != l.at {
			t.Fatalf("%d commits were durable, %d are there", l.at, at)
		}
		fs = killed(fs)
	}
}

// TestTailHasPages: commits that the tail makes durable fill pages.
func TestTailHasPages(t *testing.T) {
	l := newTailLoad(5)
	fs := newMem(t)
	o := tailOptions(fs)
	o.tailHalf = 1 << 20
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop()
	for range 40 {
		l.step(t, kv, false)
	}
	b, err := readWhole(fs, "/store/"+record.TailFile)
	if err != nil {
		t.Fatal(err)
	}
	h, ok := record.ParseTailHeader(b)
	if !ok {
		t.Fatal("no header")
	}
	commits, whole, off := 0, 0, record.TailHeaderBytes
	for _, r := range record.ParseTailRecords(b[off:], h) {
		if r.Version != 0 {
			commits++
		}
		if off += record.TailRecordBytes + len(r.Batch); off%fileio.PageBytes == 0 {
			whole++
		}
	}
	// Those of the engine itself do not fill a page.
	if commits < 30 || whole < 30 {
		t.Errorf("%d commits, %d times the end of a page", commits, whole)
	}
}

// TestTailSyncsShared cuts the power while several write, now alone, now not, now relaxed: what was durable is
// there, of each.
func TestTailSyncsShared(t *testing.T) {
	const writers = 3
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	fs := newMem(t)
	var acked [writers]atomic.Uint64
	for round := range 25 {
		o := tailOptions(fs)
		o.tailHalf, o.tailRest = 64<<10, 20
		kv := openAt(t, o).KV.(*KV)
		var stop atomic.Bool
		var done sync.WaitGroup
		for w := range writers {
			rng := rand.New(rand.NewPCG(seed, uint64(round*writers+w)))
			done.Go(func() {
				key, n := []byte{'k', byte(w)}, acked[w].Load()
				for !stop.Load() {
					c, relaxed := cluster.Strict(ctx), w > 0 && rng.IntN(4) == 0
					if relaxed {
						c = cluster.Relaxed(ctx)
					}
					n++
					value := binary.BigEndian.AppendUint64(nil, n)
					value = append(value, make([]byte, rng.IntN(6000))...)
					if err := kv.Update(c, func(t cluster.Txn) error { t.Set(key, value); return nil }); err != nil {
						t.Error(err)
						return
					}
					if !relaxed {
						acked[w].Store(n)
					}
					if w > 0 && rng.IntN(10) == 0 {
						time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		var before [writers]uint64
		for w := range acked {
			before[w] = acked[w].Load()
		}
		cut := powerCut(fs)
		stop.Store(true)
		done.Wait()
		fs = cut
		err := openAt(t, tailOptions(killed(fs))).KV.View(ctx, func(r cluster.Reader) error {
			for w := range writers {
				v, err := r.Get([]byte{'k', byte(w)})
				if err != nil {
					return err
				}
				at := uint64(0)
				if v != nil {
					at = binary.BigEndian.Uint64(v)
				}
				if at < before[w] {
					t.Errorf("round %d: %d commits of writer %d were durable, after the power cut there are %d", round, before[w], w, at)
				}
				acked[w].Store(at)
			}
			return nil
		})
		if err != nil || t.Failed() {
			t.Fatal(err)
		}
	}
}
