package receive

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"ogw/vfs/internal/bodyhash"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// Receiver stores bodies. It is safe for concurrent use, and not to be copied.
type Receiver struct {
	Contents    *content.Store
	IDs         *ids.Allocator
	InlineBytes int // the largest content kept in the metadata store

	smalls  sync.Pool // of *smallBuffer
	buffers bodyhash.Buffers
	md5s    bodyhash.MD5Pool
}

// Body is what a client sends, and what it said of it.
type Body struct {
	From io.Reader
	ID   record.ContentID // of the content that it becomes; 0: a fresh one
	// Size that was stated, or -1; MaxSize bounds what was not.
	Size, MaxSize int64
	MD5           []byte // that was stated; nil: none was
	// Finish, if not nil, is called after the last byte; it returns the checksums
	// that came along, and its error ends the receiving.
	Finish func() ([]checksum.Sum, error)
	Extra  hash.Hash // fed with all bytes, if not nil
}

// Received is a body that is stored and not published yet.
type Received struct {
	Content   *content.Written
	Sum       [md5.Size]byte
	Extra     []byte // of the hash that was asked for
	Checksums []checksum.Sum

	from   *Receiver
	buffer *smallBuffer // holds the bytes of a small content until it is published
}

// smallBuffer holds one byte more than a content may have inline.
type smallBuffer struct{ b []byte }

func (r *Receiver) takeSmall() *smallBuffer {
	if s, ok := r.smalls.Get().(*smallBuffer); ok {
		return s
	}
	return &smallBuffer{make([]byte, r.InlineBytes+1)}
}

// Release ends the use of an inline content's bytes.
func (v *Received) Release() {
	if v.buffer != nil {
		v.from.smalls.Put(v.buffer)
		v.buffer = nil
	}
}

// Receive stores a body as a content. Size, MD5 and Finish are checked, and with an
// error nothing is left. The caller releases the result.
func (r *Receiver) Receive(ctx context.Context, b *Body) (Received, error) {
	if b.Size > b.MaxSize {
		return Received{}, objects.TooLarge(b.MaxSize)
	}
	v := Received{from: r, buffer: r.takeSmall()}
	n, err := readFull(b.From, v.buffer.b)
	first := v.buffer.b[:n]
	switch {
	case errors.Is(err, io.EOF) && n < len(v.buffer.b):
		err = r.small(ctx, b, first, &v)
	case (err == nil || errors.Is(err, io.EOF)) && b.Size <= bodyhash.BufferBytes && b.Size > int64(n):
		err = r.whole(ctx, b, first, &v)
	case err == nil || errors.Is(err, io.EOF):
		err = r.large(ctx, b, first, &v)
	default:
		err = bodyError(err)
	}
	if err != nil || v.Content.ID == 0 || v.Content.Extents[0].Kind != record.ExtentInline {
		v.Release()
	}
	return v, err
}

// small makes an inline content of data, without a copy.
func (r *Receiver) small(ctx context.Context, b *Body, data []byte, v *Received) error {
	v.Sum = md5.Sum(data)
	if b.Extra != nil {
		b.Extra.Write(data)
		v.Extra = b.Extra.Sum(nil)
	}
	if err := v.check(int64(len(data)), b); err != nil {
		return err
	}
	c := &content.Written{ID: b.ID, Size: int64(len(data)), Used: int64(len(data))}
	v.Content = c
	if c.Size == 0 {
		c.ID = 0
		return v.checkCRC()
	}
	if b.ID == 0 {
		n, err := r.IDs.Take(ctx)
		if err != nil {
			return err
		}
		c.ID = record.ContentID(n)
	}
	c.CRC = crc64nvme.Checksum(data)
	c.Extents = []record.Extent{{Len: c.Size, Kind: record.ExtentInline, Data: data}}
	return v.checkCRC()
}

// whole stores a body that fits one buffer, and begins with first, as
// one blob. It is hashed while it becomes durable.
func (r *Receiver) whole(ctx context.Context, b *Body, first []byte, v *Received) error {
	bufs := r.buffers.Take(1, 1)
	if len(bufs) == 0 {
		return r.large(ctx, b, first, v)
	}
	defer r.buffers.Give(bufs)
	data := bufs[0][:b.Size]
	n := copy(data, first)
	k, err := readFull(b.From, data[n:])
	size := int64(n + k)
	for err == nil { // the body's own end, or a byte too many
		var one [1]byte
		if k, err = b.From.Read(one[:]); k > 0 {
			size++
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return bodyError(err)
	}
	if size != b.Size {
		return v.check(size, b)
	}
	w, err := r.Contents.NewWriter(ctx, b.ID, b.Size)
	if err != nil {
		return err
	}
	defer w.Abort(ctx) // does nothing after finish
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.Extra != nil {
		b.Extra.Write(data)
		v.Extra = b.Extra.Sum(nil)
	}
	v.Sum = r.md5s.Of(data)
	return r.finish(ctx, b, w, size, v)
}

// finish ends the receiving of size bytes, all given to w.
func (r *Receiver) finish(ctx context.Context, b *Body, w *content.Writer, size int64, v *Received) error {
	if err := v.check(size, b); err != nil {
		return err
	}
	var err error
	if v.Content, err = w.Finish(ctx); err != nil {
		return err
	}
	if err := v.checkCRC(); err != nil {
		r.Contents.Discard(ctx, v.Content)
		return err
	}
	return nil
}

// large streams a body that begins with first into blobs. Hashing runs
// beside reading and writing.
func (r *Receiver) large(ctx context.Context, b *Body, first []byte, v *Received) error {
	w, err := r.Contents.NewWriter(ctx, b.ID, b.Size)
	if err != nil {
		return err
	}
	defer w.Abort(ctx) // does nothing after finish
	h := bodyhash.New(&r.buffers, &r.md5s, b.Extra)
	defer h.Stop()

	h.Sum.Write(first)
	if b.Extra != nil {
		b.Extra.Write(first)
	}
	if _, err := w.Write(first); err != nil {
		return err
	}
	limit := b.MaxSize
	if b.Size >= 0 {
		limit = b.Size
	}
	size := int64(len(first))
	for size <= limit {
		buf := h.Buffer()
		n, err := readFull(b.From, buf)
		h.Write(buf[:n])
		size += int64(n)
		if n > 0 && size <= limit {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bodyError(err)
		}
	}
	if size <= limit {
		if err := w.Flush(); err != nil { // becomes durable while the last bytes are hashed
			return err
		}
	}
	v.Extra = h.Finish(v.Sum[:0])
	return r.finish(ctx, b, w, size, v)
}

// MD5Error is fserr.ErrBadDigest with both digests.
type MD5Error struct{ Stated, Computed []byte }

// Error implements error.
func (e *MD5Error) Error() string { return "MD5: " + fserr.ErrBadDigest.Error() }

// Unwrap returns fserr.ErrBadDigest.
func (e *MD5Error) Unwrap() error { return fserr.ErrBadDigest }

// check compares what came with what was announced.
func (v *Received) check(size int64, b *Body) error {
	switch {
	case b.Size >= 0 && size > b.Size:
		return fmt.Errorf("more than the stated %d bytes: %w", b.Size, fserr.ErrLongBody)
	case b.Size >= 0 && size < b.Size:
		return fmt.Errorf("%d of the stated %d bytes: %w", size, b.Size, fserr.ErrShortBody)
	case size > b.MaxSize:
		return objects.TooLarge(b.MaxSize)
	case b.MD5 != nil && !bytes.Equal(b.MD5, v.Sum[:]):
		return &MD5Error{Stated: b.MD5, Computed: bytes.Clone(v.Sum[:])}
	}
	if b.Finish == nil {
		return nil
	}
	var err error
	v.Checksums, err = b.Finish()
	return err
}

// checkCRC compares a full-object CRC64NVME that came along with the one that
// was computed, and drops it: the inode holds that.
func (v *Received) checkCRC() error {
	kept := v.Checksums[:0]
	for _, c := range v.Checksums {
		if c.Algorithm != checksum.CRC64NVME || c.Parts > 0 {
			kept = append(kept, c)
		} else if !bytes.Equal(c.Value, checksum.CRC64Bytes(v.Content.CRC)) {
			return fmt.Errorf("CRC64NVME: %w", fserr.ErrBadDigest)
		}
	}
	v.Checksums = kept
	return nil
}

// bodyError is the error of a body that broke off.
func bodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, fserr.ErrShortBody) {
		return fmt.Errorf("%w: %w", fserr.ErrShortBody, err)
	}
	return err
}

// readFull reads until p is full or r ends; it returns r's own error.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
	}
	return n, err
}
