package cluster

import (
	"context"
	"errors"
	"io"
)

// BlobVerifier is implemented by Blobs that can check a blob on its medium,
// past the caches that ReadAt is answered from.
type BlobVerifier interface {
	// Verify reads all of a blob. It returns ErrCorrupt or ErrNotFound.
	Verify(ctx context.Context, id BlobID) error
}

// verifyBytes is how much VerifyBlob reads at a time.
const verifyBytes = 16 * BlockBytes

// VerifyBlob checks a blob: by its engine if that can, else by reading it.
func VerifyBlob(ctx context.Context, b Blobs, id BlobID) error {
	if v, ok := b.(BlobVerifier); ok {
		return v.Verify(ctx, id)
	}
	buf := make([]byte, verifyBytes)
	for off := int64(0); ; off += verifyBytes {
		if _, err := b.ReadAt(ctx, id, buf, off); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
