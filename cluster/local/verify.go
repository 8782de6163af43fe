package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/cluster/local/internal/crc64"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

var _ cluster.BlobVerifier = (*Blobs)(nil)

// Verify implements cluster.BlobVerifier: it reads the whole record, data and
// footer, past the page cache where the file system lets it.
func (b *Blobs) Verify(ctx context.Context, id cluster.BlobID) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.gate.Leave()
	for attempt := 1; ; attempt++ {
		err := b.verifyOnce(id)
		if err == nil || errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		if attempt == readAttempts {
			return b.unread(id, err)
		}
	}
}

func (b *Blobs) verifyOnce(id cluster.BlobID) error {
	p, err := b.index.get(id)
	if err != nil {
		return err
	}
	path := b.placePath(id, &p)
	f, err := b.disk.OpenDirect(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := b.buffers.large.Get()
	defer b.buffers.large.Put(buf)
	bad := func(off int64, what string) error {
		return fmt.Errorf("%w: blob %v: %s (file %s, offset %d)", cluster.ErrCorrupt, id, what, path, p.Offset+off)
	}
	read := func(off, n int64) ([]byte, error) {
		got, err := f.ReadAt(buf[:n], p.Offset+off)
		if int64(got) == n {
			return buf[:n], nil
		}
		if err == nil || errors.Is(err, io.EOF) {
			return nil, bad(off, "is cut short")
		}
		return nil, err
	}
	total := record.Bytes(p.Size)
	from := (total - record.FooterBytes(p.Size)) &^ (fileio.PageBytes - 1)
	tail, err := read(from, total-from)
	if err != nil {
		return err
	}
	r, err := record.ParseFooter(tail)
	if err != nil {
		return fmt.Errorf("blob %v, file %s: %w", id, path, err)
	}
	if r.ID != id || r.Size != p.Size || r.Store != b.store || r.Segment != p.Segment || r.Offset != p.Offset {
		return bad(from, fmt.Sprintf("another record is in its place, of blob %v", r.ID))
	}
	if p.Segment == 0 {
		p.Blocks = r.Blocks // record.ParseFooter made its own
	}
	for off := int64(0); off < p.Size; off += smallMax {
		n := min(smallMax, p.Size-off)
		data, err := read(off, fileio.Align(n))
		if err != nil {
			return err
		}
		for i := int64(0); i < n; i += cluster.BlockBytes {
			block := (off + i) / cluster.BlockBytes
			if crc64.Checksum(data[i:min(i+cluster.BlockBytes, n)]) != p.Blocks[block] {
				return bad(off+i, fmt.Sprintf("block %d does not match its checksum", block))
			}
		}
	}
	return nil
}
