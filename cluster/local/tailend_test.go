package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestCloseKeepsTail: what Pebble's log cannot be given at the end stays in the tail. The disk is nearly
// full, so that Close writes no mark.
func TestCloseKeepsTail(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		l := newTailLoad(6)
		fs := newMem(t)
		broken := &faultFS{err: cause, sticky: true, count: func(op errorfs.Op) bool {
			switch op.Kind {
			case errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
				return strings.Contains(op.Path, "/meta/") && strings.HasSuffix(op.Path, ".log")
			}
			return false
		}}
		o := tailOptions(errorfs.Wrap(fs, broken))
		o.tailHalf, o.markEvery = 1<<20, time.Hour
		kv := openAt(t, o).KV.(*KV)
		kv.durability.stop()
		for range 40 {
			l.step(t, kv, false)
		}
		if kv.durability.logged.Load() == kv.durability.synced.Load() {
			t.Fatal("all is in the log: the test is about nothing")
		}
		const total = 100 << 30
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20, TotalBytes: total, UsedBytes: total - 1<<20})
		if err := kv.space.Measure(); err != nil {
			t.Fatal(err)
		}
		broken.at.Store(1)
		kv.spaceWait.Stop() // as after closeStallMax
		if err := kv.Close(); err == nil {
			t.Errorf("%v: Close returned no error", cause)
		}
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: total / 2, TotalBytes: total, UsedBytes: total / 2})
		if err := fileio.SyncDir(fs, "/store"); err != nil { // a file that was removed is gone
			t.Fatal(err)
		}
		for what, left := range map[string]*vfs.MemFS{"the end of the process": killed(fs), "a power cut": powerCut(fs)} {
			if at := l.found(t, openAt(t, tailOptions(left)).KV.(*KV)); at != l.at {
				t.Errorf("%v: %d commits were durable, after %s there are %d", cause, l.at, what, at)
			}
		}
	}
}

// TestErasesTakeTurns: one that ends lets commits into the tail, which another must not overwrite.
func TestErasesTakeTurns(t *testing.T) {
	l := newTailLoad(7)
	fs := newMem(t)
	var armed atomic.Bool
	wiping, goOn := make(chan struct{}), make(chan struct{})
	o := tailOptions(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && fs.PathBase(op.Path) == record.TailFile && armed.CompareAndSwap(true, false) {
			close(wiping)
			<-goOn
		}
		return nil
	})))
	o.tailHalf = 64 << 10
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop()
	for range 10 {
		l.step(t, kv, false)
	}
	armed.Store(true)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- kv.eraseTail(ctx) }()
	<-wiping
	go func() { second <- kv.eraseTail(ctx) }()
	select {
	case err := <-second:
		second <- err
	case <-time.After(100 * time.Millisecond):
	}
	for range 10 {
		l.step(t, kv, false)
	}
	close(goOn)
	for _, done := range []chan error{first, second} {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if at := l.found(t, openAt(t, tailOptions(powerCut(fs))).KV.(*KV)); at != l.at {
		t.Errorf("%d commits were durable, after a power cut there are %d", l.at, at)
	}
}

// TestStartCut cuts the power before each of a start's operations, where commits were durable by the tail alone.
func TestStartCut(t *testing.T) {
	l := newTailLoad(8)
	fs := newMem(t)
	o := startOptions(fs)
	o.memTable = 0
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop()
	for range 60 {
		l.step(t, kv, false)
	}
	left := powerCut(fs)
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for n := 1; ; n++ {
		fs := killed(left)
		var after *vfs.MemFS
		when := ""
		c, err := Open(t.Context(), startOptions(opHook(fs, func(at int, op errorfs.Op) error {
			if at == n {
				after = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 80}[n%3], RNG: rng})
				when = fmt.Sprintf("before operation %d of %s", op.Kind, op.Path)
			}
			return nil
		})))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if after == nil {
			if n < 50 {
				t.Errorf("%d cuts: the test is about nothing", n)
			}
			return
		}
		l.mustBeWhole(t, when, after)
	}
}

// TestTailSyncOutOfFiles: where the process may open no more files, the log makes a commit durable, and the
// tail those that come when it may.
func TestTailSyncOutOfFiles(t *testing.T) {
	l := newTailLoad(9)
	fs := newMem(t)
	opens := 0
	o := tailOptions(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpenDir && op.Path == "/store" && opens > 0 {
			opens--
			return syscall.EMFILE
		}
		return nil
	})))
	o.tailHalf, o.markEvery = 1<<20, time.Hour
	kv := openAt(t, o).KV.(*KV)
	kv.durability.stop()
	opens = 2
	for range 20 {
		l.step(t, kv, false)
	}
	if opens > 0 {
		t.Error("the folder was not to be opened: the test is about nothing")
	}
	if synced, logged := kv.durability.synced.Load(), kv.durability.logged.Load(); logged == synced {
		t.Error("the tail is not used any more")
	}
	if at := l.found(t, openAt(t, tailOptions(powerCut(fs))).KV.(*KV)); at != l.at {
		t.Errorf("%d commits were durable, after a power cut there are %d", l.at, at)
	}
}

// TestTailOutcomeUnknown: a commit that is visible, and that a start may find in the tail, did not fail for lack
// of space, though the store did.
func TestTailOutcomeUnknown(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		fs := newMem(t)
		var kv *KV
		var fail atomic.Bool
		o := tailOptions(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !fail.Load() || fs.PathBase(op.Path) != record.TailFile {
				return nil
			}
			_ = kv.health.Fail(syscall.ENOSPC)
			return syscall.EIO
		})))
		o.tailHalf, o.markEvery = 1<<20, time.Hour
		kv = openAt(t, o).KV.(*KV)
		l := newTailLoad(10)
		for range 10 {
			l.step(t, kv, relaxed)
		}
		fail.Store(true)
		c := cluster.Strict(ctx)
		if relaxed {
			c = cluster.Relaxed(ctx)
		}
		err := kv.Update(c, func(t cluster.Txn) error { return t.Set([]byte("k"), []byte("v")) })
		if !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("relaxed %t: the commit says %v", relaxed, err)
		}
	}
}
