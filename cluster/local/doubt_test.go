package local

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

// segmentBlobs stores blobs until a second segment is begun, and returns those
// of the first.
func segmentBlobs(t *testing.T, b *Blobs, size int) (ids []cluster.BlobID, first uint64) {
	t.Helper()
	for i := 1; ; i++ {
		id := cluster.BlobID{Content: uint64(i), Seq: 1}
		if err := storeBlob(b, id, patterned(i, size)); err != nil {
			t.Fatal(err)
		}
		p, err := b.index.get(id)
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = p.Segment
		}
		if p.Segment != first {
			return ids, first
		}
		ids = append(ids, id)
	}
}

func patterned(i, size int) []byte {
	d := make([]byte, size)
	for k := range d {
		d[k] = byte(i + k*7)
	}
	return d
}

// damageBlob flips a byte of a blob and returns the file and its offset there.
func damageBlob(t *testing.T, b *Blobs, id cluster.BlobID, at int64) (path string, off int64) {
	t.Helper()
	p, err := b.index.get(id)
	if err != nil {
		t.Fatal(err)
	}
	path, off = b.placePath(id, &p), p.Offset+at
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var one [1]byte
	if _, err := f.ReadAt(one[:], off); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 0x20
	if _, err := f.WriteAt(one[:], off); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return path, off
}

func diskBytes(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestDoubt: a segment with damage is emptied and gives back the space around
// it, the damaged bytes stay where they are through a start, and when the
// damaged blob is deleted the file goes, and is not used again.
func TestDoubt(t *testing.T) {
	const size = 100_000
	o := Options{Dir: t.TempDir(), SegmentBytes: 2 << 20, collectEvery: 5 * time.Millisecond}
	c := openAt(t, o)
	b := c.Blobs.(*Blobs)
	ids, first := segmentBlobs(t, b, size)
	bad, good := ids[3], append(append([]cluster.BlobID{}, ids[:3]...), ids[4:]...)
	path, off := damageBlob(t, b, bad, 70_000)
	if err := b.Verify(ctx, bad); !errors.Is(err, cluster.ErrCorrupt) {
		t.Fatalf("verify: %v", err)
	}
	moved := func() bool {
		for _, id := range good {
			if p, err := b.index.get(id); err != nil || p.Segment == first {
				return false
			}
		}
		return true
	}
	waitFor(t, "the good blobs move", moved)
	rest := record.Bytes(size) + fileio.PageBytes
	waitFor(t, "the space around the damage comes back", func() bool { return diskBytes(t, path) <= rest })
	check := func() {
		t.Helper()
		for i, id := range ids {
			if id == bad {
				continue
			}
			if err := readBack(b, id, patterned(i+1, size)); err != nil {
				t.Errorf("blob %d: %v", i, err)
			}
		}
		// The bytes are there for who wants to save them, the good block too.
		if n, err := b.ReadAt(ctx, bad, make([]byte, cluster.BlockBytes), 0); n != cluster.BlockBytes || err != nil {
			t.Errorf("good block: %d, %v", n, err)
		}
		if _, err := b.ReadAt(ctx, bad, make([]byte, 1000), 70_000); !errors.Is(err, cluster.ErrCorrupt) {
			t.Errorf("damaged block: %v", err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		raw := make([]byte, size)
		if _, err := f.ReadAt(raw, off-70_000); err != nil {
			t.Fatal(err)
		}
		raw[70_000] ^= 0x20
		if string(raw) != string(patterned(4, size)) {
			t.Error("the damaged record changed")
		}
	}
	check()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openAt(t, o)
	b = c.Blobs.(*Blobs)
	check()
	if err := b.Delete(ctx, bad); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the segment goes", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err)
	})
	waitFor(t, "the doubt ends", func() bool {
		left, err := b.index.doubted()
		return err == nil && len(left) == 0
	})
	if _, spare := b.segments.Idle(); spare != 0 {
		t.Errorf("%d segments are ones that were used before", spare)
	}
}

// TestDoubtOfCurrent: damage in the segment that is being filled ends it.
func TestDoubtOfCurrent(t *testing.T) {
	c := openAt(t, Options{Dir: t.TempDir()})
	b := c.Blobs.(*Blobs)
	bad := cluster.BlobID{Content: 1, Seq: 1}
	if err := storeBlob(b, bad, patterned(1, 50_000)); err != nil {
		t.Fatal(err)
	}
	damageBlob(t, b, bad, 10)
	if _, err := b.ReadAt(ctx, bad, make([]byte, 100), 0); !errors.Is(err, cluster.ErrCorrupt) {
		t.Fatalf("read: %v", err)
	}
	next := cluster.BlobID{Content: 2, Seq: 1}
	if err := storeBlob(b, next, patterned(2, 50_000)); err != nil {
		t.Fatal(err)
	}
	p, err := b.index.get(bad)
	if err != nil {
		t.Fatal(err)
	}
	q, err := b.index.get(next)
	if err != nil {
		t.Fatal(err)
	}
	if p.Segment == q.Segment {
		t.Error("the damaged segment was written on")
	}
}

// TestDoubtDamagedTrailer: a record that the collector cannot find keeps its
// segment as it is.
func TestDoubtDamagedTrailer(t *testing.T) {
	const size = 100_000
	o := Options{Dir: t.TempDir(), SegmentBytes: 2 << 20, collectEvery: 5 * time.Millisecond}
	c := openAt(t, o)
	b := c.Blobs.(*Blobs)
	ids, first := segmentBlobs(t, b, size)
	damageBlob(t, b, ids[2], record.Bytes(size)-20) // the trailer
	damageBlob(t, b, ids[5], 3)
	if err := b.Verify(ctx, ids[2]); !errors.Is(err, cluster.ErrCorrupt) {
		t.Fatalf("verify: %v", err)
	}
	waitFor(t, "the others move", func() bool {
		g, _ := b.segments.Figures(first)
		return g.Damaged && g.Live == 2*record.Bytes(size)
	})
	if err := readBack(b, ids[2], patterned(3, size)); err != nil {
		t.Errorf("whose trailer alone is damaged: %v", err)
	}
	if _, err := b.ReadAt(ctx, ids[5], make([]byte, 100), 0); !errors.Is(err, cluster.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
}

// TestDoubtGone: of a segment that is gone nothing is remembered, since a new
// one may get its number.
func TestDoubtGone(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	c := openAt(t, o)
	if err := c.Blobs.(*Blobs).index.doubt(77); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openAt(t, o)
	if left, err := c.Blobs.(*Blobs).index.doubted(); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
