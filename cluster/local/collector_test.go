package local

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

// waitFor polls until ok, for a few seconds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not in time", what)
}

func segmentFiles(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, record.SegmentDir, "*"+record.SegmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestCollect deletes most blobs while others are read: the space comes back,
// the rest stays readable all the while, through a restart as well.
func TestCollect(t *testing.T) {
	const count, keepEvery, size = 200, 10, 150_000
	dir := t.TempDir()
	o := Options{Dir: dir, SegmentBytes: 2 << 20, collectEvery: 10 * time.Millisecond}
	c := openAt(t, o)
	id := func(i int) cluster.BlobID { return cluster.BlobID{Content: uint64(i), Seq: 1} }
	data := func(i int) []byte {
		d := make([]byte, size)
		d[0], d[size-1] = byte(i), byte(i)
		return d
	}
	for i := range count {
		if err := storeBlob(c.Blobs, id(i), data(i)); err != nil {
			t.Fatal(err)
		}
	}
	before := segmentFiles(t, dir)
	if before < 14 {
		t.Fatalf("only %d segments", before)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i = (i + keepEvery) % count {
				select {
				case <-stop:
					return
				default:
				}
				if err := readBack(c.Blobs, id(i), data(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range count {
		if i%keepEvery != 0 {
			if err := c.Blobs.Delete(ctx, id(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// 20 blobs of 150 kB live: 2 segments, the current one, those made ahead,
	// and what is just below half full.
	waitFor(t, "collection", func() bool { return segmentFiles(t, dir) <= 8 })
	close(stop)
	readers.Wait()
	check := func() {
		t.Helper()
		for i := 0; i < count; i += keepEvery {
			if err := readBack(c.Blobs, id(i), data(i)); err != nil {
				t.Error(err)
			}
		}
	}
	check()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openAt(t, o)
	check()
	for i := 0; i < count; i += keepEvery {
		if err := c.Blobs.Delete(ctx, id(i)); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "collection of the last", func() bool { return segmentFiles(t, dir) <= 2+1 })
}

// TestCollectDamaged: a damaged blob is not lost silently with its segment,
// and its neighbours move on.
func TestCollectDamaged(t *testing.T) {
	fs := newMem(t)
	o := memOptions(fs)
	o.SegmentBytes = 2 << 20
	o.collectEvery = 5 * time.Millisecond
	c := openAt(t, o)
	ids := make([]cluster.BlobID, 30)
	for i := range ids {
		ids[i] = cluster.BlobID{Content: uint64(i + 1)}
		if err := storeBlob(c.Blobs, ids[i], seedBytes(4)); err != nil {
			t.Fatal(err)
		}
	}
	b := c.Blobs.(*Blobs)
	p, err := b.index.get(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	raw, err := fs.UnsafeGetFileDataBuffer(b.placePath(ids[0], &p))
	if err != nil {
		t.Fatal(err)
	}
	raw[p.Offset+5] ^= 1
	// Leave the damaged one and its neighbour in their segment.
	if err := c.Blobs.Delete(ctx, ids[2:]...); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the neighbour moves", func() bool {
		q, err := b.index.get(ids[1])
		return err == nil && q.Segment != p.Segment
	})
	waitFor(t, "the segment is marked", func() bool {
		g, _ := b.segments.Figures(p.Segment)
		return g.Damaged
	})
	if err := readBack(c.Blobs, ids[1], seedBytes(4)); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(b.segments.Path(p.Segment)); err != nil {
		t.Errorf("the segment of a damaged blob is gone: %v", err)
	}
}

// badSegment is a medium that cannot open one segment.
type badSegment struct {
	vfsDisk
	path atomic.Pointer[string]
}

func (d *badSegment) check(op, path string) error {
	if p := d.path.Load(); p != nil && *p == path {
		return &os.PathError{Op: op, Path: path, Err: syscall.EUCLEAN}
	}
	return nil
}

func (d *badSegment) Open(path string) (fileio.File, error) {
	if err := d.check("open", path); err != nil {
		return nil, err
	}
	return d.vfsDisk.Open(path)
}

func (d *badSegment) Length(path string) (int64, error) {
	if err := d.check("stat", path); err != nil {
		return 0, err
	}
	return d.vfsDisk.Length(path)
}

// TestCollectBesideUnreadable: a segment that the medium cannot open keeps no other from being
// collected, while it is in use and after a restart.
func TestCollectBesideUnreadable(t *testing.T) {
	fs := newMem(t)
	disk := &badSegment{vfsDisk: vfsDisk{fs}}
	o := memOptions(fs)
	o.SegmentBytes = 2 << 20
	o.collectEvery = 5 * time.Millisecond
	o.disk = disk
	next := uint64(1)
	// fill stores blobs and deletes most: what stays is moved, but for that of the bad segment.
	fill := func(c *cluster.Cluster, bad bool) {
		t.Helper()
		ids := make([]cluster.BlobID, 30)
		for i := range ids {
			ids[i] = cluster.BlobID{Content: next}
			next++
			if err := storeBlob(c.Blobs, ids[i], seedBytes(4)); err != nil {
				t.Fatal(err)
			}
		}
		b := c.Blobs.(*Blobs)
		place := func(id cluster.BlobID) uint64 {
			p, err := b.index.get(id)
			if err != nil {
				t.Fatal(err)
			}
			return p.Segment
		}
		kept := map[uint64][]cluster.BlobID{} // one of the first segment, so that it comes first, two of others
		first, current := place(ids[0]), place(ids[len(ids)-1])
		for _, id := range ids {
			if n := place(id); len(kept[n]) == 0 || n != first && len(kept[n]) == 1 {
				kept[n] = append(kept[n], id)
			}
		}
		if len(kept) < 3 {
			t.Fatalf("%d segments", len(kept))
		}
		if bad {
			path := b.segments.Path(first)
			disk.path.Store(&path)
		}
		drop := slices.DeleteFunc(slices.Clone(ids), func(id cluster.BlobID) bool { return slices.Contains(kept[place(id)], id) })
		if err := c.Blobs.Delete(ctx, drop...); err != nil {
			t.Fatal(err)
		}
		delete(kept, first)
		delete(kept, current)
		waitFor(t, "the blobs of other segments move", func() bool {
			for from, list := range kept {
				if slices.ContainsFunc(list, func(id cluster.BlobID) bool { return place(id) == from }) {
					return false
				}
			}
			return true
		})
	}
	c := openAt(t, o)
	fill(c, true)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	fill(openAt(t, o), false)
}

// TestSweep: files that a crash left without an entry go, others stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	c := openAt(t, Options{Dir: dir})
	kept, orphan := cluster.BlobID{Content: 1, Seq: 1}, cluster.BlobID{Content: 2, Seq: 2}
	if err := storeBlob(c.Blobs, kept, seedBytes(7)); err != nil {
		t.Fatal(err)
	}
	path := c.Blobs.(*Blobs).filePath(orphan)
	c.Close()
	foreign := filepath.Join(filepath.Dir(path), "README")
	for _, p := range []string{path, foreign} {
		if err := os.WriteFile(p, []byte("left"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c = openAt(t, Options{Dir: dir})
	waitFor(t, "sweep", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err)
	})
	<-c.Blobs.(*Blobs).sweeper.done
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("the sweep took what is not ours: %v", err)
	}
	if err := readBack(c.Blobs, kept, seedBytes(7)); err != nil {
		t.Error(err)
	}
}

// TestSweepWaitsForIndex: a file goes once it is durable that the index does not name it,
// also where the reaper does not have it any more: while that waits for the sync, after one that
// failed, and where its queue was full.
func TestSweepWaitsForIndex(t *testing.T) {
	fs := newCrashFS()
	c := openAt(t, stackOptions(fs))
	b := c.Blobs.(*Blobs)
	id := cluster.BlobID{Content: 1, Seq: 1}
	if err := storeBlob(b, id, seedBytes(7)); err != nil {
		t.Fatal(err)
	}
	if err := c.KV.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	b.reaper.mu.Lock()
	clear(b.reaper.queue)
	b.reaper.mu.Unlock()
	path := b.filePath(id)
	if _, err := b.sweeper.folder(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	b.reaper.reap()
	fs.mu.Lock()
	if fs.names[path] != nil {
		t.Error("the sweep left the file")
	}
	left := fs.clone(crashMode{percent: 100}, rand.New(rand.NewPCG(1, 2)))
	fs.mu.Unlock()
	c = openAt(t, stackOptions(left))
	if err := readBack(c.Blobs, id, seedBytes(7)); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("after a power cut: %v", err)
	}
	if _, err := c.Blobs.(*Blobs).index.get(id); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("after a power cut the index names a file that was removed: %v", err)
	}
}

// TestDeletedFilesGo: the file of a deleted blob is removed in time.
func TestDeletedFilesGo(t *testing.T) {
	c := openAt(t, Options{Dir: t.TempDir()})
	id := cluster.BlobID{Content: 1, Seq: 1}
	if err := storeBlob(c.Blobs, id, seedBytes(7)); err != nil {
		t.Fatal(err)
	}
	path := c.Blobs.(*Blobs).filePath(id)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := c.Blobs.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "removal", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err)
	})
}
