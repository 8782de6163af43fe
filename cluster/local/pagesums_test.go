package local

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestPartsAreVerified reads parts of blocks again and again, as programs do
// that read here and there: every byte is verified each time, also when the
// disk changes between two reads.
func TestPartsAreVerified(t *testing.T) {
	for _, size := range []int{50_000, 150_000, 1<<20 + 12_345} {
		fs := newMem(t)
		c := openAt(t, memOptions(fs))
		id := cluster.BlobID{Content: 1, Seq: 1}
		data := make([]byte, size)
		rand.NewChaCha8([32]byte{3}).Read(data)
		if err := storeBlob(c.Blobs, id, data); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(uint64(size), 1))
		readParts(t, c.Blobs, id, data, rng)
		raw, offset := rawBlob(t, c, fs, id)
		for range 100 {
			at := rng.IntN(size)
			raw[offset+at] ^= 1
			checkDamagedPart(t, c.Blobs, id, data, at, rng)
			raw[offset+at] ^= 1
		}
		readParts(t, c.Blobs, id, data, rng)
	}
}

// rawBlob returns the bytes of the file that holds id, and where it begins.
func rawBlob(t *testing.T, c *cluster.Cluster, fs *vfs.MemFS, id cluster.BlobID) ([]byte, int) {
	t.Helper()
	b := c.Blobs.(*Blobs)
	p, err := b.index.get(id)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := fs.UnsafeGetFileDataBuffer(b.placePath(id, &p))
	if err != nil {
		t.Fatal(err)
	}
	return raw, int(p.Offset)
}

func readParts(t *testing.T, b cluster.Blobs, id cluster.BlobID, data []byte, rng *rand.Rand) {
	t.Helper()
	for range 300 {
		at, n := rng.IntN(len(data)), 1+rng.IntN(3*fileio.PageBytes)
		p := make([]byte, n)
		got, err := b.ReadAt(ctx, id, p, int64(at))
		want := data[at:min(at+n, len(data))]
		if err != nil && !(errors.Is(err, io.EOF) && got < n) || !bytes.Equal(p[:got], want) {
			t.Fatalf("%d bytes at %d of %d: %d, %v", n, at, len(data), got, err)
		}
	}
}

// checkDamagedPart reads around at, where a byte is wrong.
func checkDamagedPart(t *testing.T, b cluster.Blobs, id cluster.BlobID, data []byte, at int, rng *rand.Rand) {
	t.Helper()
	from := max(0, at-rng.IntN(2*fileio.PageBytes))
	p := make([]byte, min(len(data)-from, at-from+1+rng.IntN(fileio.PageBytes)))
	if n, err := b.ReadAt(ctx, id, p, int64(from)); n != 0 || !errors.Is(err, cluster.ErrCorrupt) {
		t.Fatalf("%d bytes at %d, byte %d is damaged: %d, %v", len(p), from, at, n, err)
	}
	// Another part of the same block: its bytes or none.
	from = min(at&^(cluster.BlockBytes-1)+rng.IntN(cluster.BlockBytes-10), len(data)-10)
	if at >= from && at < from+10 {
		return
	}
	p = make([]byte, 10)
	n, err := b.ReadAt(ctx, id, p, int64(from))
	if err != nil && !errors.Is(err, cluster.ErrCorrupt) || !bytes.Equal(p[:n], data[from:from+n]) || err == nil && n != 10 {
		t.Fatalf("10 bytes at %d, byte %d is damaged: %d, %v", from, at, n, err)
	}
}

// TestPageSumsBound: the memory of the checksums is bounded, and what gives
// way is read whole again.
func TestPageSumsBound(t *testing.T) {
	s := newPageSums()
	block := make([]byte, 100)
	const n = 3 * sumsBytes / sumsEntryBytes
	for i := range int64(n) {
		s.put(blockID{cluster.BlobID{Content: uint64(i % 7), Seq: 1}, i / 7}, block)
	}
	kept := 0
	for i := range s.shards {
		shard := &s.shards[i]
		if len(shard.entries) != shard.order.Len() || len(shard.entries) > s.max {
			t.Errorf("shard %d: %d entries, %d in the list, at most %d", i, len(shard.entries), shard.order.Len(), s.max)
		}
		kept += len(shard.entries)
	}
	if kept > sumsBytes/sumsEntryBytes || kept < sumsBytes/sumsEntryBytes/2 {
		t.Errorf("%d blocks are known", kept)
	}
	last := blockID{cluster.BlobID{Content: (n - 1) % 7, Seq: 1}, (n - 1) / 7}
	if sums, ok := s.get(last); !ok || !sums.match(block, 0) {
		t.Error("the newest is gone")
	}
	if _, ok := s.get(blockID{cluster.BlobID{Content: 0, Seq: 1}, 0}); ok {
		t.Error("the oldest is there")
	}
}
