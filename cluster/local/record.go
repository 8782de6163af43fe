package local

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"

	"github.com/minio/crc64nvme"
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
	crcBytes     = 8
)

// record describes a stored blob.
type record struct {
	store   storeID
	id      cluster.BlobID
	segment uint64
	offset  int64
	size    int64
	blocks  []uint64 // CRC64NVME of each block
}

// blockCount returns how many blocks hold size bytes.
func blockCount(size int64) int { return int((size + cluster.BlockBytes - 1) / cluster.BlockBytes) }

// footerBytes is what follows the data and the zeros.
func footerBytes(size int64) int64 { return int64(blockCount(size))*crcBytes + trailerBytes }

// recordBytes is the length of the whole record.
func recordBytes(size int64) int64 { return fileio.Align(size + footerBytes(size)) }

// putFooter writes the footer of r to the end of tail, which must hold it.
func (r *record) putFooter(tail []byte) {
	footer := tail[int64(len(tail))-footerBytes(r.size):]
	sums := footer[:len(footer)-trailerBytes]
	for i, crc := range r.blocks {
		binary.LittleEndian.PutUint64(sums[i*crcBytes:], crc)
	}
	t := footer[len(sums):]
	copy(t, recordMagic)
	copy(t[8:], r.store[:])
	r.id.Append(t[24:24])
	binary.LittleEndian.PutUint64(t[40:], r.segment)
	binary.LittleEndian.PutUint64(t[48:], uint64(r.offset))
	binary.LittleEndian.PutUint64(t[56:], uint64(r.size))
	binary.LittleEndian.PutUint64(t[64:], crc64nvme.Checksum(sums))
	binary.LittleEndian.PutUint64(t[72:], crc64nvme.Checksum(t[:72]))
}

// parseTrailer decodes the trailer at the end of page. It returns false for
// anything that is not an undamaged one.
func parseTrailer(page []byte) (r record, sumsCRC uint64, ok bool) {
	if len(page) < trailerBytes {
		return r, 0, false
	}
	t := page[len(page)-trailerBytes:]
	if string(t[:8]) != recordMagic || binary.LittleEndian.Uint64(t[72:]) != crc64nvme.Checksum(t[:72]) {
		return r, 0, false
	}
	copy(r.store[:], t[8:24])
	r.id, _ = cluster.ParseBlobID(t[24:40])
	r.segment = binary.LittleEndian.Uint64(t[40:])
	offset, size := binary.LittleEndian.Uint64(t[48:]), binary.LittleEndian.Uint64(t[56:])
	if size > cluster.MaxBlobBytes || offset > 1<<62 {
		return r, 0, false
	}
	r.offset, r.size = int64(offset), int64(size)
	return r, binary.LittleEndian.Uint64(t[64:]), true
}

// parseFooter decodes what putFooter wrote, all of it.
func parseFooter(tail []byte) (record, error) {
	r, sumsCRC, ok := parseTrailer(tail)
	if !ok {
		return r, fmt.Errorf("%w: damaged trailer", cluster.ErrCorrupt)
	}
	need := footerBytes(r.size)
	if int64(len(tail)) < need {
		return r, fmt.Errorf("%w: footer cut short", cluster.ErrCorrupt)
	}
	sums := tail[int64(len(tail))-need:]
	sums = sums[:len(sums)-trailerBytes]
	if crc64nvme.Checksum(sums) != sumsCRC {
		return r, fmt.Errorf("%w: damaged block checksums", cluster.ErrCorrupt)
	}
	r.blocks = make([]uint64, blockCount(r.size))
	for i := range r.blocks {
		r.blocks[i] = binary.LittleEndian.Uint64(sums[i*crcBytes:])
	}
	return r, nil
}

// wholeCRC combines the block checksums.
func (r *record) wholeCRC() uint64 {
	var crc uint64
	left := r.size
	for _, block := range r.blocks {
		n := min(left, cluster.BlockBytes)
		crc = cluster.CombineCRC64(crc, block, n)
		left -= n
	}
	return crc
}

// blockSums appends the checksums of the blocks of data.
func blockSums(sums []uint64, data []byte) []uint64 {
	for len(data) > 0 {
		n := min(len(data), cluster.BlockBytes)
		sums = append(sums, crc64nvme.Checksum(data[:n]))
		data = data[n:]
	}
	return sums
}
