package cluster

import "context"

// SummedBlob is a blob as the metadata name it. Its ID alone may have meant another one,
// before the metadata were set back to an earlier time.
type SummedBlob struct {
	ID  BlobID
	CRC uint64 // CRC64NVME of all its bytes
}

// BlobCache is implemented by Blobs that keep what was read.
type BlobCache interface {
	// ReadSummed is ReadAt. What was kept by an earlier process is an answer only here,
	// and only if it was read of a blob with this checksum.
	ReadSummed(ctx context.Context, blob SummedBlob, p []byte, off int64) (int, error)
	// Forget drops what is kept of the blobs of contents.
	Forget(contents ...uint64)
}

// ReadSummed is b.ReadAt for who knows the checksum of the blob.
func ReadSummed(ctx context.Context, b Blobs, blob SummedBlob, p []byte, off int64) (int, error) {
	if c, ok := b.(BlobCache); ok {
		return c.ReadSummed(ctx, blob, p, off)
	}
	return b.ReadAt(ctx, blob.ID, p, off)
}

// ForgetBlobs has b forget the blobs of contents, if it keeps any.
func ForgetBlobs(b Blobs, contents ...uint64) {
	if c, ok := b.(BlobCache); ok {
		c.Forget(contents...)
	}
}
