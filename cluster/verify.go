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

// BlobProber is implemented by Blobs that can report which blobs lost bytes
// without reading any.
type BlobProber interface {
	// Probe is List, and reports for each blob what the look of the files that
	// hold it shows: damage is nil, or wraps ErrCorrupt where they are missing
	// or end too early. It costs one look at a file of few or many blobs.
	Probe(ctx context.Context, from BlobID, fn func(b BlobInfo, damage error) error) error
}

// ProbeBlobs lists blobs with what their engine can report about them without
// reading; nothing, if it cannot.
func ProbeBlobs(ctx context.Context, b Blobs, from BlobID, fn func(b BlobInfo, damage error) error) error {
	if p, ok := b.(BlobProber); ok {
		return p.Probe(ctx, from, fn)
	}
	return b.List(ctx, from, func(info BlobInfo) error { return fn(info, nil) })
}
