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
	h := b.heads.get(id)
	n, err := b.readKnown(ctx, h, id, into, off)
	if h != nil && errors.Is(err, errPartGone) { // the head may be another one's since
		b.heads.drop(id)
		n, err = b.readKnown(ctx, nil, id, into, off)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, err
}

// errPartGone: a part is not there, which the head names.
var errPartGone = fmt.Errorf("%w: a part is missing", cluster.ErrCorrupt)

// readKnown reads what is at off, by the head h unless it is nil.
func (b *Blobs) readKnown(ctx context.Context, h *head, id cluster.BlobID, into cluster.Buffers, off int64) (int, error) {
	const partData = partBlocks * cluster.BlockBytes
	first, read := off/partData, 0
	if h == nil || first == 0 {
		found, n, err := b.readFirst(ctx, id, into, off)
		if err != nil {
			return 0, err
		}
		b.heads.put(found)
		h, read = &found, n
	}
	if into.Len() == 0 {
		return 0, nil
	}
	if off >= h.size {
		return 0, io.EOF
	}
	want := off + into.Len()
	end := min(want, h.size)
	last := (end - 1) / partData
	first = max(first, 1)
	err := parallel(ctx, int(max(0, last-first+1)), func(i int) error {
		n := first + int64(i)
		from, to := max(off, n*partData), min(end, (n+1)*partData)
		return b.readPart(ctx, h, n, into.Slice(from-off, to-off), from)
	})
	if err != nil {
		return 0, err
	}
	if last > 0 {
		read = int(end - off)
	}
	if off+int64(read) < want {
		return read, io.EOF
	}
	return read, nil
}

// readFirst reads the head, and what the first part has of the bytes at off.
func (b *Blobs) readFirst(ctx context.Context, id cluster.BlobID, into cluster.Buffers, off int64) (h head, n int, err error) {
	const partData = partBlocks * cluster.BlockBytes
	spans := []Span{{0, headBytes}}
	if off < partData && into.Len() > 0 {
		end := min(off+into.Len(), partData)
		frames := framesOf(off, end)
		spans = append(spans, Span{headBytes + frames.Off, frames.Len})
	}
	err = b.pool.Read(ctx, headName(id), func(parts [][]byte) error {
		if h, err = parseHead(parts[0], id); err != nil || len(parts) == 1 {
			return err
		}
		n = int(max(0, min(off+into.Len(), h.size, partData)-off))
		return h.open(parts[1], into.Slice(0, int64(n)), off)
	}, spans...)
	if errors.Is(err, cluster.ErrNotFound) {
		b.heads.drop(id)
	}
	return h, n, err
}

// readPart fills the buffers from off on out of part n, from 1 on.
func (b *Blobs) readPart(ctx context.Context, h *head, n int64, into cluster.Buffers, off int64) error {
	frames := framesOf(off, off+into.Len())
	frames.Off -= n * partBytes
	err := b.pool.Read(ctx, h.name(n), func(parts [][]byte) error { return h.open(parts[0], into, off) }, frames)
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

// open verifies frames, the first of which holds off, and copies what they hold of the bytes
// from there on.
func (h head) open(frames []byte, into cluster.Buffers, off int64) error {
	final := frame.LastBlock(h.size)
	for n, block := int64(0), off/cluster.BlockBytes; n < into.Len(); block++ {
		want := min(frame.Bytes, frame.RowSize(h.size)-block*frame.Bytes)
		data, err := frame.Open(frames[:min(want, int64(len(frames)))], h.id, block, block == final)
		if err != nil {
			return err
		}
		n += int64(into.CopyAt(data[max(0, off-block*cluster.BlockBytes):], n))
		frames = frames[want:]
	}
	return nil
}
