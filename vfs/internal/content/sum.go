package content

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"

	"github.com/minio/crc64nvme"
)

// copyBuffer is what is read at a time to be copied or summed, in bytes.
const copyBuffer = 1 << 20

// Sum reads all that is stored of the content and returns the CRC64NVME of
// its bytes, in which holes count as zeros and cost nothing: a sparse file is
// as long as it likes.
//
// damage is called for each segment that is damaged; with nil it goes on behind
// that, and the checksum means nothing. Extents that cannot be read end it:
// where the next are is not known.
func (c *Reader) Sum(ctx context.Context, damage func(error) error) (crc uint64, err error) {
	buf := make([]byte, min(c.size, copyBuffer))
	for at := int64(0); at < c.size; { // crc is that of the bytes before it
		p, err := c.Page(ctx, at)
		if err != nil {
			return 0, err
		}
		for i := p.Find(at); i < len(p.Segs); i++ {
			s := &p.Segs[i]
			crc = appendZeros(crc, s.Off-at)
			if crc, err = c.sumSegment(ctx, s, max(at-s.Off, 0), buf, crc); errors.Is(err, fserr.ErrCorrupt) {
				err = damage(err)
			}
			if err != nil {
				return 0, err
			}
			at = s.End()
		}
		crc = appendZeros(crc, p.To-at)
		at = p.To
	}
	return crc, nil
}

// sumSegment continues crc with a segment's bytes from an offset in it on.
func (c *Reader) sumSegment(ctx context.Context, s *Segment, from int64, buf []byte, crc uint64) (uint64, error) {
	for from < s.Len {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p := buf[:min(int64(len(buf)), s.Len-from)]
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
