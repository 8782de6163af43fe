package local

import (
	"context"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
)

// windowsBytes bounds what is mapped of data files. It counts as the process's memory
// where it is shown, though the page cache has it anyway, and gives it up as ever.
const windowsBytes = 256 << 20

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
	r := blockReader{blobs: b, file: f, c: c}
	n, err = b.windows.Splice(w, f, fileio.Part{Off: off,
		// Up to the end of a block, so that none is verified twice, and no more than stays
		// in the cache of the processor until it is sent.
		End:  min(off+n, c.Size, (off/fileio.WindowBytes+1)*fileio.WindowBytes),
		Size: c.Size, Right: r.right})
	if err != nil {
		return 0, cluster.ErrNoSplice
	}
	return n, nil
}

// right verifies the blocks that hold what lies from off to end.
func (r *blockReader) right(off, end int64) bool {
	scratch := r.blobs.buffers.block.Get()
	defer r.blobs.buffers.block.Put(scratch)
	for block := off / cluster.BlockBytes; block*cluster.BlockBytes < end; block++ {
		n := min(cluster.BlockBytes, r.c.Size-block*cluster.BlockBytes)
		if r.fill(scratch[:n], block) != nil {
			return false
		}
	}
	return true
}
