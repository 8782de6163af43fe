package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/watchdog"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sys/unix"
)

// TestReserve: near the end of the space data are refused first, then
// metadata, and deletes and counters go on longest.
func TestReserve(t *testing.T) {
	fs := newMem(t)
	const gib = 1 << 30
	setDisk := func(free, total int64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: uint64(free), TotalBytes: uint64(total), UsedBytes: uint64(total - free)})
	}
	setDisk(50*gib, 100*gib)
	c := openAt(t, memOptions(fs))
	kv := c.KV.(*KV)
	if u, err := c.Blobs.Usage(ctx); err != nil || u.Total != 100*gib || u.Used != 50*gib || u.Free >= 50*gib {
		t.Errorf("%+v %v", u, err)
	}
	txns := map[string]func(cluster.Txn) error{
		"write":  func(txn cluster.Txn) error { return txn.Set([]byte("k"), make([]byte, 300)) },
		"tiny":   func(txn cluster.Txn) error { return txn.Set([]byte("k"), make([]byte, 8)) },
		"delete": func(txn cluster.Txn) error { return txn.Delete([]byte("k")) },
		"replace": func(txn cluster.Txn) error { // grows, though it deletes
			if err := txn.Delete([]byte("l")); err != nil {
				return err
			}
			return txn.Set([]byte("k"), make([]byte, 5000))
		},
	}
	for i, test := range []struct {
		name                string
		free, total, held   int64
		data, write, delete bool
	}{
		{"half", 50 * gib, 100 * gib, 0, true, true, true},
		{"data", 256<<20 - 1, 100 * gib, 0, false, true, true},
		{"metadata", 128<<20 - 1, 100 * gib, 0, false, false, true},
		{"last", 16<<20 - 1, 100 * gib, 0, false, false, false},
		{"reserve file", 0, 100 * gib, 128 << 20, false, false, true},
		{"small", 200 << 20, 400 << 20, 0, true, true, true},
		{"small data", 25<<20 - 1, 400 << 20, 0, false, true, true},
		{"small metadata", 12 << 20, 400 << 20, 0, false, false, true},
		{"small last", 1 << 20, 400 << 20, 0, false, false, false},
		{"back", gib, 100 * gib, 0, true, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, ok := range map[string]bool{"data": test.data, "write": test.write, "replace": test.write,
				"tiny": test.delete, "delete": test.delete} {
				setDisk(test.free, test.total)
				kv.space.Held = func() int64 { return test.held }
				kv.space.Measure()
				var err error
				if name == "data" {
					err = storeBlob(c.Blobs, cluster.BlobID{Content: 1, Seq: uint64(i)}, []byte("data"))
				} else {
					err = kv.Update(ctx, txns[name])
				}
				if ok && err != nil || !ok && !errors.Is(err, cluster.ErrNoSpace) {
					t.Errorf("%s: %v", name, err)
				}
			}
			u, err := c.Blobs.Usage(ctx)
			if err != nil || u.Free > 0 != test.data {
				t.Errorf("Usage: %+v, %v", u, err)
			}
		})
	}
}

// TestLogWaits: when the metadata's disk is full at any of its calls, what is
// under way waits, what is new is refused at once, reads go on, and when there
// is space again nothing was lost and nothing has to be opened again.
func TestLogWaits(t *testing.T) {
	waited := 0
	for n := int64(1); n < 30; n += 3 {
		base := newMem(t)
		f := &faultFS{err: syscall.ENOSPC, sticky: true, count: func(op errorfs.Op) bool {
			kind := op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite
			return kind && strings.Contains(op.Path, "/meta/") && !strings.Contains(op.Path, "MANIFEST")
		}}
		c := openAt(t, memOptions(errorfs.Wrap(base, f)))
		kv := c.KV.(*KV)
		j := newJournal()
		if err := j.step(c, 0, 0); err != nil {
			t.Fatal(err)
		}
		f.at.Store(n)
		done := make(chan error, 1)
		go func() {
			for i := 1; i < 12; i++ {
				if err := j.step(c, 0, i); err != nil {
					done <- err
					return
				}
				if i%4 == 0 {
					kv.db.Flush() // a full disk is an error here, as it should be
				}
			}
			done <- nil
		}()
		stalled := false
		for !stalled && len(done) == 0 {
			stalled = kv.health.Err() != nil
			time.Sleep(time.Millisecond)
		}
		if stalled {
			waited++
			set := func(txn cluster.Txn) error { return txn.Set([]byte("new"), []byte("v")) }
			if err := kv.Update(ctx, set); !errors.Is(err, cluster.ErrNoSpace) {
				t.Errorf("call %d: a new transaction on a full disk: %v", n, err)
			}
			if err := kv.View(ctx, func(r cluster.Reader) error {
				_, err := r.Get([]byte("absent"))
				return err
			}); err != nil {
				t.Errorf("call %d: a read on a full disk: %v", n, err)
			}
		}
		f.at.Store(0)
		if err := <-done; err != nil && !errors.Is(err, cluster.ErrNoSpace) {
			t.Errorf("call %d: %v", n, err)
		}
		waitFor(t, "space to be back", func() bool { return kv.health.Err() == nil })
		if err := j.step(c, 0, 20); err != nil {
			t.Errorf("call %d: the space is back, but: %v", n, err)
		}
		if err := j.check(c); err != nil {
			t.Errorf("call %d: %v", n, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("call %d: Close: %v", n, err)
		}
		again := openAt(t, memOptions(base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})))
		if err := j.check(again); err != nil {
			t.Errorf("call %d: after the restart: %v", n, err)
		}
	}
	if waited == 0 {
		t.Error("nothing ever waited")
	}
}

// stallFS is a disk on which no write of the metadata finds space, from the time that at is set.
func stallFS() *faultFS {
	return &faultFS{err: syscall.ENOSPC, sticky: true, count: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "/meta/")
	}}
}

// stall has the disk be full, and a commit wait for it. It returns how that ends.
func (f *faultFS) stall(t *testing.T, c *cluster.Cluster) <-chan error {
	t.Helper()
	f.at.Store(1)
	done := make(chan error, 1)
	go func() { done <- setter(c)(0) }()
	waitFor(t, "the write to wait", func() bool { return c.KV.(*KV).health.Err() != nil })
	return done
}

// TestCloseFull: a disk that stays full does not keep the process, whatever of the data half
// waits for the metadata.
func TestCloseFull(t *testing.T) {
	for _, work := range []bool{false, true} {
		f := stallFS()
		o := memOptions(errorfs.Wrap(newMem(t), f))
		o.patience = 4 * testPatience
		c := openAt(t, o)
		id := cluster.BlobID{Content: 1, Seq: 1}
		if work {
			if err := storeBlob(c.Blobs, id, seedBytes(7)); err != nil {
				t.Fatal(err)
			}
			if err := c.Blobs.Delete(ctx, id); err != nil { // the reaper has work
				t.Fatal(err)
			}
		}
		done := f.stall(t, c)
		began := time.Now()
		err := ends(t, "Close", c.Close)
		if took := time.Since(began); err == nil || errors.Is(err, watchdog.ErrHangs) || took > 2*c.KV.(*KV).stallMax {
			t.Errorf("Close (the reaper waits: %v): %v after %v", work, err, took)
		}
		if err := <-done; !errors.Is(err, cluster.ErrUnavailable) && !errors.Is(err, cluster.ErrNoSpace) {
			t.Errorf("the write that waited: %v", err)
		}
	}
}

// TestSyncFull: Sync waits for space no longer than its context allows.
func TestSyncFull(t *testing.T) {
	f := stallFS()
	o := memOptions(errorfs.Wrap(newMem(t), f))
	o.patience = 4 * testPatience
	c := openAt(t, o)
	sync := func() error {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return ends(t, "Sync", func() error { return c.KV.Sync(short) })
	}
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	done := f.stall(t, c)
	if err := sync(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of a full disk: %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := ends(t, "Sync", func() error { return c.KV.Sync(canceled) }); !errors.Is(err, context.Canceled) {
		t.Errorf("of a full disk, canceled: %v", err)
	}
	f.at.Store(0)
	if err := <-done; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	if err := ends(t, "Sync", func() error { return c.KV.Sync(ctx) }); err != nil {
		t.Errorf("there is space: %v", err)
	}
}

// smallDisks are file systems of a few hundred MiB.
var smallDisks = map[string]func(t *testing.T, dir string){
	"tmpfs": func(t *testing.T, dir string) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"); err != nil {
			t.Skipf("cannot mount a small disk here: %v", err)
		}
	},
	"ext4": func(t *testing.T, dir string) { mountLoop(t, dir, 256<<20) },
}

// mountLoop mounts a fresh ext4 of a file and returns the file.
func mountLoop(t *testing.T, dir string, bytes int64) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(bytes); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, args := range [][]string{
		{"mkfs.ext4", "-q", "-m", "0", image},
		{"mount", "-o", "loop,errors=remount-ro", image, dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("cannot mount a small disk here: %s: %v: %s", args[0], err, out)
		}
	}
	return image
}

func smallDisk(t *testing.T, kind string) string {
	t.Helper()
	dir := t.TempDir()
	smallDisks[kind](t, dir)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
			unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
	return dir
}

// fillDisk writes a file until not a byte is left.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 1 << 20; n >= 512; {
		if _, err := f.Write(make([]byte, n)); errors.Is(err, unix.ENOSPC) {
			n /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	f.Sync()
}

// TestDiskFull fills a small disk, by the store and by a neighbour down to
// the last byte: writes fail cleanly, reads and deletes go on, a start works,
// and space comes back without one.
func TestDiskFull(t *testing.T) {
	for kind := range smallDisks {
		for _, neighbour := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/neighbour=%v", kind, neighbour), func(t *testing.T) {
				runDiskFull(t, smallDisk(t, kind), neighbour)
			})
		}
	}
}

// someKeys are stored before the disk is full, and deleted one by one after.
const someKeys = 400

func runDiskFull(t *testing.T, disk string, neighbour bool) {
	dir := filepath.Join(disk, "data")
	o := Options{Dir: dir, collectEvery: 20 * time.Millisecond}
	c := openAt(t, o)
	reserve := func() bool {
		space := c.KV.(*KV).space
		info, err := os.Stat(filepath.Join(dir, record.ReserveFile))
		return err == nil && info.Size() == diskspace.ReserveFileBytes(space.DiskBytes())
	}
	waitFor(t, "the reserve", reserve)
	key := func(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }
	pad := bytes.Repeat([]byte("x"), 400)
	keys := 0
	set := func() error {
		err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set(key(keys), pad) })
		if err == nil {
			keys++
		}
		return err
	}
	var ids []cluster.BlobID
	var sizes []int
	put := func(size int) error {
		id := cluster.BlobID{Content: uint64(len(ids) + 1), Seq: 1}
		err := storeBlob(c.Blobs, id, bytes.Repeat([]byte{byte(len(ids))}, size))
		if err == nil {
			ids, sizes = append(ids, id), append(sizes, size)
		}
		return err
	}
	size := func(i int) int { return []int{100_000, 3 << 20}[i%2] }
	for range someKeys {
		if err := set(); err != nil {
			t.Fatal(err)
		}
	}
	if neighbour {
		for range 20 {
			if err := put(size(len(ids))); err != nil {
				t.Fatal(err)
			}
		}
		fillDisk(t, filepath.Join(disk, "neighbour"))
		c.KV.(*KV).space.Measure()
	} else {
		for err := error(nil); err == nil; {
			if err = put(size(len(ids))); err != nil && !errors.Is(err, cluster.ErrNoSpace) {
				t.Fatalf("full disk: %v", err)
			}
		}
		for err := error(nil); err == nil && keys < 500_000; {
			if err = c.KV.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error {
				return txn.Set(fmt.Appendf(nil, "fill%06d", keys), make([]byte, 64<<10))
			}); err != nil && !errors.Is(err, cluster.ErrNoSpace) {
				t.Fatalf("full disk: %v", err)
			}
			keys++
		}
		keys = someKeys
	}
	// Of what the store itself wrote, Pebble may just have given some back: a
	// log, after its pairs are in a table.
	if err := put(100_000); err != nil && !errors.Is(err, cluster.ErrNoSpace) || err == nil && neighbour {
		t.Errorf("data on a full disk: %v", err)
	}
	if err := set(); neighbour && !errors.Is(err, cluster.ErrNoSpace) {
		t.Errorf("metadata on a full disk: %v", err)
	}
	readAll := func() {
		t.Helper()
		for i, id := range ids {
			if err := readBack(c.Blobs, id, bytes.Repeat([]byte{byte(i)}, sizes[i])); err != nil {
				t.Fatalf("read on a full disk: %v", err)
			}
		}
	}
	readAll()
	// A start on the full disk.
	if err := c.Close(); err != nil {
		t.Fatalf("Close on a full disk: %v", err)
	}
	if neighbour {
		fillDisk(t, filepath.Join(disk, "neighbour")) // what the close gave back
	}
	c = openAt(t, o)
	if neighbour {
		fillDisk(t, filepath.Join(disk, "neighbour"))
	}
	c.KV.(*KV).space.Measure()
	readAll()
	for i := range keys {
		if err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Delete(key(i)) }); err != nil {
			t.Fatalf("delete %d on a full disk: %v", i, err)
		}
	}
	// More than a log holds, so that new ones are needed.
	big := make([]byte, 6<<10)
	for i := range 1000 {
		if err := c.KV.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error {
			for k := range 20 {
				if err := txn.Delete(fmt.Appendf(nil, "fill%06d", someKeys+20*i+k)); err != nil {
					return err
				}
			}
			return txn.Set([]byte("queue"), big)
		}); err != nil {
			t.Fatalf("delete on a full disk: %v", err)
		}
	}
	if err := c.Blobs.Delete(ctx, ids...); err != nil {
		t.Fatalf("delete of data on a full disk: %v", err)
	}
	if neighbour {
		if err := os.Remove(filepath.Join(disk, "neighbour")); err != nil {
			t.Fatal(err)
		}
	}
	ids, sizes, keys = nil, nil, 0
	waitFor(t, "space for data", func() bool { return put(3<<20) == nil })
	waitFor(t, "space for metadata", func() bool { return set() == nil })
	waitFor(t, "the reserve to be back", reserve)
	// The first of it is back before the collector and Pebble are through.
	waitFor(t, "space for all that follows", func() bool {
		usage, err := c.Blobs.Usage(ctx)
		return err == nil && usage.Free >= 64<<20
	})
	for len(ids) < 30 {
		if err := put(100_000); err != nil {
			t.Fatalf("after the space was back: %v", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadySegmentsAreRoom: segments made ahead do not keep data out of a disk
// that is nearly full.
func TestReadySegmentsAreRoom(t *testing.T) {
	for kind := range smallDisks {
		t.Run(kind, func(t *testing.T) {
			disk := smallDisk(t, kind)
			const segment = 16 << 20
			c := openAt(t, Options{Dir: filepath.Join(disk, "data"), SegmentBytes: segment})
			b := c.Blobs.(*Blobs)
			n := 0
			put := func(size int) error {
				n++
				return storeBlob(b, cluster.BlobID{Content: uint64(n), Seq: 1}, make([]byte, size))
			}
			if err := put(1000); err != nil {
				t.Fatal(err)
			}
			ready := func() int {
				ready, _ := b.segments.Idle()
				return ready
			}
			waitFor(t, "segments made ahead", func() bool { return ready() == 2 })
			waitFor(t, "the reserve", func() bool { return c.KV.(*KV).reserveFile.Held() > 0 })
			usage, err := b.Usage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			// A neighbour takes what data may take, and a little more.
			f, err := os.Create(filepath.Join(disk, "neighbour"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := unix.Fallocate(int(f.Fd()), 0, 0, usage.Free+1<<20); err != nil {
				t.Fatal(err)
			}
			if usage, err = b.Usage(ctx); err != nil || usage.Free != 0 {
				t.Fatalf("%+v, %v", usage, err)
			}
			for i, size := range []int{1000, 3 << 20} {
				if err := put(size); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
				if i == 0 && ready() != 1 {
					t.Errorf("%d segments are ready", ready())
				}
			}
			stored := 0
			for err = nil; err == nil && stored < 20; stored++ {
				err = put(3 << 20)
			}
			if !errors.Is(err, cluster.ErrNoSpace) || ready() != 0 || stored < segment/(3<<20) {
				t.Errorf("%d blobs, %d segments are ready: %v", stored, ready(), err)
			}
		})
	}
}
