package cluster

import "context"

// BlobScatterer is implemented by Blobs that can read into several buffers with one
// request.
type BlobScatterer interface {
	// ReadScattered is ReadAt into buffers that follow one another.
	ReadScattered(ctx context.Context, id BlobID, into Buffers, off int64) (int, error)
}

// ReadScattered is b.ReadScattered if b can, else a ReadAt and a copy.
func ReadScattered(ctx context.Context, b Blobs, id BlobID, into Buffers, off int64) (int, error) {
	if s, ok := b.(BlobScatterer); ok {
		return s.ReadScattered(ctx, id, into, off)
	}
	p := make([]byte, into.Len())
	n, err := b.ReadAt(ctx, id, p, off)
	into.CopyAt(p[:n], 0)
	return n, err
}

// Buffers are one buffer in pieces.
type Buffers [][]byte

// Len returns how many bytes they hold.
func (b Buffers) Len() (n int64) {
	for _, p := range b {
		n += int64(len(p))
	}
	return n
}

// CopyAt copies p to off, as much as there is room for, and returns how many bytes.
func (b Buffers) CopyAt(p []byte, off int64) (n int) {
	for _, to := range b {
		if off >= int64(len(to)) {
			off -= int64(len(to))
			continue
		}
		n += copy(to[off:], p[n:])
		off = 0
	}
	return n
}

// Slice returns the bytes from from to to, which share their memory.
func (b Buffers) Slice(from, to int64) (s Buffers) {
	for _, p := range b {
		size := int64(len(p))
		if begin, end := max(from, 0), min(to, size); begin < end {
			s = append(s, p[begin:end])
		}
		from, to = from-size, to-size
	}
	return s
}
