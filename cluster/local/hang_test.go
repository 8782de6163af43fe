package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/watchdog"
	ns "ogw/vfs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// hangFS lets calls wait until it is released, as a disk that neither works nor fails.
type hangFS struct {
	which func(errorfs.Op) bool
	waits atomic.Bool // a call does, or did

	mu      sync.Mutex
	hanging bool
	goOn    *sync.Cond
}

func newHangFS(which func(errorfs.Op) bool) *hangFS {
	h := &hangFS{which: which}
	h.goOn = sync.NewCond(&h.mu)
	return h
}

func (h *hangFS) String() string { return "hang" }

func (h *hangFS) MaybeError(op errorfs.Op) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.hanging && h.which(op) {
		h.waits.Store(true)
		h.goOn.Wait()
	}
	return nil
}

func (h *hangFS) hang(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hanging = on
	h.goOn.Broadcast()
}

func syncsOf(suffix string) func(errorfs.Op) bool {
	return func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, suffix) &&
			(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
	}
}

// hangBound is when a call counts as waiting for ever, where patience is testPatience.
const (
	testPatience = time.Second
	hangBound    = 20 * time.Second
)

// ends returns the error of f, which must not wait for ever.
func ends(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(hangBound):
		t.Fatalf("%s hangs", what)
		return nil
	}
}

// hangAt has the disk not answer, with commit as what waits for it first: that alone waits
// longer than the patience. It returns when the disk is slow, and what commit returns once that
// has ended.
func (h *hangFS) hangAt(t *testing.T, c *cluster.Cluster, commit func() error) <-chan error {
	h.hang(true)
	first := make(chan error, 1)
	go func() { first <- commit() }()
	// What a busy machine made slow before it hung may end, and the disk is well for a tick.
	var since time.Time
	waitFor(t, "the disk is slow", func() bool {
		if !h.waits.Load() || !c.KV.(*KV).health.Disk.Slow() {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > testPatience/4
	})
	return first
}

// setter returns what sets one of the keys that keysThere looks for.
func setter(c *cluster.Cluster) func(int) error {
	return func(i int) error {
		return c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set(fmt.Appendf(nil, "key%04d", i), make([]byte, 2000)) })
	}
}

// TestDiskHangs: while the disk does not answer, commits end with an unknown outcome, and those
// that come then at once; the store is not writable, and what is durable is read. When the
// disk answers, or after a power cut, all is there that was acknowledged.
func TestDiskHangs(t *testing.T) {
	for name, which := range map[string]func(errorfs.Op) bool{
		"log":  syncsOf(".log"),
		"tail": syncsOf("/" + record.TailFile),
		"all":  mutating,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs, hung := newMem(t), newHangFS(which)
			defer hung.hang(false)
			o := memOptions(errorfs.Wrap(fs, hung))
			o.patience, o.memTable = testPatience, 64<<10
			c := openAt(t, o)
			set := setter(c)
			const durable = 10
			for i := range durable {
				if err := set(i); err != nil {
					t.Fatal(err)
				}
			}
			first := hung.hangAt(t, c, func() (err error) {
				for began := time.Now(); err == nil && time.Since(began) < testPatience/10; { // some are synced in the log, some in the tail
					err = set(durable)
				}
				return err
			})
			const commits = 10
			ended := make(chan error, commits)
			for i := range commits {
				go func() { ended <- set(durable + 1 + i) }()
			}
			for range commits - 1 { // one may be being applied
				err := ends(t, "a commit", func() error { return <-ended })
				if !errors.Is(err, cluster.ErrUnavailable) && (err != nil || name != "tail") { // the log has it then
					t.Errorf("a commit: %v", err)
				}
			}
			waitFor(t, "the disk hangs", func() bool { return c.KV.(*KV).health.Err() != nil })
			began := time.Now()
			if err := set(durable); !errors.Is(err, cluster.ErrUnavailable) || time.Since(began) > testPatience/2 {
				t.Errorf("one more after %v: %v", time.Since(began), err)
			}
			if err := c.Writable(); !errors.Is(err, watchdog.ErrHangs) {
				t.Errorf("writable: %v", err)
			}
			keysThere(t, "while the disk hangs", c, durable)
			left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
			keysThere(t, "after a power cut", openAt(t, memOptions(left)), durable)

			hung.hang(false)
			// What hung first may have been a sync in the background; then the commit is told, too.
			if err := <-first; err != nil && !errors.Is(err, watchdog.ErrHangs) {
				t.Errorf("the first commit, when the disk answers: %v", err)
			}
			if err := ends(t, "the last commit", func() error { return <-ended }); err != nil && !errors.Is(err, cluster.ErrUnavailable) {
				t.Errorf("the last commit: %v", err)
			}
			waitFor(t, "the disk answers", func() bool { return c.KV.(*KV).health.Err() == nil })
			for i := range 2 * durable {
				if err := ends(t, "a commit", func() error { return set(i) }); err != nil {
					t.Fatalf("the disk answers: %v", err)
				}
			}
			if err := ends(t, "Close", c.Close); err != nil {
				t.Fatal(err)
			}
			keysThere(t, "after a restart", openAt(t, memOptions(fs)), 2*durable)
		})
	}
}

// TestBlobHangs: nor do blobs wait for such a disk, small or large, and what they leave is given
// back when it answers.
func TestBlobHangs(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "large": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs, hung := newMem(t), newHangFS(mutating)
			defer hung.hang(false)
			o := memOptions(errorfs.Wrap(fs, hung))
			o.disk = vfsDisk{o.fs}
			o.patience = testPatience
			c := openAt(t, o)
			blobs := c.Blobs.(*Blobs)
			put := func(n uint64) error {
				w, err := blobs.Create(ctx, cluster.BlobID{Content: n}, int64(size))
				if err != nil {
					return err
				}
				defer w.Abort()
				if _, err := w.Write(make([]byte, size)); err != nil {
					return err
				}
				_, _, err = w.Commit(ctx)
				return err
			}
			first := hung.hangAt(t, c, func() error { return put(1) })
			var puts sync.WaitGroup
			for i := range uint64(10) {
				puts.Go(func() {
					if err := ends(t, "a blob", func() error { return put(2 + i) }); !errors.Is(err, watchdog.ErrHangs) {
						t.Errorf("a blob: %v", err)
					}
				})
			}
			puts.Wait()
			if err := ends(t, "Delete", func() error { return blobs.Delete(ctx, cluster.BlobID{Content: 1}) }); err != nil && !errors.Is(err, watchdog.ErrHangs) {
				t.Errorf("Delete: %v", err)
			}
			hung.hang(false)
			if err := <-first; err != nil && !errors.Is(err, watchdog.ErrHangs) { // it has just answered
				t.Errorf("the first blob, when the disk answers: %v", err)
			}
			waitFor(t, "no blob is being written", func() bool {
				blobs.mu.Lock()
				defer blobs.mu.Unlock()
				return len(blobs.active) == 0 && blobs.health.Err() == nil
			})
			if err := put(100); err != nil {
				t.Errorf("the disk answers: %v", err)
			}
		})
	}
}

// TestReaperHangs: files of deleted blobs are removed when the disk answers again.
func TestReaperHangs(t *testing.T) {
	fs, hung := newMem(t), newHangFS(syncs)
	defer hung.hang(false)
	o := memOptions(errorfs.Wrap(fs, hung))
	o.patience = testPatience
	c := openAt(t, o)
	b := c.Blobs.(*Blobs)
	id := cluster.BlobID{Content: 1, Seq: 1}
	if err := storeBlob(b, id, seedBytes(7)); err != nil {
		t.Fatal(err)
	}
	first := hung.hangAt(t, c, func() error { return setter(c)(0) })
	if err := b.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the disk hangs", func() bool { return b.health.Disk.Err() != nil })
	if err := ends(t, "the reaper", func() error { b.reaper.reap(); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(b.filePath(id)); err != nil {
		t.Errorf("while it is not durable that the blob is gone: %v", err)
	}
	hung.hang(false)
	if err := <-first; err != nil && !errors.Is(err, watchdog.ErrHangs) { // a sync of the log came first
		t.Error(err)
	}
	waitFor(t, "the file of the deleted blob goes", func() bool {
		_, err := fs.Stat(b.filePath(id))
		return errors.Is(err, os.ErrNotExist)
	})
}

// syncs are those that commits wait for.
func syncs(op errorfs.Op) bool { return syncsOf(".log")(op) || syncsOf("/"+record.TailFile)(op) }

// TestHangsInBackground: a disk for which nobody's call waits any more hangs as long as the sync
// that found it so: a mark's, or that of Erase.
func TestHangsInBackground(t *testing.T) {
	for name, wait := range map[string]func(*KV){
		"mark":  func(kv *KV) { kv.marker.count() },
		"erase": func(kv *KV) { _ = kv.Erase(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs, hung := newMem(t), newHangFS(syncs)
			defer hung.hang(false)
			o := memOptions(errorfs.Wrap(fs, hung))
			o.patience, o.markEvery = testPatience, time.Hour
			c := openAt(t, o)
			kv := c.KV.(*KV)
			for range 3 { // the first are answered once the log has them
				if err := kv.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error { return txn.Set([]byte("k"), nil) }); err != nil {
					t.Fatal(err)
				}
			}
			hung.hang(true)
			var background sync.WaitGroup
			background.Go(func() { wait(kv) })
			waitFor(t, "it waits for the disk", hung.waits.Load)
			if err := ends(t, "Sync", func() error { return kv.Sync(ctx) }); !errors.Is(err, watchdog.ErrHangs) {
				t.Errorf("Sync: %v", err)
			}
			for end := time.Now().Add(testPatience); time.Now().Before(end); time.Sleep(testPatience / 100) {
				if kv.health.Disk.Err() == nil {
					t.Fatal("the disk answers, while it does not")
				}
			}
			hung.hang(false)
			background.Wait()
			waitFor(t, "the disk answers", func() bool { return kv.health.Err() == nil })
		})
	}
}

// TestRelaxedBoundAfterHang: what was answered just before the disk hung is durable in the log soon
// after it answers, even if nothing else is changed.
func TestRelaxedBoundAfterHang(t *testing.T) {
	t.Parallel()
	fs, hung := newMem(t), newHangFS(syncsOf(".log"))
	defer hung.hang(false)
	o := memOptions(errorfs.Wrap(fs, hung))
	o.patience, o.markEvery = testPatience, time.Hour
	c := openAt(t, o)
	kv := c.KV.(*KV)
	set := func(ctx context.Context) error {
		return kv.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), nil) })
	}
	for range 3 {
		if err := set(cluster.Relaxed(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	first := hung.hangAt(t, c, func() error { return kv.health.Disk.Run(kv.durability.sync) })
	var err error
	for err == nil {
		err = set(cluster.Relaxed(ctx))
		time.Sleep(testPatience / 500)
	}
	if !errors.Is(err, watchdog.ErrHangs) {
		t.Errorf("a commit: %v", err)
	}
	answered := kv.visible.Load()
	kv.durability.mu.Lock()
	if timer := kv.durability.timer; timer != nil {
		timer.Stop() // it fires while the disk hangs
	}
	kv.durability.mu.Unlock()
	kv.durability.timedSync()
	hung.hang(false)
	<-first
	waitFor(t, "the log has it", func() bool { return kv.durability.logged.Load() >= answered })
}

// TestHangsDecided: a change that ended with an unknown outcome because the disk hung has happened by
// then, or never will: open files show what the store has, and who opens a file that was to be
// removed keeps it.
func TestHangsDecided(t *testing.T) {
	changes := map[string]func(*ns.FS) error{
		"put": func(n *ns.FS) error {
			_, err := n.PutObject(ctx, ns.ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader("another"), ns.PutOptions{Size: 7})
			return err
		},
		"unlink": func(n *ns.FS) error {
			dir, err := n.Resolve(cluster.Relaxed(ctx), ns.Root, "bucket", true)
			if err != nil {
				return err
			}
			return n.Unlink(ctx, ns.Root, dir.Ino, "f")
		},
	}
	for name, change := range changes {
		for _, waiting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s waiting=%v", name, waiting), func(t *testing.T) {
				t.Parallel()
				hangsDecided(t, waiting, change)
			})
		}
	}
}

// hangsDecided makes the change while the disk hangs: it is being applied, or waiting for one that is.
func hangsDecided(t *testing.T, waiting bool, change func(*ns.FS) error) {
	var log, tail, waits atomic.Bool // which hang; a write of the tail does
	log.Store(true)
	hung := newHangFS(func(op errorfs.Op) bool {
		if tail.Load() && op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, "/"+record.TailFile) {
			waits.Store(true)
			return true
		}
		return log.Load() && syncsOf(".log")(op)
	})
	defer hung.hang(false)
	o := memOptions(errorfs.Wrap(newMem(t), hung))
	o.patience, o.markEvery = 2*testPatience, time.Hour
	c := openAt(t, o)
	kv := c.KV.(*KV)
	n, err := ns.Open(ctx, c, ns.Config{NoBackground: true, Async: true})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(ctx)
	if _, err := n.CreateBucket(ctx, "bucket", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := n.PutObject(ctx, ns.ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader("content"), ns.PutOptions{Size: 7}); err != nil {
		t.Fatal(err)
	}
	a, err := n.Resolve(ctx, ns.Root, "bucket/f", true)
	if err != nil {
		t.Fatal(err)
	}
	open := func(what string) (f *ns.File, shows func() string) {
		f, err := n.Open(cluster.Relaxed(ctx), ns.Root, a.Ino, ns.OpenRead|ns.OpenWrite)
		if errors.Is(err, ns.ErrStale) {
			return nil, func() string { return "" }
		}
		if err != nil {
			t.Fatalf("open %s: %v", what, err)
		}
		return f, func() string {
			b := make([]byte, 10)
			read, err := f.ReadAt(cluster.Relaxed(ctx), b, 0)
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("read %s: %v", what, err)
			}
			return string(b[:read])
		}
	}
	var before func() string
	if !strings.Contains(t.Name(), "unlink") { // else it becomes an orphan in any case
		f, shows := open("before")
		defer f.Close(ctx)
		before = shows
		before()
	}

	first := hung.hangAt(t, c, func() error { return kv.health.Disk.Run(kv.durability.sync) })
	tail.Store(true)
	written := make(chan error, 1)
	if waiting {
		go func() {
			written <- kv.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error { return txn.Set([]byte("k"), nil) })
		}()
		waitFor(t, "a commit is being applied", waits.Load)
	}
	changed := make(chan error, 1)
	go func() { changed <- change(n) }()
	waitFor(t, "the disk hangs", func() bool { return kv.health.Disk.Err() != nil })
	var outcome error
	if waiting {
		outcome = ends(t, "the change", func() error { return <-changed })
	} else {
		waitFor(t, "the change is being applied", waits.Load)
		select {
		case outcome = <-changed: // then it was taken back
		case <-time.After(testPatience / 2):
			hung.hang(false)
			outcome = ends(t, "the change, when the disk answers", func() error { return <-changed })
		}
	}
	if outcome != nil && !errors.Is(outcome, ns.ErrUnavailable) {
		t.Errorf("the change: %v", outcome)
	}
	f, after := open("after it")
	shown := after()
	if before != nil && before() != shown {
		t.Errorf("an open file shows %q, the store has %q", before(), shown)
	}
	log.Store(false)
	hung.hang(true)
	<-first
	waitFor(t, "the disk answers", func() bool { return kv.health.Err() == nil })
	hung.hang(false)
	if waiting {
		if err := <-written; err != nil && !errors.Is(err, cluster.ErrUnavailable) {
			t.Error(err)
		}
	}
	for range 20 { // whoever waited had a turn
		if err := setter(c)(0); err != nil {
			t.Fatal(err)
		}
	}
	if late, now := open("in the end"); now() != shown {
		t.Errorf("the store has %q, and had %q when the change ended: %v", now(), shown, outcome)
	} else if late != nil {
		late.Close(ctx)
	}
	if f == nil {
		return
	}
	defer f.Close(ctx)
	if after() != shown {
		t.Errorf("an open file shows %q, and showed %q when the change ended", after(), shown)
	}
	if _, err := f.WriteAt(ctx, []byte("X"), 0); err != nil {
		t.Errorf("write to the file that is open: %v", err)
	}
	if err := f.Sync(ctx); err != nil {
		t.Errorf("sync of the file that is open: %v", err)
	}
}

// TestCloseHangs: Close of a store whose disk does not answer returns, with an error.
func TestCloseHangs(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		fs, hung := newMem(t), newHangFS(mutating)
		defer hung.hang(false)
		o := memOptions(errorfs.Wrap(fs, hung))
		o.patience = testPatience
		c := openAt(t, o)
		set := setter(c)
		if err := set(0); err != nil {
			t.Fatal(err)
		}
		if waiting {
			hung.hangAt(t, c, func() error { return set(1) })
		}
		hung.hang(true)
		if err := ends(t, "Close", c.Close); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("Close while a commit waits (%v): %v", waiting, err)
		}
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
		keysThere(t, "after a power cut", openAt(t, memOptions(left)), 1)
	}
}
