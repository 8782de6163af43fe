package vfs

import (
	"context"
	"errors"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

// readAll reads all that is stored of the content and returns the CRC64NVME of
// its bytes, in which holes count as zeros and cost nothing: a sparse file is
// as long as it likes.
//
// damage is told of each segment that is damaged; with nil it goes on behind
// that, and the checksum means nothing. Extents that cannot be read end it:
// where the next are is not known.
func (c *contentReader) readAll(ctx context.Context, damage func(error) error) (crc uint64, err error) {
	buf := make([]byte, min(c.size, copyBufferBytes))
	for at := int64(0); at < c.size; { // crc is that of the bytes before it
		p, err := c.page(ctx, at)
		if err != nil {
			return 0, err
		}
		for i := p.find(at); i < len(p.segs); i++ {
			s := &p.segs[i]
			crc = appendZeros(crc, s.off-at)
			if crc, err = c.sumSegment(ctx, s, max(at-s.off, 0), buf, crc); errors.Is(err, ErrCorrupt) {
				err = damage(err)
			}
			if err != nil {
				return 0, err
			}
			at = s.end()
		}
		crc = appendZeros(crc, p.to-at)
		at = p.to
	}
	return crc, nil
}

// sumSegment continues crc with a segment's bytes from an offset in it on.
func (c *contentReader) sumSegment(ctx context.Context, s *segment, from int64, buf []byte, crc uint64) (uint64, error) {
	for from < s.len {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p := buf[:min(int64(len(buf)), s.len-from)]
		if err := c.readSegment(ctx, s, p, from); err != nil {
			return 0, err
		}
		crc = crc64nvme.Update(crc, p)
		from += int64(len(p))
	}
	return crc, nil
}

// appendZeros continues a CRC64NVME with n zero bytes: without the inversions
// at both ends, they multiply it with x^(8n).
func appendZeros(crc uint64, n int64) uint64 { return ^cluster.CombineCRC64(^crc, 0, n) }
