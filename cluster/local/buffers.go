package local

import (
	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

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
	block *fileio.Pool // one block, for reads at the edges
	mid   *fileio.Pool // a small blob with its footer
	large *fileio.Pool // smallMax and the longest footer: a small blob, or a part of a long one
}

func newBuffers() *buffers {
	return &buffers{
		block: fileio.NewPool(cluster.BlockBytes, blockBuffersKept),
		mid:   fileio.NewPool(int(record.Bytes(midMax)), midBuffersKept),
		large: fileio.NewPool(smallMax+int(fileio.Align(record.FooterBytes(cluster.MaxBlobBytes))), largeBuffersKept),
	}
}

// forSize returns the pool for a blob of size bytes, or of unknown size (-1).
func (b *buffers) forSize(size int64) *fileio.Pool {
	if size > midMax {
		return b.large
	}
	return b.mid
}
