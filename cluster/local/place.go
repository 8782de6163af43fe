package local

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

// place is where a blob is. Blobs in files have their checksums there.
type place struct {
	size     int64
	modified time.Time
	segment  uint64 // 0: a file of its own
	offset   int64
	blocks   []uint64 // nil for files
}

func (p *place) encode() []byte {
	b := make([]byte, 0, placeSegmentBytes+crcBytes*len(p.blocks))
	kind := byte(placeFile)
	if p.segment != 0 {
		kind = placeSegment
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.modified.UnixNano()))
	if kind == placeFile {
		return b
	}
	b = binary.LittleEndian.AppendUint64(b, p.segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.offset))
	for _, crc := range p.blocks {
		b = binary.LittleEndian.AppendUint64(b, crc)
	}
	return b
}

var errPlace = fmt.Errorf("%w: damaged place of a blob in the index", cluster.ErrCorrupt)

func parsePlace(b []byte) (p place, err error) {
	if len(b) < placeFileBytes {
		return p, errPlace
	}
	size := binary.LittleEndian.Uint64(b[1:])
	if size > cluster.MaxBlobBytes {
		return p, errPlace
	}
	p.size = int64(size)
	p.modified = time.Unix(0, int64(binary.LittleEndian.Uint64(b[9:])))
	switch b[0] {
	case placeFile:
		if len(b) != placeFileBytes {
			return p, errPlace
		}
		return p, nil
	case placeSegment:
		blocks := blockCount(p.size)
		if len(b) != placeSegmentBytes+crcBytes*blocks {
			return p, errPlace
		}
		p.segment = binary.LittleEndian.Uint64(b[17:])
		p.offset = int64(binary.LittleEndian.Uint64(b[25:]))
		if p.segment == 0 || p.offset < 0 || p.offset%fileio.PageBytes != 0 {
			return p, errPlace
		}
		p.blocks = make([]uint64, blocks)
		for i := range p.blocks {
			p.blocks[i] = binary.LittleEndian.Uint64(b[placeSegmentBytes+i*crcBytes:])
		}
		return p, nil
	default:
		return p, errPlace
	}
}
