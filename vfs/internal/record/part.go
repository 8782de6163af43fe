package record

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"

	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/fserr"
)

// Part is what key 'p' holds: one part of an upload, its extents in offsets
// within the part.
//
// Value: version byte, size (uvarint), MD5 (16 bytes), time (8, Unix
// nanoseconds), a byte that reports whether the CRC64NVME is known, that (8),
// checksums, the number of extents, and for each its offset (uvarint) and its
// value as under 'e' (with its length).
type Part struct {
	Number     int // part of the key
	Size       int64
	Sum        [md5.Size]byte
	ModifiedNS int64
	CRC        uint64
	HasCRC     bool
	Checksums  []checksum.Sum
	Extents    []Extent
}

const partVersion = 1

// GarbagePart is the first number of parts that were replaced.
const GarbagePart = 1 << 31

func (p *Part) Encode() []byte {
	var e Encoder
	e.Byte(partVersion)
	e.Uint(uint64(p.Size))
	e.B = append(e.B, p.Sum[:]...)
	e.fixed64(uint64(p.ModifiedNS))
	e.Bool(p.HasCRC)
	e.fixed64(p.CRC)
	e.B = appendChecksums(e.B, p.Checksums)
	e.Uint(uint64(len(p.Extents)))
	for i := range p.Extents {
		e.Uint(uint64(p.Extents[i].Off))
		e.Bytes(p.Extents[i].Encode())
	}
	return e.B
}

// DecodePart is the inverse of encode. The result keeps v.
func DecodePart(k, v []byte) (*Part, error) {
	if len(k) != 13 || k[0] != TabPart {
		return nil, fmt.Errorf("%w: part key %x", fserr.ErrCorrupt, k)
	}
	d := Decoder{B: v, What: "part"}
	if version := d.Byte(); version != partVersion {
		return nil, fmt.Errorf("%w: part %x has format %d", fserr.ErrCorrupt, k, version)
	}
	p := &Part{Number: int(binary.BigEndian.Uint32(k[9:])), Size: int64(d.Uint())}
	p.Sum = d.fixed128()
	p.ModifiedNS = int64(d.fixed64())
	p.HasCRC = d.Byte() != 0
	p.CRC = d.fixed64()
	p.Checksums = d.checksums()
	n := d.Count()
	var end int64
	for i := 0; i < n && d.Err == nil; i++ {
		off := int64(d.Uint())
		e, err := DecodeExtent(off, d.Bytes())
		if err != nil {
			return nil, err
		}
		if e.Off < end {
			d.Fail()
		}
		end = e.End()
		p.Extents = append(p.Extents, e)
	}
	if p.Size < 0 || end > p.Size {
		d.Fail()
	}
	return p, d.End()
}

// PartExtents returns the extents of a part record ('p'), for Check.
func PartExtents(v []byte) ([]Extent, error) {
	p, err := DecodePart(PartKey(0, 0), v)
	if err != nil {
		return nil, err
	}
	return p.Extents, nil
}
