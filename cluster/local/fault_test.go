package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"
	ns "ogw/vfs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// faultFS fails the nth call that is counted, and perhaps all after it.
type faultFS struct {
	at     atomic.Int64 // 0: none
	calls  atomic.Int64
	sticky bool
	err    error
	count  func(errorfs.Op) bool
	hit    atomic.Pointer[string]
}

func (f *faultFS) String() string { return "nth call" }

func (f *faultFS) MaybeError(op errorfs.Op) error {
	at := f.at.Load()
	if at == 0 || !f.count(op) {
		return nil
	}
	n := f.calls.Add(1)
	if n == at || f.sticky && n > at {
		what := fmt.Sprintf("%v %s", op.Kind, op.Path)
		f.hit.CompareAndSwap(nil, &what)
		return f.err
	}
	return nil
}

func mutating(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
}

// TestFaults fails the nth mutating call, for every n of a short scenario: the
// caller gets an error of the contract, the process goes on, and what was
// acknowledged is there after a restart.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		err    error
		sticky bool
		want   []error
	}{
		{"EIO", syscall.EIO, false, []error{cluster.ErrUnavailable}},
		{"EROFS", syscall.EROFS, true, []error{cluster.ErrReadOnly, cluster.ErrUnavailable}},
	} {
		t.Run(test.name, func(t *testing.T) {
			step := 1
			if testing.Short() {
				step = 7
			}
			for n := 1; n < 60; n += step {
				base := newMem(t)
				f := &faultFS{err: test.err, sticky: test.sticky, count: mutating}
				if hit := runFault(t, base, f, int64(n), test.want); !hit {
					break // the scenario makes no more calls
				}
			}
		})
	}
}

func runFault(t *testing.T, base *vfs.MemFS, f *faultFS, n int64, want []error) bool {
	t.Helper()
	o := memOptions(errorfs.Wrap(base, f))
	o.collectEvery, o.markEvery = time.Millisecond, time.Millisecond
	c, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	j := newJournal()
	f.at.Store(n)
	var failed error
	for i := 0; i < 6 && failed == nil; i++ {
		failed = j.step(c, 0, i)
	}
	f.at.Store(0)
	what := "nothing"
	if p := f.hit.Load(); p != nil {
		what = *p
	}
	if failed != nil {
		if !isAny(failed, want) {
			t.Errorf("call %d, %s: the client got %v", n, what, failed)
		}
		// What is there can be read all the while, except for a commit that
		// is visible but will never be durable.
		if err := j.check(c); err != nil && !isAny(err, want) {
			t.Errorf("call %d, %s: before the restart: %v", n, what, err)
		}
		if err := j.checkBlobs(c); err != nil {
			t.Errorf("call %d, %s: before the restart: %v", n, what, err)
		}
	}
	closed := make(chan struct{})
	go func() {
		c.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatalf("call %d, %s: Close hangs", n, what)
	}
	again, err := Open(ctx, memOptions(base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})))
	if err != nil {
		t.Fatalf("call %d, %s: open again: %v", n, what, err)
	}
	defer again.Close()
	if err := j.check(again); err != nil {
		t.Errorf("call %d, %s: after the restart: %v", n, what, err)
	}
	if err := j.step(again, 1, 1); err != nil {
		t.Errorf("call %d, %s: the store takes no writes after the restart: %v", n, what, err)
	}
	return f.hit.Load() != nil
}

// TestDataFaults: a failing data disk leaves the metadata alone and heals.
func TestDataFaults(t *testing.T) {
	for _, size := range []int{1000, 2 << 20} {
		base := newMem(t)
		f := &faultFS{err: syscall.ENOSPC, sticky: true, count: func(op errorfs.Op) bool {
			return mutating(op) && !strings.Contains(op.Path, "/meta/")
		}}
		c := openAt(t, memOptions(errorfs.Wrap(base, f)))
		kept := cluster.BlobID{Content: 1, Seq: 1}
		if err := storeBlob(c.Blobs, kept, seedBytes(3)); err != nil {
			t.Fatal(err)
		}
		f.at.Store(1)
		id := cluster.BlobID{Content: 2, Seq: 1}
		for range 3 {
			if err := storeBlob(c.Blobs, id, make([]byte, size)); !errors.Is(err, cluster.ErrNoSpace) {
				t.Errorf("full disk, %d bytes: %v", size, err)
			}
		}
		if _, err := c.Blobs.Locate(ctx, id); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("a blob that failed is there: %v", err)
		}
		if err := readBack(c.Blobs, kept, seedBytes(3)); err != nil {
			t.Error(err)
		}
		if err := c.Blobs.Delete(ctx, kept); err != nil {
			t.Errorf("Delete on a full disk: %v", err)
		}
		f.at.Store(0)
		if err := storeBlob(c.Blobs, id, make([]byte, size)); err != nil {
			t.Errorf("the space is back, but: %v", err)
		}
		if err := readBack(c.Blobs, id, make([]byte, size)); err != nil {
			t.Error(err)
		}
	}
}

// TestBadSector: a blob that the medium cannot read is damaged, and no more than that. Who
// reads it is told so, and a backup and a check of all data go on with the others.
func TestBadSector(t *testing.T) {
	for _, size := range []int{150_000, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var bad struct {
				path string
				off  int64
			}
			f := &faultFS{err: syscall.EIO, sticky: true, count: func(op errorfs.Op) bool {
				return op.Kind == errorfs.OpFileReadAt && op.Path == bad.path && op.Offset == bad.off
			}}
			c := openAt(t, memOptions(errorfs.Wrap(newMem(t), f)))
			n, err := ns.Open(ctx, c, ns.Config{NoBackground: true})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close(ctx)
			if _, err := n.CreateBucket(ctx, "bucket", nil); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"a", "b", "c"} {
				if _, err := n.PutObject(ctx, ns.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(make([]byte, size)), ns.PutOptions{Size: int64(size)}); err != nil {
					t.Fatal(err)
				}
			}
			_, where, err := n.Whereis(ctx, "bucket/a")
			if err != nil {
				t.Fatal(err)
			}
			var id cluster.BlobID
			if err := c.Blobs.List(ctx, id, func(i cluster.BlobInfo) error {
				if i.ID.String() == where[0].Blob {
					id = i.ID
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			b := c.Blobs.(*Blobs)
			p, err := b.index.get(id)
			if err != nil {
				t.Fatal(err)
			}
			bad.path, bad.off = b.placePath(id, &p), p.Offset
			f.at.Store(1)
			o, err := n.GetObject(ctx, ns.ObjectName{Bucket: "bucket", Key: "a"}, ns.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			for _, at := range []int64{0, 5000} {
				if _, err := o.ReadAt(make([]byte, 1000), at); !errors.Is(err, ns.ErrCorrupt) || errors.Is(err, ns.ErrUnavailable) {
					t.Errorf("read at %d: %v", at, err)
				}
			}
			wantBackupOf(t, n, id)
			report, err := n.Check(ctx, ns.CheckOptions{Data: true})
			if err != nil {
				t.Fatalf("check: %v", err)
			}
			if len(report.Problems) != 1 || report.Problems[0].Kind != "corrupt-data" || !strings.Contains(report.Problems[0].Detail, "bucket/a") {
				t.Errorf("check: %+v", report.Problems)
			}
		})
	}
}

// wantBackupOf takes a backup, in which all blobs but one are whole.
func wantBackupOf(t *testing.T, n *ns.FS, bad cluster.BlobID) {
	t.Helper()
	held, err := n.BeginBackup(ctx, ns.BackupConfig{DropSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	blobs := make(map[cluster.BlobID]ns.BackupBlob)
	for from := []byte(nil); ; {
		next, err := held.Pairs(ctx, from, func(_, _ []byte) error { return nil }, func(x ns.BackupBlob) error {
			blobs[x.ID] = x
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if from = next; from == nil {
			break
		}
	}
	if len(blobs) != 3 {
		t.Fatalf("the backup has %d blobs", len(blobs))
	}
	buf := make([]byte, 1<<20)
	for id, x := range blobs {
		err := held.ReadBlob(ctx, id, x.Size, io.Discard, buf)
		if id == bad && !errors.Is(err, ns.ErrCorrupt) || id != bad && err != nil {
			t.Errorf("the backup of blob %v: %v", id, err)
		}
	}
}

// TestUnreadableIndex: where the place of a blob cannot be read nothing is known of the blob.
func TestUnreadableIndex(t *testing.T) {
	b := openAt(t, memOptions(newMem(t))).Blobs.(*Blobs)
	id := cluster.BlobID{Content: 1, Seq: 1}
	if err := b.unread(id, syscall.EIO); !errors.Is(err, cluster.ErrCorrupt) || errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("a file: %v", err)
	}
	if err := b.unread(id, ioerr.Map(syscall.EIO)); !errors.Is(err, cluster.ErrUnavailable) || errors.Is(err, cluster.ErrCorrupt) {
		t.Errorf("the index: %v", err)
	}
}

// TestDamage flips, cuts, swaps and removes what is on the disk: reads give
// ErrCorrupt and no bytes.
func TestDamage(t *testing.T) {
	const small, large = 150_000, 3 << 20
	rng := rand.New(rand.NewPCG(5, 5))
	for _, size := range []int{small, large} {
		for _, damage := range []string{"flip", "cut", "swap", "zero", "remove", "footer"} {
			t.Run(fmt.Sprintf("%s/%d", damage, size), func(t *testing.T) {
				fs := newMem(t)
				c := openAt(t, memOptions(fs))
				data := make([]byte, size)
				rand.NewChaCha8([32]byte{9}).Read(data)
				id, other := cluster.BlobID{Content: 1, Seq: 1}, cluster.BlobID{Content: 1, Seq: 2}
				for _, id := range []cluster.BlobID{id, other} {
					if err := storeBlob(c.Blobs, id, data); err != nil {
						t.Fatal(err)
					}
					data[0]++
				}
				b := c.Blobs.(*Blobs)
				p, err := b.index.get(id)
				if err != nil {
					t.Fatal(err)
				}
				q, _ := b.index.get(other)
				path, otherPath := b.placePath(id, &p), b.placePath(other, &q)
				if damage == "footer" && p.Segment != 0 {
					t.Skip("the checksums of segments are in the index")
				}
				mutate(t, fs, damage, path, otherPath, p, q, rng)
				got := make([]byte, size)
				n, err := c.Blobs.ReadAt(ctx, id, got, 0)
				if n != 0 || !errors.Is(err, cluster.ErrCorrupt) || !strings.Contains(err.Error(), id.String()) {
					t.Errorf("ReadAt: %d, %v", n, err)
				}
			})
		}
	}
}

func mutate(t *testing.T, fs *vfs.MemFS, damage, path, otherPath string, p, q record.Place, rng *rand.Rand) {
	t.Helper()
	raw, err := fs.UnsafeGetFileDataBuffer(path)
	if err != nil {
		t.Fatal(err)
	}
	switch damage {
	case "flip":
		raw[p.Offset+rng.Int64N(p.Size)] ^= 1 << rng.IntN(8)
	case "zero":
		clear(raw[p.Offset+p.Size/2 : p.Offset+p.Size/2+10])
	case "footer":
		raw[len(raw)-1-rng.IntN(int(record.FooterBytes(p.Size)))] ^= 1
	case "remove":
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
	case "swap":
		others, err := fs.UnsafeGetFileDataBuffer(otherPath)
		if err != nil {
			t.Fatal(err)
		}
		copy(raw[p.Offset:p.Offset+record.Bytes(p.Size)], others[q.Offset:q.Offset+record.Bytes(q.Size)])
	case "cut":
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(raw[:p.Offset+p.Size/2]); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

func isAny(err error, want []error) bool {
	for _, w := range want {
		if errors.Is(err, w) {
			return true
		}
	}
	return false
}

// TestLogFaults fails each call that the log makes when it begins anew: the
// process goes on, reads too, and a restart has all that was acknowledged.
func TestLogFaults(t *testing.T) {
	const records = 300
	forGood := 0
	for _, fault := range []struct {
		err  error
		want error
	}{{syscall.EIO, cluster.ErrUnavailable}, {syscall.EROFS, cluster.ErrReadOnly}} {
		for n := int64(1); ; n += 3 {
			base := newMem(t)
			f := &faultFS{err: fault.err, sticky: true, count: func(op errorfs.Op) bool {
				log := strings.HasSuffix(op.Path, ".log") || op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, "/meta")
				return log && op.Kind.ReadOrWrite() == errorfs.OpIsWrite
			}}
			o := memOptions(errorfs.Wrap(base, f))
			o.memTable = 64 << 10
			o.tailAlone = math.MaxInt // each commit waits for the log, whose errors are what this is about
			c := openAt(t, o)
			f.at.Store(n)
			stored, failed := 0, error(nil)
			// Where the last of the records makes the call, the next one learns.
			for ; failed == nil && (stored < records || f.hit.Load() != nil && stored < 2*records); stored++ {
				failed = c.KV.Update(ctx, func(txn cluster.Txn) error {
					return txn.Set(fmt.Appendf(nil, "key%04d", stored), make([]byte, 2000))
				})
			}
			if failed == nil {
				if f.calls.Load() >= n {
					t.Errorf("%v, call %d, %s: no client was told", fault.err, n, *f.hit.Load())
				}
				break // there are no more calls
			}
			what := fmt.Sprintf("%v, call %d, %s", fault.err, n, *f.hit.Load())
			if !errors.Is(failed, fault.want) && !errors.Is(failed, cluster.ErrUnavailable) {
				t.Errorf("%s: the client got %v", what, failed)
			}
			if err := c.Writable(); errors.Is(err, cluster.ErrFailed) != errors.Is(failed, cluster.ErrFailed) {
				t.Errorf("%s: the client got %v, and whether it can be written to: %v", what, failed, err)
			} else if errors.Is(err, cluster.ErrFailed) {
				forGood++
			}
			keysThere(t, what, c, stored-1)
			again := openAt(t, memOptions(base.CrashClone(vfs.CrashCloneCfg{})))
			keysThere(t, what+", after the restart", again, stored-1)
			f.at.Store(0)
			c.Close()
			again.Close()
		}
	}
	if forGood < 10 {
		t.Errorf("the store failed for good %d times", forGood)
	}
}

// TestTableFault: one table that could not be written is written again, and no commit fails.
func TestTableFault(t *testing.T) {
	f := &faultFS{err: syscall.EIO, count: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst")
	}}
	o := memOptions(errorfs.Wrap(newMem(t), f))
	o.memTable = 64 << 10
	c := openAt(t, o)
	f.at.Store(1)
	const records = 500
	for i := range records {
		err := c.KV.Update(cluster.Strict(ctx), func(txn cluster.Txn) error {
			return txn.Set(fmt.Appendf(nil, "key%04d", i), make([]byte, 2000))
		})
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
	}
	if f.hit.Load() == nil {
		t.Error("no table was written")
	}
	keysThere(t, "after a table that was written again", c, records)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// flushFaultTime is when a commit counts as waiting for ever.
const flushFaultTime = 20 * time.Second

// TestTableFaults: while tables cannot be written, for another reason than space, and the log can, new
// commits get the error at once instead of waiting for memtables; no loop takes the
// processor; and commits go on once the disk is well, with all that was acknowledged.
func TestTableFaults(t *testing.T) {
	const records = 1000
	for name, kind := range map[string]errorfs.OpKind{"create": errorfs.OpCreate, "write": errorfs.OpFileWrite, "sync": errorfs.OpFileSyncData} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faultFS{err: syscall.EIO, sticky: true, count: func(op errorfs.Op) bool {
				return op.Kind == kind && strings.HasSuffix(op.Path, ".sst")
			}}
			o := memOptions(errorfs.Wrap(newMem(t), f))
			o.memTable = 64 << 10
			c := openAt(t, o)
			set := func(i int) error {
				return c.KV.Update(cluster.Strict(ctx), func(txn cluster.Txn) error {
					return txn.Set(fmt.Appendf(nil, "key%04d", i), make([]byte, 2000))
				})
			}
			f.at.Store(1)
			stored := 0
			err := error(nil)
			for ; err == nil && stored < records; stored++ {
				done := make(chan error, 1)
				go func() { done <- set(stored) }()
				select {
				case err = <-done:
				case <-time.After(flushFaultTime):
					t.Fatalf("commit %d waits", stored)
				}
			}
			if !errors.Is(err, cluster.ErrUnavailable) {
				t.Fatalf("after %d commits: %v", stored, err)
			}
			if why := c.Writable(); !errors.Is(why, cluster.ErrUnavailable) {
				t.Errorf("writable: %v", why)
			}
			began := f.calls.Load()
			time.Sleep(2 * time.Second)
			if n := f.calls.Load() - began; n == 0 || n > 20 {
				t.Errorf("%d attempts in two seconds", n)
			}
			keysThere(t, "while tables cannot be written", c, stored-1)
			f.at.Store(0)
			for deadline := time.Now().Add(flushFaultTime); err != nil; err = set(stored) {
				if time.Now().After(deadline) {
					t.Fatalf("the disk is well again: %v", err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			keysThere(t, "once the disk is well", c, stored-1)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func keysThere(t *testing.T, what string, c *cluster.Cluster, n int) {
	t.Helper()
	if err := c.KV.View(cluster.Relaxed(ctx), func(r cluster.Reader) error {
		for i := range n {
			if v, err := r.Get(fmt.Appendf(nil, "key%04d", i)); err != nil || len(v) != 2000 {
				return fmt.Errorf("key %d: %d bytes, %w", i, len(v), err)
			}
		}
		return nil
	}); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
