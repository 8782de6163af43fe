package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"github.com/minio/crc64nvme"
)

// Blobs is the data half.
type Blobs struct {
	m    *manners
	disk *Disk
	gate *occ.Gate
}

func (b *Blobs) begin(ctx context.Context, op Op) error {
	if err := b.gate.Enter(); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil {
		err = b.m.call(op)
	}
	if err != nil {
		b.gate.Leave()
	}
	return err
}

func (b *Blobs) find(id cluster.BlobID) (*blob, error) {
	b.disk.mu.RLock()
	defer b.disk.mu.RUnlock()
	stored, ok := b.disk.blobs.Get(string(id.Append(nil)))
	if !ok {
		return nil, fmt.Errorf("%w: %v", cluster.ErrNotFound, id)
	}
	return stored, nil
}

// ReadAt implements cluster.BlobReader.
func (b *Blobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	if err := b.begin(ctx, OpBlobRead); err != nil {
		return 0, err
	}
	defer b.gate.Leave()
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", cluster.ErrInvalid, off)
	}
	stored, err := b.find(id)
	if err != nil {
		return 0, err
	}
	size := int64(len(stored.data))
	if off >= size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	end := min(off+int64(len(p)), size)
	for block := off / cluster.BlockBytes; block*cluster.BlockBytes < end; block++ {
		from := block * cluster.BlockBytes
		if crc64nvme.Checksum(stored.data[from:min(from+cluster.BlockBytes, size)]) != stored.blocks[block] {
			return 0, fmt.Errorf("%w: blob %v, block %d", cluster.ErrCorrupt, id, block)
		}
	}
	n := copy(p, stored.data[off:end])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Create implements cluster.Blobs.
func (b *Blobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	if err := b.begin(ctx, OpBlobCreate); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	if sizeHint > cluster.MaxBlobBytes {
		return nil, fmt.Errorf("%w: blob of %d bytes, at most %d are allowed", cluster.ErrInvalid, sizeHint, cluster.MaxBlobBytes)
	}
	if _, err := b.find(id); err == nil {
		return nil, fmt.Errorf("%w: %v", cluster.ErrExists, id)
	}
	return &writer{blobs: b, id: id}, nil
}

// Delete implements cluster.Blobs.
func (b *Blobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	if err := b.begin(ctx, OpBlobDelete); err != nil {
		return err
	}
	defer b.gate.Leave()
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	for _, id := range ids {
		b.disk.blobs.Delete(string(id.Append(nil)))
	}
	return nil
}

// listPage is how many blobs List copies under the lock at a time.
const listPage = 256

// List implements cluster.Blobs.
func (b *Blobs) List(ctx context.Context, from cluster.BlobID, fn func(cluster.BlobInfo) error) error {
	if err := b.begin(ctx, OpBlobList); err != nil {
		return err
	}
	defer b.gate.Leave()
	next := string(from.Append(nil))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page := b.page(next)
		for _, info := range page {
			if err := fn(info); err != nil {
				if errors.Is(err, cluster.ErrStop) {
					return nil
				}
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
		next = string(page[len(page)-1].ID.Append(nil)) + "\x00"
	}
}

func (b *Blobs) page(next string) (page []cluster.BlobInfo) {
	b.disk.mu.RLock()
	defer b.disk.mu.RUnlock()
	b.disk.blobs.Ascend(next, func(key string, stored *blob) bool {
		id, _ := cluster.ParseBlobID([]byte(key))
		page = append(page, cluster.BlobInfo{ID: id, Size: int64(len(stored.data)), Modified: stored.modified})
		return len(page) < listPage
	})
	return page
}

// Locate implements cluster.Blobs.
func (b *Blobs) Locate(ctx context.Context, id cluster.BlobID) ([]cluster.Location, error) {
	if err := b.begin(ctx, OpBlobList); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	if _, err := b.find(id); err != nil {
		return nil, err
	}
	return []cluster.Location{{Node: "memory", Path: "mem:" + id.String(), Primary: true}}, nil
}

// Usage implements cluster.Blobs.
func (b *Blobs) Usage(ctx context.Context) (cluster.Usage, error) {
	if err := b.begin(ctx, OpBlobList); err != nil {
		return cluster.Usage{}, err
	}
	defer b.gate.Leave()
	return cluster.Usage{}, nil
}

// Close implements cluster.Blobs.
func (b *Blobs) Close() error {
	if !b.gate.Close() {
		return cluster.ErrClosed
	}
	return nil
}

// writer streams one blob.
type writer struct {
	blobs *Blobs
	id    cluster.BlobID
	buf   bytes.Buffer
	err   error // what ended the writer
}

var errWriterDone = fmt.Errorf("%w: the blob writer is done", cluster.ErrInvalid)

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.blobs.m.o.Faults.next(OpBlobWrite); err != nil {
		w.err = err
		return 0, err
	}
	if w.buf.Len()+len(p) > cluster.MaxBlobBytes {
		w.err = fmt.Errorf("%w: blob of more than %d bytes", cluster.ErrInvalid, cluster.MaxBlobBytes)
		return 0, w.err
	}
	return w.buf.Write(p)
}

// Commit implements cluster.BlobWriter.
func (w *writer) Commit(ctx context.Context) (int64, uint64, error) {
	if w.err != nil {
		return 0, 0, w.err
	}
	w.err = errWriterDone
	b := w.blobs
	if err := b.begin(ctx, OpBlobCommit); err != nil {
		return 0, 0, err
	}
	defer b.gate.Leave()
	unknown := b.m.chance(b.m.o.UnknownRate)
	if unknown && b.m.chance(0.5) {
		return 0, 0, fmt.Errorf("%w: blob may not exist", cluster.ErrUnavailable)
	}
	stored := &blob{data: w.buf.Bytes(), modified: time.Now()}
	for from := 0; from < len(stored.data); from += cluster.BlockBytes {
		block := stored.data[from:min(from+cluster.BlockBytes, len(stored.data))]
		stored.blocks = append(stored.blocks, crc64nvme.Checksum(block))
	}
	key := string(w.id.Append(nil))
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	if _, ok := b.disk.blobs.Get(key); ok {
		return 0, 0, fmt.Errorf("%w: %v", cluster.ErrExists, w.id)
	}
	b.disk.blobs.Set(key, stored)
	if unknown {
		return 0, 0, fmt.Errorf("%w: blob may exist", cluster.ErrUnavailable)
	}
	return int64(len(stored.data)), crc64nvme.Checksum(stored.data), nil
}

// Abort implements cluster.BlobWriter.
func (w *writer) Abort() {
	if w.err == nil {
		w.err = errWriterDone
	}
	w.buf = bytes.Buffer{}
}
