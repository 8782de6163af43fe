package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/frame"

	"github.com/minio/minio-go/v7"
)

// readTries is how often a range is asked for whose bytes did not come whole,
// or not as they were stored: a connection can break, and change what it carries.
const readTries = 3

var frameBuffers = sync.Pool{New: func() any { return new([frame.Bytes]byte) }}

// ReadAt implements cluster.BlobReader, with one request.
func (b *Blobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	return b.ReadScattered(ctx, id, cluster.Buffers{p}, off)
}

// ReadScattered implements cluster.BlobScatterer.
func (b *Blobs) ReadScattered(ctx context.Context, id cluster.BlobID, into cluster.Buffers, off int64) (int, error) {
	if err := b.enter(ctx); err != nil {
		return 0, err
	}
	defer b.gate.Leave()
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", cluster.ErrInvalid, off)
	}
	if into.Len() == 0 {
		_, err := b.stat(ctx, b.key(id))
		return 0, err
	}
	off = min(off, cluster.MaxBlobBytes) // beyond every end
	var n int
	var err error
	for range readTries {
		n, err = b.readFrames(ctx, id, into, off)
		if ctx.Err() != nil || !errors.Is(err, cluster.ErrCorrupt) && !errors.Is(err, errBody) {
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, err
}

// readFrames fetches the frames that hold the bytes at off, and verifies them.
func (b *Blobs) readFrames(ctx context.Context, id cluster.BlobID, into cluster.Buffers, off int64) (n int, err error) {
	first, end := off/cluster.BlockBytes, off+into.Len()
	last := (end - 1) / cluster.BlockBytes
	bounded, cancel := bound(ctx)
	defer cancel()
	body, found, err := b.get(bounded, b.key(id), first*frame.Bytes, (last+1)*frame.Bytes-1)
	if codeOf(err) == codeRange {
		return 0, b.readEnd(ctx, id)
	}
	if err != nil {
		return 0, missingOr(ctx, err)
	}
	defer body.Close()
	buf := frameBuffers.Get().(*[frame.Bytes]byte)
	defer frameBuffers.Put(buf)
	final := frame.LastFrame(found.size)
	for block := first; block <= min(last, final); block++ {
		stored := buf[:min(frame.Bytes, found.size-block*frame.Bytes)]
		if _, err := io.ReadFull(body, stored); err != nil {
			return 0, brokenOff(ctx, err)
		}
		data, err := frame.Open(stored, id, block, block == final)
		if err != nil {
			return 0, err
		}
		if from := off + int64(n) - block*cluster.BlockBytes; from < int64(len(data)) {
			n += into.CopyAt(data[from:], int64(n))
		}
	}
	if off+int64(n) < end {
		return n, io.EOF
	}
	return n, nil
}

// readEnd answers a read behind the object's end: io.EOF, if that is the end
// that was written.
func (b *Blobs) readEnd(ctx context.Context, id cluster.BlobID) error {
	found, err := b.stat(ctx, b.key(id))
	if err != nil {
		return err
	}
	final := frame.LastFrame(found.size)
	bounded, cancel := bound(ctx)
	defer cancel()
	body, _, err := b.get(bounded, b.key(id), final*frame.Bytes, found.size-1)
	if err != nil {
		return missingOr(ctx, err)
	}
	defer body.Close()
	stored := make([]byte, found.size-final*frame.Bytes)
	if _, err := io.ReadFull(body, stored); err != nil {
		return brokenOff(ctx, err)
	}
	if _, err := frame.Open(stored, id, final, true); err != nil {
		return err
	}
	return io.EOF
}

// object is what an endpoint returns about one.
type object struct {
	size     int64
	number   string // of its writer
	modified time.Time
	class    string // of storage
}

// stat looks at an object. It is a read of the first byte and not a HEAD, whose
// answers do not distinguish a missing object from a missing bucket.
func (b *Blobs) stat(ctx context.Context, key string) (object, error) {
	bounded, cancel := bound(ctx)
	defer cancel()
	body, found, err := b.get(bounded, key, 0, 0)
	if codeOf(err) == codeRange {
		return object{}, fmt.Errorf("%w: object %s is empty", cluster.ErrCorrupt, key)
	}
	if err != nil {
		return object{}, missingOr(ctx, err)
	}
	body.Close()
	return found, nil
}

// get asks for the bytes from first to last of an object. The error is the
// endpoint's.
func (b *Blobs) get(ctx context.Context, key string, first, last int64) (io.ReadCloser, object, error) {
	var o minio.GetObjectOptions
	if err := o.SetRange(first, last); err != nil {
		return nil, object{}, err
	}
	body, info, header, err := b.client.GetObject(ctx, b.bucket, key, o)
	if err != nil {
		return nil, object{}, err
	}
	size, err := totalSize(header, first)
	if err != nil {
		body.Close()
		return nil, object{}, err
	}
	return body, object{size: size, number: info.UserMetadata[numberKey], modified: info.LastModified, class: info.StorageClass}, nil
}

// totalSize returns the length of an object of which the bytes from first on
// are returned (RFC 9110, section 14.4).
func totalSize(header http.Header, first int64) (int64, error) {
	value := header.Get("Content-Range")
	span, total, _ := strings.Cut(strings.TrimPrefix(value, "bytes "), "/")
	from, _, _ := strings.Cut(span, "-")
	begin, err := strconv.ParseInt(from, 10, 64)
	size, e := strconv.ParseInt(total, 10, 64)
	if err != nil || e != nil || begin != first || size <= first {
		return 0, fmt.Errorf("%w: bytes from %d on were asked for, Content-Range is %q", ErrUnfit, first, value)
	}
	return size, nil
}
