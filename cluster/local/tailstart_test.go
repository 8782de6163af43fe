package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"ogw/cluster/local/internal/metafs"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// killed returns what a kill leaves: all that was written to files.
func killed(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// startOptions make the replay of a tail begin new logs and tables.
func startOptions(fs vfs.FS) Options {
	o := tailOptions(fs)
	o.tailHalf = 128 << 10
	o.memTable = 32 << 10
	return o
}

// killedLoad returns a store whose process was killed, with a tail that matters.
func killedLoad(t *testing.T, commits int) (*tailLoad, *vfs.MemFS) {
	t.Helper()
	l := newTailLoad(1)
	fs := newMem(t)
	o := startOptions(fs)
	o.memTable = 0
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop() // what is relaxed stays so
	for range commits {
		l.step(t, kv, true)
	}
	if synced, visible := kv.durability.synced.Load(), kv.visible.Load(); visible < synced+uint64(commits) {
		t.Fatalf("%d of %d commits are durable: the test is about nothing", synced, visible)
	}
	return l, killed(fs)
}

// opHook calls fn, one at a time, before each operation.
func opHook(fs vfs.FS, fn func(at int, op errorfs.Op) error) vfs.FS {
	var mu sync.Mutex
	at := 0
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		at++
		return fn(at, op)
	}))
}

func (l *tailLoad) mustBeWhole(t *testing.T, when string, fs vfs.FS) {
	t.Helper()
	c, err := Open(t.Context(), startOptions(fs))
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer c.Close()
	if at := l.found(t, c.KV.(*KV)); at != l.at {
		t.Fatalf("%s: %d commits were acknowledged, %d are there", when, l.at, at)
	}
}

// TestStartKilled kills a start before each of its operations, and the next one
// somewhere, and the one after.
func TestStartKilled(t *testing.T) {
	l, left := killedLoad(t, 60)
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	// start returns what is there when a start was killed before operation n,
	// nil if there was none.
	start := func(fs *vfs.MemFS, n int) (after *vfs.MemFS, what string) {
		c, err := Open(t.Context(), startOptions(opHook(fs, func(at int, op errorfs.Op) error {
			if at == n {
				after, what = killed(fs), fmt.Sprintf("%v of %s", op.Kind, op.Path)
			}
			return nil
		})))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if at := l.found(t, c.KV.(*KV)); at != l.at {
			t.Fatalf("%d commits were acknowledged, %d are there", l.at, at)
		}
		return after, what
	}
	kills := 0
	for n := 1; ; n++ {
		fs, what := start(killed(left), n)
		if fs == nil {
			break
		}
		kills++
		when := fmt.Sprintf("killed before operation %d, %s", n, what)
		for again := range 2 {
			if n%4 != again {
				continue
			}
			at := 1 + rng.IntN(n+20)
			if next, what := start(killed(fs), at); next != nil {
				fs, when = next, fmt.Sprintf("%s; then before %d, %s", when, at, what)
			}
		}
		l.mustBeWhole(t, when, fs)
	}
	if kills < 50 {
		t.Errorf("%d kills: the test is about nothing", kills)
	}
}

// TestStartFails: where a start fails before the tail is replayed, or while it
// is, the next finds all.
func TestStartFails(t *testing.T) {
	l, left := killedLoad(t, 60)
	for _, test := range []struct {
		name  string
		err   error
		fails func(op errorfs.Op, tailRead bool) bool
	}{
		{"tail cannot be opened", syscall.EIO, func(op errorfs.Op, _ bool) bool {
			return op.Kind == errorfs.OpOpen && op.Path == "/store/"+record.TailFile
		}},
		{"tail cannot be read", syscall.EIO, func(op errorfs.Op, _ bool) bool {
			return op.Kind == errorfs.OpFileRead && op.Path == "/store/"+record.TailFile
		}},
		{"no space for the replay", syscall.ENOSPC, func(op errorfs.Op, tailRead bool) bool {
			return tailRead && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate)
		}},
		{"no sync of the replay", syscall.EIO, func(op errorfs.Op, tailRead bool) bool {
			return tailRead && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := killed(left)
			for range 2 {
				read := false
				o := tailOptions(opHook(fs, func(_ int, op errorfs.Op) error {
					read = read || op.Path == "/store/"+record.TailFile && op.Kind == errorfs.OpFileRead
					if test.fails(op, read) {
						return test.err
					}
					return nil
				}))
				c, err := Open(t.Context(), o)
				if err == nil {
					c.Close()
					t.Fatal("the start succeeded")
				}
				if !errors.Is(err, test.err) {
					t.Errorf("the start says %v", err)
				}
			}
			l.mustBeWhole(t, "after starts that failed", fs)
		})
	}
}

// keepFS keeps Pebble's OPTIONS files, as a kill before their removal does.
type keepFS struct{ vfs.FS }

func (fs keepFS) Remove(name string) error {
	if len(name) > 8 && fs.PathBase(name)[:4] == "OPTI" {
		return nil
	}
	return fs.FS.Remove(name)
}

// TestTailOfAnotherKilled: nor is it where the other program was killed before
// it removed anything.
func TestTailOfAnotherKilled(t *testing.T) {
	l, fs := killedLoad(t, 20)
	db, err := pebble.Open("/store/"+record.MetaDir, &pebble.Options{FS: keepFS{fs}, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("k0"), []byte("another's"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	options, err := metafs.FindOptions(fs, "/store/"+record.MetaDir)
	if err != nil || len(options) < 2 {
		t.Fatalf("%v, %v: the test is about nothing", options, err)
	}
	kv := openAt(t, startOptions(fs)).KV.(*KV)
	value, closer, err := kv.db.Get([]byte("k0"))
	if err != nil || string(value) != "another's" {
		t.Fatalf("k0 is %.20q of %d commits, %v", value, l.at, err)
	}
	closer.Close()
}

// TestTailOfOtherLength: the halves are found where they are, though a start
// after a change of the disk would make others.
func TestTailOfOtherLength(t *testing.T) {
	for _, half := range []int64{4 << 10, 32 << 10} {
		l := newTailLoad(3)
		fs := newMem(t)
		kv := openAt(t, tailOptions(fs)).KV.(*KV)
		for range 100 {
			l.step(t, kv, true)
		}
		fs = killed(fs)
		o := tailOptions(fs)
		o.tailHalf = half
		if at := l.found(t, openAt(t, o).KV.(*KV)); at != l.at {
			t.Errorf("%d commits were acknowledged, with halves of %d bytes there are %d", l.at, half, at)
		}
	}
}
