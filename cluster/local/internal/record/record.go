package record

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/cluster/local/internal/crc64"
	"ogw/cluster/local/internal/fileio"
)

// A record is a stored blob, in whole pages:
//
//	data ‖ zeros ‖ CRC64NVME of each block (8 bytes each) ‖ trailer (80 bytes)
//
// The trailer ends with the record's last page. All numbers are little-endian.
//
//	 0  magic "ogwdata1"
//	 8  store ID
//	24  blob ID, as cluster.BlobID.Append
//	40  segment number; 0 for a blob in a file of its own
//	48  offset of the record in the file
//	56  length of the data in bytes
//	64  CRC64NVME of the block checksums
//	72  CRC64NVME of the trailer before this field
const (
	recordMagic  = "ogwdata1"
	trailerBytes = 80
	CRCBytes     = 8
)

// Record describes a stored blob.
type Record struct {
	Store   StoreID
	ID      cluster.BlobID
	Segment uint64
	Offset  int64
	Size    int64
	Blocks  []uint64 // CRC64NVME of each block
}

// blockCount returns how many blocks hold size bytes.
func blockCount(size int64) int { return int((size + cluster.BlockBytes - 1) / cluster.BlockBytes) }

// FooterBytes is what follows the data and the zeros.
func FooterBytes(size int64) int64 { return int64(blockCount(size))*CRCBytes + trailerBytes }

// Bytes is the length of the whole record.
func Bytes(size int64) int64 { return fileio.Align(size + FooterBytes(size)) }

// PutFooter writes the footer of r to the end of tail, which must hold it.
func (r *Record) PutFooter(tail []byte) {
	footer := tail[int64(len(tail))-FooterBytes(r.Size):]
	sums := footer[:len(footer)-trailerBytes]
	for i, crc := range r.Blocks {
		binary.LittleEndian.PutUint64(sums[i*CRCBytes:], crc)
	}
	t := footer[len(sums):]
	copy(t, recordMagic)
	copy(t[8:], r.Store[:])
	r.ID.Append(t[24:24])
	binary.LittleEndian.PutUint64(t[40:], r.Segment)
	binary.LittleEndian.PutUint64(t[48:], uint64(r.Offset))
	binary.LittleEndian.PutUint64(t[56:], uint64(r.Size))
	binary.LittleEndian.PutUint64(t[64:], crc64.Checksum(sums))
	binary.LittleEndian.PutUint64(t[72:], crc64.Checksum(t[:72]))
}

// ParseTrailer decodes the trailer at the end of page. It returns false for
// anything that is not an undamaged one.
func ParseTrailer(page []byte) (r Record, sumsCRC uint64, ok bool) {
	if len(page) < trailerBytes {
		return r, 0, false
	}
	t := page[len(page)-trailerBytes:]
	if string(t[:8]) != recordMagic || binary.LittleEndian.Uint64(t[72:]) != crc64.Checksum(t[:72]) {
		return r, 0, false
	}
	copy(r.Store[:], t[8:24])
	r.ID, _ = cluster.ParseBlobID(t[24:40])
	r.Segment = binary.LittleEndian.Uint64(t[40:])
	offset, size := binary.LittleEndian.Uint64(t[48:]), binary.LittleEndian.Uint64(t[56:])
	if size > cluster.MaxBlobBytes || offset > 1<<62 {
		return r, 0, false
	}
	r.Offset, r.Size = int64(offset), int64(size)
	return r, binary.LittleEndian.Uint64(t[64:]), true
}

// ParseFooter decodes what PutFooter wrote, all of it.
func ParseFooter(tail []byte) (Record, error) {
	r, sumsCRC, ok := ParseTrailer(tail)
	if !ok {
		return r, fmt.Errorf("%w: damaged trailer", cluster.ErrCorrupt)
	}
	need := FooterBytes(r.Size)
	if int64(len(tail)) < need {
		return r, fmt.Errorf("%w: footer cut short", cluster.ErrCorrupt)
	}
	sums := tail[int64(len(tail))-need:]
	sums = sums[:len(sums)-trailerBytes]
	if crc64.Checksum(sums) != sumsCRC {
		return r, fmt.Errorf("%w: damaged block checksums", cluster.ErrCorrupt)
	}
	r.Blocks = make([]uint64, blockCount(r.Size))
	for i := range r.Blocks {
		r.Blocks[i] = binary.LittleEndian.Uint64(sums[i*CRCBytes:])
	}
	return r, nil
}

// WholeCRC combines the block checksums.
func (r *Record) WholeCRC() uint64 {
	var crc uint64
	left := r.Size
	for _, block := range r.Blocks {
		n := min(left, cluster.BlockBytes)
		crc = cluster.CombineCRC64(crc, block, n)
		left -= n
	}
	return crc
}

// BlockSums appends the checksums of the blocks of data.
func BlockSums(sums []uint64, data []byte) []uint64 {
	for len(data) > 0 {
		n := min(len(data), cluster.BlockBytes)
		sums = append(sums, crc64.Checksum(data[:n]))
		data = data[n:]
	}
	return sums
}
