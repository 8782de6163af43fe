package cluster

// BlobCache is implemented by Blobs that keep what was read.
type BlobCache interface {
	// Forget drops what is kept of the blobs of a content.
	Forget(content uint64)
}

// ForgetBlobs has b forget the blobs of a content, if it keeps any.
func ForgetBlobs(b Blobs, content uint64) {
	if c, ok := b.(BlobCache); ok {
		c.Forget(content)
	}
}
