package cluster

// BlobCache is implemented by Blobs that keep what was read.
type BlobCache interface {
	// Forget drops what is kept of the blobs of contents.
	Forget(contents ...uint64)
}

// ForgetBlobs has b forget the blobs of contents, if it keeps any.
func ForgetBlobs(b Blobs, contents ...uint64) {
	if c, ok := b.(BlobCache); ok {
		c.Forget(contents...)
	}
}
