package frame

import (
	"fmt"

	"ogw/cluster"
)

// Row turns the bytes of a blob into frames. A frame is sealed when the next byte comes, or
// at the end, since the last one has a sum of another kind.
type Row struct {
	ID     cluster.BlobID
	Part   *[]byte // sealed frames, and the data of the one that fills; the owner may exchange it when it is told
	Size   int64   // of the data
	CRC    uint64  // of the data in sealed frames
	Sealed int64   // frames
	fill   int     // bytes of data in the frame that fills
}

// Write adds p, and calls sealed after each frame but the last, when more bytes are to come.
func (r *Row) Write(p []byte, sealed func() error) (n int, err error) {
	if r.Size+int64(len(p)) > cluster.MaxBlobBytes {
		return 0, fmt.Errorf("%w: blob of more than %d bytes", cluster.ErrInvalid, cluster.MaxBlobBytes)
	}
	for n < len(p) {
		if r.fill == cluster.BlockBytes {
			r.Seal(false)
			if err := sealed(); err != nil {
				return n, err
			}
		}
		k := min(len(p)-n, cluster.BlockBytes-r.fill)
		*r.Part = append(*r.Part, p[n:n+k]...)
		r.fill, r.Size, n = r.fill+k, r.Size+int64(k), n+k
	}
	return n, nil
}

// Seal ends the frame that fills.
func (r *Row) Seal(last bool) {
	sealed, crc := seal(*r.Part, r.fill, r.ID, r.Sealed, last)
	*r.Part = sealed
	r.CRC = cluster.CombineCRC64(r.CRC, crc, int64(r.fill))
	r.fill, r.Sealed = 0, r.Sealed+1
}
