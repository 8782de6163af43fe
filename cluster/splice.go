package cluster

import (
	"context"
	"errors"
)

// ErrNoSplice: these bytes are to be read with ReadAt, which also knows why.
var ErrNoSplice = errors.New("not to be spliced")

// BlobSplicer is implemented by Blobs that can hand out bytes without copying
// them.
type BlobSplicer interface {
	// Splice puts up to n bytes at off, verified, into a pipe, whose end for
	// writing is the file descriptor w: pages of the page cache, which the pipe
	// holds. It returns how many, at least one. After an error the pipe holds
	// anything, and is to be closed; ErrNoSplice is the only one that says nothing
	// of the blob.
	Splice(ctx context.Context, id BlobID, w int, off, n int64) (int64, error)
}

// SplicerOf returns b if it can, else what declines all.
func SplicerOf(b Blobs) BlobSplicer {
	if s, ok := b.(BlobSplicer); ok {
		return s
	}
	return noSplicer{}
}

type noSplicer struct{}

func (noSplicer) Splice(context.Context, BlobID, int, int64, int64) (int64, error) {
	return 0, ErrNoSplice
}
