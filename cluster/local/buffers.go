package local

import "ogw/cluster"

const (
	// smallMax is the longest blob that goes into a segment. From here on,
	// a file of its own costs less than copying at collection.
	smallMax = 1 << 20
	// midMax is a first buffer for blobs of unknown length.
	midMax = 64 << 10
	// buffersKept bounds the idle buffers of each size.
	blockBuffersKept = 64
	midBuffersKept   = 64
	largeBuffersKept = 32
)

// buffers are the pools of page-aligned memory. A writer holds at most two
// large ones, whatever the length of its blob.
type buffers struct {
	block *pagePool // one block, for reads at the edges
	mid   *pagePool // a small blob with its footer
	large *pagePool // smallMax and the longest footer: a small blob, or a part of a long one
}

func newBuffers() *buffers {
	return &buffers{
		block: newPagePool(cluster.BlockBytes, blockBuffersKept),
		mid:   newPagePool(int(recordBytes(midMax)), midBuffersKept),
		large: newPagePool(smallMax+int(alignBytes(footerBytes(cluster.MaxBlobBytes))), largeBuffersKept),
	}
}

// forSize returns the pool for a blob of size bytes, or of unknown size (-1).
func (b *buffers) forSize(size int64) *pagePool {
	if size > midMax {
		return b.large
	}
	return b.mid
}
