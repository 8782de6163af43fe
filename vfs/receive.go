package vfs

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash"
	"io"

	"ogw/vfs/internal/bodyhash"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// received is a body that is stored and not published yet.
type received struct {
	content   *content.Written
	sum       [md5.Size]byte
	extra     []byte // of the hash that was asked for
	checksums []Checksum
	// buffer holds the bytes of a small content until it is published.
	buffer *smallBuffer
}

// smallBuffer holds one byte more than a content may have inline.
type smallBuffer struct{ b []byte }

func (fs *FS) takeSmall() *smallBuffer {
	if s, ok := fs.small.Get().(*smallBuffer); ok {
		return s
	}
	return &smallBuffer{make([]byte, fs.cfg.InlineBytes+1)}
}

// release ends the use of an inline content's bytes.
func (v *received) release(fs *FS) {
	if v.buffer != nil {
		fs.small.Put(v.buffer)
		v.buffer = nil
	}
}

// receive stores a body as a content. id 0 takes a fresh one. Size, MD5 and
// Finish are checked, and with an error nothing is left. extra, if not nil,
// is fed with all bytes. The caller releases the result.
func (fs *FS) receive(ctx context.Context, id ContentID, body io.Reader, o *PutOptions, maxSize int64, extra hash.Hash) (received, error) {
	if o.MaxSize > 0 {
		maxSize = o.MaxSize
	}
	if o.Size > maxSize {
		return received{}, objects.TooLarge(maxSize)
	}
	v := received{buffer: fs.takeSmall()}
	n, err := readFull(body, v.buffer.b)
	first := v.buffer.b[:n]
	switch {
	case errors.Is(err, io.EOF) && n < len(v.buffer.b):
		err = fs.receiveSmall(ctx, id, first, o, maxSize, extra, &v)
	case (err == nil || errors.Is(err, io.EOF)) && o.Size <= bodyhash.BufferBytes && o.Size > int64(n):
		err = fs.receiveWhole(ctx, id, first, body, o, maxSize, extra, &v)
	case err == nil || errors.Is(err, io.EOF):
		err = fs.receiveLarge(ctx, id, first, body, o, maxSize, extra, &v)
	default:
		err = bodyError(err)
	}
	if err != nil || v.content.ID == 0 || v.content.Extents[0].Kind != record.ExtentInline {
		v.release(fs)
	}
	return v, err
}

// receiveSmall makes an inline content of data, without a copy.
func (fs *FS) receiveSmall(ctx context.Context, id ContentID, data []byte, o *PutOptions, maxSize int64, extra hash.Hash, v *received) error {
	v.sum = md5.Sum(data)
	if extra != nil {
		extra.Write(data)
		v.extra = extra.Sum(nil)
	}
	if err := v.check(int64(len(data)), o, maxSize); err != nil {
		return err
	}
	c := &content.Written{ID: id, Size: int64(len(data)), Used: int64(len(data))}
	v.content = c
	if c.Size == 0 {
		c.ID = 0
		return v.checkCRC()
	}
	if id == 0 {
		n, err := fs.ids.Take(ctx)
		if err != nil {
			return err
		}
		c.ID = ContentID(n)
	}
	c.CRC = crc64nvme.Checksum(data)
	c.Extents = []record.Extent{{Len: c.Size, Kind: record.ExtentInline, Data: data}}
	return v.checkCRC()
}

// receiveWhole stores a body that fits one buffer, and begins with first, as
// one blob. It is hashed while it becomes durable.
func (fs *FS) receiveWhole(ctx context.Context, id ContentID, first []byte, body io.Reader, o *PutOptions, maxSize int64, extra hash.Hash, v *received) error {
	bufs := fs.putPool.Take(1, 1)
	if len(bufs) == 0 {
		return fs.receiveLarge(ctx, id, first, body, o, maxSize, extra, v)
	}
	defer fs.putPool.Give(bufs)
	data := bufs[0][:o.Size]
	n := copy(data, first)
	k, err := readFull(body, data[n:])
	size := int64(n + k)
	for err == nil { // the body's own end, or a byte too many
		var one [1]byte
		if k, err = body.Read(one[:]); k > 0 {
			size++
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return bodyError(err)
	}
	if size != o.Size {
		return v.check(size, o, maxSize)
	}
	w, err := fs.contents.NewWriter(ctx, id, o.Size)
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
	if extra != nil {
		extra.Write(data)
		v.extra = extra.Sum(nil)
	}
	v.sum = fs.md5s.Of(data)
	return fs.received(ctx, w, size, o, maxSize, v)
}

// received ends the receiving of size bytes, all given to w.
func (fs *FS) received(ctx context.Context, w *content.Writer, size int64, o *PutOptions, maxSize int64, v *received) error {
	if err := v.check(size, o, maxSize); err != nil {
		return err
	}
	var err error
	if v.content, err = w.Finish(ctx); err != nil {
		return err
	}
	if err := v.checkCRC(); err != nil {
		fs.contents.Discard(ctx, v.content)
		return err
	}
	return nil
}

// receiveLarge streams a body that begins with first into blobs. Hashing runs
// beside reading and writing.
func (fs *FS) receiveLarge(ctx context.Context, id ContentID, first []byte, body io.Reader, o *PutOptions, maxSize int64, extra hash.Hash, v *received) error {
	w, err := fs.contents.NewWriter(ctx, id, o.Size)
	if err != nil {
		return err
	}
	defer w.Abort(ctx) // does nothing after finish
	h := bodyhash.New(&fs.putPool, &fs.md5s, extra)
	defer h.Stop()

	h.Sum.Write(first)
	if extra != nil {
		extra.Write(first)
	}
	if _, err := w.Write(first); err != nil {
		return err
	}
	limit := maxSize
	if o.Size >= 0 {
		limit = o.Size
	}
	size := int64(len(first))
	for size <= limit {
		b := h.Buffer()
		n, err := readFull(body, b)
		h.Write(b[:n])
		size += int64(n)
		if n > 0 && size <= limit {
			if _, err := w.Write(b[:n]); err != nil {
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
	v.extra = h.Finish(v.sum[:0])
	return fs.received(ctx, w, size, o, maxSize, v)
}

// MD5Error is ErrBadDigest with both digests.
type MD5Error struct{ Stated, Computed []byte }

// Error implements error.
func (e *MD5Error) Error() string { return "MD5: " + ErrBadDigest.Error() }

// Unwrap returns ErrBadDigest.
func (e *MD5Error) Unwrap() error { return ErrBadDigest }

// check compares what came with what was announced.
func (v *received) check(size int64, o *PutOptions, maxSize int64) error {
	switch {
	case o.Size >= 0 && size > o.Size:
		return fmt.Errorf("more than the stated %d bytes: %w", o.Size, ErrLongBody)
	case o.Size >= 0 && size < o.Size:
		return fmt.Errorf("%d of the stated %d bytes: %w", size, o.Size, ErrShortBody)
	case size > maxSize:
		return objects.TooLarge(maxSize)
	case o.MD5 != nil && !bytes.Equal(o.MD5, v.sum[:]):
		return &MD5Error{Stated: o.MD5, Computed: bytes.Clone(v.sum[:])}
	}
	if o.Finish == nil {
		return nil
	}
	var err error
	v.checksums, err = o.Finish()
	return err
}

// checkCRC compares a full-object CRC64NVME that came along with the one that
// was computed, and drops it: the inode holds that.
func (v *received) checkCRC() error {
	kept := v.checksums[:0]
	for _, c := range v.checksums {
		if c.Algorithm != ChecksumCRC64NVME || c.Parts > 0 {
			kept = append(kept, c)
		} else if !bytes.Equal(c.Value, checksum.CRC64Bytes(v.content.CRC)) {
			return fmt.Errorf("CRC64NVME: %w", ErrBadDigest)
		}
	}
	v.checksums = kept
	return nil
}

// bodyError is the error of a body that broke off.
func bodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrShortBody) {
		return fmt.Errorf("%w: %w", ErrShortBody, err)
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
