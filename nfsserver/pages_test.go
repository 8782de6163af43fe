package nfsserver

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/vfs"
)

// countingBlobs counts what is handed out without copies.
type countingBlobs struct {
	cluster.Blobs
	bytes atomic.Int64
}

func (b *countingBlobs) Splice(ctx context.Context, id cluster.BlobID, w int, off, n int64) (int64, error) {
	k, err := cluster.SplicerOf(b.Blobs).Splice(ctx, id, w, off, n)
	b.bytes.Add(k)
	return k, err
}

// Large READs of what is stored are not copied; and whatever is stored, the bytes are those
// that were written, to the end of the file.
func TestReadPages(t *testing.T) {
	clu, err := local.Open(t.Context(), local.Options{Dir: t.TempDir(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	blobs := &countingBlobs{Blobs: clu.Blobs}
	clu.Blobs = blobs
	s := openSiteOver(t, nil, clu, vfs.Config{}, everyone)
	c := s.mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	data := randomBytes(9<<20 + 4097)
	put := func(off, n int, stable uint32) {
		for end := off + n; off < end; off += maxTransfer {
			st, _ := c.write(f, uint64(off), stable, data[off:min(off+maxTransfer, end)])
			c.must("write", st)
		}
	}
	check := func(what string, count, from int) (pages int64) {
		t.Helper()
		before := blobs.bytes.Load()
		for off := from; off < len(data); off += count {
			st, got, eof := c.read(f, uint64(off), uint32(count))
			c.must("read", st)
			if !bytes.Equal(got, data[off:min(off+count, len(data))]) {
				t.Fatalf("%s: %d bytes at %d, or others", what, len(got), off)
			}
			if eof != (off+len(got) == len(data)) {
				t.Errorf("%s: end of file at %d: %v", what, off, eof)
			}
		}
		return blobs.bytes.Load() - before
	}
	put(0, len(data), unstable)
	check("not stored", maxTransfer, 0)
	st, _ := c.commit(f)
	c.must("commit", st)
	for _, count := range []int{maxTransfer, pagesFrom, 100 << 10} {
		if n := check("stored", count, 0); n < int64(len(data))/2 {
			t.Errorf("%d bytes of %d were pages, of READs of %d", n, len(data), count)
		}
	}
	if n := check("small", pagesFrom/2, 0); n != 0 {
		t.Errorf("%d bytes of small READs were pages", n)
	}
	check("from within a page", maxTransfer, 77)
	copy(data[3<<20:], randomBytes(5000))
	put(3<<20, 5000, unstable)
	if n := check("a part not stored", maxTransfer, 0); n == 0 {
		t.Error("nothing was pages, of a file of which a part is not stored")
	}
	put(2<<20, 3<<20, fileSync)
	check("stored again", maxTransfer, 0)
}
