package local

import (
	"context"

	"ogw/cluster"
	"ogw/cluster/local/internal/crc64"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

const (
	// spliceMax is how much Splice verifies before it hands it out: more leaves
	// the cache of the processor before it is sent.
	spliceMax = 1 << 20
	// windowsBytes bounds what is mapped of data files, which counts as the
	// process's memory where it is shown, though the page cache has it anyway.
	windowsBytes = 64 << 20
)

var _ cluster.BlobSplicer = (*Blobs)(nil)

// Splice implements cluster.BlobSplicer, for blobs with a file of their own: nobody
// writes to it again. Segments are, and where the disk takes no O_DIRECT in the very
// pages that a slow client still waits for.
func (b *Blobs) Splice(ctx context.Context, id cluster.BlobID, w int, off, n int64) (int64, error) {
	if err := b.begin(ctx); err != nil {
		return 0, err
	}
	defer b.gate.Leave()
	c, err := b.lookup(id)
	if err != nil || c.Segment != 0 || off < 0 || off >= c.Size {
		return 0, cluster.ErrNoSplice
	}
	f, err := b.handles.Get(b.filePath(id))
	if err != nil {
		return 0, cluster.ErrNoSplice
	}
	defer b.handles.Put(f)
	v, err := b.windows.Get(f, off, record.Bytes(c.Size))
	if err != nil {
		return 0, cluster.ErrNoSplice
	}
	defer b.windows.Put(v)
	// To the end of a block, so that none is verified twice.
	end := min(off+n, c.Size, v.End(), (off+spliceMax)/cluster.BlockBytes*cluster.BlockBytes)
	n, err = v.Splice(w, off, end-off)
	if err != nil || n == 0 || !c.rightIn(v, off, off+n) {
		return 0, cluster.ErrNoSplice
	}
	return n, nil
}

// rightIn verifies the blocks that hold what lies from off to end, as v shows them.
func (c *cachedPlace) rightIn(v *fileio.Window, off, end int64) bool {
	block := off / cluster.BlockBytes
	last := min((end+cluster.BlockBytes-1)/cluster.BlockBytes*cluster.BlockBytes, c.Size)
	return v.Check(block*cluster.BlockBytes, last, func(p []byte) bool {
		for ; len(p) > 0; block++ {
			n := min(len(p), cluster.BlockBytes)
			if crc64.Checksum(p[:n]) != c.Blocks[block] {
				return false
			}
			p = p[n:]
		}
		return true
	})
}
