package record

import (
	"encoding/binary"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
)

// A place is, little-endian:
//
//	0  kind: 1 file of its own, 2 in a segment
//	1  length of the data (8)
//	9  time of creation, Unix nanoseconds (8)
//	segments only:
//	17 segment number (8)
//	25 offset of the record (8)
//	33 CRC64NVME of each block (8 each)
const (
	placeFile    = 1
	placeSegment = 2

	placeFileBytes    = 17
	placeSegmentBytes = 33
)

// Place is where a blob is. Blobs in files have their checksums there.
type Place struct {
	Size     int64
	Modified time.Time
	Segment  uint64 // 0: a file of its own
	Offset   int64
	Blocks   []uint64 // nil for files
}

// Encode returns the value of the blob's key.
func (p *Place) Encode() []byte {
	b := make([]byte, 0, placeSegmentBytes+CRCBytes*len(p.Blocks))
	kind := byte(placeFile)
	if p.Segment != 0 {
		kind = placeSegment
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Modified.UnixNano()))
	if kind == placeFile {
		return b
	}
	b = binary.LittleEndian.AppendUint64(b, p.Segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Offset))
	for _, crc := range p.Blocks {
		b = binary.LittleEndian.AppendUint64(b, crc)
	}
	return b
}

var errPlace = fmt.Errorf("%w: damaged place of a blob in the index", cluster.ErrCorrupt)

// ParsePlace decodes what Encode returned; cluster.ErrCorrupt for anything else.
func ParsePlace(b []byte) (p Place, err error) {
	if len(b) < placeFileBytes {
		return p, errPlace
	}
	size := binary.LittleEndian.Uint64(b[1:])
	if size > cluster.MaxBlobBytes {
		return p, errPlace
	}
	p.Size = int64(size)
	p.Modified = time.Unix(0, int64(binary.LittleEndian.Uint64(b[9:])))
	switch b[0] {
	case placeFile:
		if len(b) != placeFileBytes {
			return p, errPlace
		}
		return p, nil
	case placeSegment:
		blocks := blockCount(p.Size)
		if len(b) != placeSegmentBytes+CRCBytes*blocks {
			return p, errPlace
		}
		p.Segment = binary.LittleEndian.Uint64(b[17:])
		p.Offset = int64(binary.LittleEndian.Uint64(b[25:]))
		if p.Segment == 0 || p.Offset < 0 || p.Offset%fileio.PageBytes != 0 {
			return p, errPlace
		}
		p.Blocks = make([]uint64, blocks)
		for i := range p.Blocks {
			p.Blocks[i] = binary.LittleEndian.Uint64(b[placeSegmentBytes+i*CRCBytes:])
		}
		return p, nil
	default:
		return p, errPlace
	}
}
