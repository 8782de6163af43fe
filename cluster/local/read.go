package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"ogw/cluster"
	"ogw/cluster/local/internal/crc64"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"
)

// readAttempts bounds how often a read follows a blob that the collector
// moves: once is the rule.
const readAttempts = 4

// ReadAt implements cluster.BlobReader.
func (b *Blobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	if err := b.begin(ctx); err != nil {
		return 0, err
	}
	defer b.gate.Leave()
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", cluster.ErrInvalid, off)
	}
	for attempt := 1; ; attempt++ {
		n, err := b.readOnce(id, p, off)
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, cluster.ErrNotFound) {
			return n, err
		}
		// The file is gone or holds something else: perhaps the blob was
		// moved or deleted since its place was looked up.
		b.places.drop(id)
		if attempt == readAttempts {
			return 0, b.unread(id, err)
		}
	}
}

// unread returns the error for a blob that could not be read, again and again: the collector
// did not just move it. Damage is remembered.
func (b *Blobs) unread(id cluster.BlobID, err error) error {
	if !errors.Is(err, cluster.ErrUnavailable) { // that is mapped: it is of the index, not of the blob
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = fmt.Errorf("%w: blob %v: its file is missing: %w", cluster.ErrCorrupt, id, err)
		case ioerr.Unreadable(err):
			err = fmt.Errorf("%w: blob %v: the medium cannot read it: %w", cluster.ErrCorrupt, id, err)
		}
	}
	if err = ioerr.Map(err); errors.Is(err, cluster.ErrCorrupt) {
		b.doubt(id)
	}
	return err
}

// readOnce returns the errors of files as they are.
func (b *Blobs) readOnce(id cluster.BlobID, p []byte, off int64) (int, error) {
	c, err := b.lookup(id)
	if err != nil {
		return 0, err
	}
	if off >= c.Size || len(p) == 0 {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	short := off+int64(len(p)) > c.Size
	if short {
		p = p[:c.Size-off]
	}
	f, err := b.handles.Get(b.placePath(id, &c.Place))
	if err != nil {
		return 0, err
	}
	defer b.handles.Put(f)
	r := blockReader{blobs: b, file: f, c: c}
	if err := r.read(p, off); err != nil {
		return 0, err
	}
	if short {
		return len(p), io.EOF
	}
	return len(p), nil
}

func (b *Blobs) placePath(id cluster.BlobID, p *record.Place) string {
	if p.Segment != 0 {
		return b.segments.Path(p.Segment)
	}
	return b.filePath(id)
}

// lookup returns the place of a blob with its block checksums.
func (b *Blobs) lookup(id cluster.BlobID) (*cachedPlace, error) {
	c, epoch := b.places.get(id)
	if c != nil {
		return c, nil
	}
	p, err := b.index.get(id)
	if err != nil {
		return nil, err
	}
	if p.Segment == 0 {
		if p.Blocks, err = b.readFooter(id, p.Size); err != nil {
			return nil, err
		}
	}
	c = &cachedPlace{id, p}
	b.places.put(c, epoch)
	return c, nil
}

// readFooter reads the block checksums from a file.
func (b *Blobs) readFooter(id cluster.BlobID, size int64) ([]uint64, error) {
	path := b.filePath(id)
	f, err := b.handles.Get(path)
	if err != nil {
		return nil, err
	}
	defer b.handles.Put(f)
	tail := make([]byte, record.FooterBytes(size))
	if _, err := f.ReadAt(tail, record.Bytes(size)-int64(len(tail))); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: blob %v: file %s is cut short", cluster.ErrCorrupt, id, path)
		}
		return nil, err
	}
	r, err := record.ParseFooter(tail)
	if err != nil {
		return nil, fmt.Errorf("blob %v, file %s: %w", id, path, err)
	}
	if r.ID != id || r.Size != size || r.Store != b.store || r.Segment != 0 {
		return nil, fmt.Errorf("%w: blob %v: file %s holds blob %v of %d bytes of store %v instead",
			cluster.ErrCorrupt, id, path, r.ID, r.Size, r.Store)
	}
	return r.Blocks, nil
}

// blockReader reads verified blocks of one blob.
type blockReader struct {
	blobs *Blobs
	file  *fileio.Handle
	c     *cachedPlace
}

// read fills p from off; all of it lies within the blob. Whole blocks are
// verified where they land, those at the edges in a buffer of ours.
func (r *blockReader) read(p []byte, off int64) error {
	for len(p) > 0 {
		block := off / cluster.BlockBytes
		start := block * cluster.BlockBytes
		if off == start {
			if n := r.wholeBlocks(off, int64(len(p))); n > 0 {
				if err := r.fill(p[:n], block); err != nil {
					return err
				}
				p, off = p[n:], off+n
				continue
			}
		}
		n, err := r.edge(p, off, block)
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// wholeBlocks returns how many of n bytes at off, the start of a block, are
// whole blocks; the last block of a blob may be short.
func (r *blockReader) wholeBlocks(off, n int64) int64 {
	if off+n == r.c.Size {
		return n
	}
	return n / cluster.BlockBytes * cluster.BlockBytes
}

// edge reads a part of a block: its pages, if their checksums are known, else
// all of it.
func (r *blockReader) edge(p []byte, off, block int64) (int, error) {
	start := block * cluster.BlockBytes
	end := min(start+cluster.BlockBytes, r.c.Size)
	p = p[:min(int64(len(p)), end-off)]
	scratch := r.blobs.buffers.block.Get()
	defer r.blobs.buffers.block.Put(scratch)
	id := blockID{r.c.id, block}
	if sums, ok := r.blobs.sums.get(id); ok {
		from := off &^ (fileio.PageBytes - 1)
		pages := scratch[:min(fileio.Align(off+int64(len(p))), end)-from]
		n, err := r.file.ReadAt(pages, r.c.Offset+from)
		if n == len(pages) && sums.match(pages, (from-start)/fileio.PageBytes) {
			return copy(p, pages[off-from:]), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		// Damage shows below: there is one way to report it.
	}
	whole := scratch[:end-start]
	if err := r.fill(whole, block); err != nil {
		return 0, err
	}
	r.blobs.sums.put(id, whole)
	return copy(p, whole[off-start:]), nil
}

// fill reads and verifies whole blocks from block on.
func (r *blockReader) fill(p []byte, block int64) error {
	n, err := r.file.ReadAt(p, r.c.Offset+block*cluster.BlockBytes)
	if n < len(p) {
		if errors.Is(err, io.EOF) {
			return r.corrupt(block+int64(n)/cluster.BlockBytes, "is cut short")
		}
		return err
	}
	for len(p) > 0 {
		n := min(len(p), cluster.BlockBytes)
		if crc64.Checksum(p[:n]) != r.c.Blocks[block] {
			return r.corrupt(block, "does not match its checksum")
		}
		p = p[n:]
		block++
	}
	return nil
}

func (r *blockReader) corrupt(block int64, what string) error {
	return fmt.Errorf("%w: blob %v: block %d %s (file %s, offset %d)", cluster.ErrCorrupt,
		r.c.id, block, what, r.file.Path, r.c.Offset+block*cluster.BlockBytes)
}
