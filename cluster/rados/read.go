package rados

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/cluster/internal/frame"
)

// ReadAt implements cluster.BlobReader: one request for each part, and one before them for the
// head of a blob of several parts that was not seen lately.
func (b *Blobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	if err := b.enter(ctx); err != nil {
		return 0, err
	}
	defer b.gate.Leave()
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", cluster.ErrInvalid, off)
	}
	h := b.heads.get(id)
	n, err := b.readKnown(ctx, h, id, p, off)
	if h != nil && errors.Is(err, errPartGone) { // the head may be another one's since
		b.heads.drop(id)
		n, err = b.readKnown(ctx, nil, id, p, off)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, err
}

// errPartGone: a part is not there, which the head names.
var errPartGone = fmt.Errorf("%w: a part is missing", cluster.ErrCorrupt)

// readKnown reads p at off, by the head h unless it is nil.
func (b *Blobs) readKnown(ctx context.Context, h *head, id cluster.BlobID, p []byte, off int64) (int, error) {
	const partData = partBlocks * cluster.BlockBytes
	first, read := off/partData, 0
	if h == nil || first == 0 {
		found, n, err := b.readFirst(ctx, id, p, off)
		if err != nil {
			return 0, err
		}
		b.heads.put(found)
		h, read = &found, n
	}
	if off >= h.size || len(p) == 0 {
		return 0, endOf(p)
	}
	end := min(off+int64(len(p)), h.size)
	last := (end - 1) / partData
	first = max(first, 1)
	err := parallel(ctx, int(max(0, last-first+1)), func(i int) error {
		n := first + int64(i)
		from, to := max(off, n*partData), min(end, (n+1)*partData)
		return b.readPart(ctx, h, n, p[from-off:to-off], from)
	})
	if err != nil {
		return 0, err
	}
	if last > 0 {
		read = int(end - off)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

// endOf is how a read behind the end of a blob ends.
func endOf(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return io.EOF
}

// readFirst reads the head, and what the first part has of p at off.
func (b *Blobs) readFirst(ctx context.Context, id cluster.BlobID, p []byte, off int64) (h head, n int, err error) {
	const partData = partBlocks * cluster.BlockBytes
	spans := []Span{{0, headBytes}}
	if off < partData && len(p) > 0 {
		end := min(off+int64(len(p)), partData)
		frames := framesOf(off, end)
		spans = append(spans, Span{headBytes + frames.Off, frames.Len})
	}
	err = b.pool.Read(ctx, headName(id), func(parts [][]byte) error {
		if h, err = parseHead(parts[0], id); err != nil || len(parts) == 1 {
			return err
		}
		n = int(max(0, min(off+int64(len(p)), h.size, partData)-off))
		return h.open(parts[1], p[:n], off)
	}, spans...)
	if errors.Is(err, cluster.ErrNotFound) {
		b.heads.drop(id)
	}
	return h, n, err
}

// readPart fills p from off on out of part n, from 1 on.
func (b *Blobs) readPart(ctx context.Context, h *head, n int64, p []byte, off int64) error {
	frames := framesOf(off, off+int64(len(p)))
	frames.Off -= n * partBytes
	err := b.pool.Read(ctx, h.name(n), func(parts [][]byte) error { return h.open(parts[0], p, off) }, frames)
	if errors.Is(err, cluster.ErrNotFound) {
		return fmt.Errorf("%w: %s", errPartGone, h.name(n))
	}
	return err
}

// framesOf returns where the frames are in the row of a blob that hold the bytes
// from off to end.
func framesOf(off, end int64) Span {
	first, last := off/cluster.BlockBytes, (end-1)/cluster.BlockBytes
	return Span{first * frame.Bytes, (last - first + 1) * frame.Bytes}
}

// open verifies frames, the first of which holds off, and copies what they hold of p.
func (h head) open(frames, p []byte, off int64) error {
	final := frame.LastBlock(h.size)
	for n, block := 0, off/cluster.BlockBytes; n < len(p); block++ {
		want := min(frame.Bytes, frame.RowSize(h.size)-block*frame.Bytes)
		data, err := frame.Open(frames[:min(want, int64(len(frames)))], h.id, block, block == final)
		if err != nil {
			return err
		}
		n += copy(p[n:], data[max(0, off-block*cluster.BlockBytes):])
		frames = frames[want:]
	}
	return nil
}
