// Package frame is how engines store blobs in servers that keep bytes as they are given: as
// a row of frames, one for each block of BlockBytes. The last one is shorter, and the only
// one of an empty blob holds no data.
//
//	frame: data ‖ sum (8 bytes, big-endian)
//	sum:   CRC64NVME of data ‖ ID (16 bytes) ‖ number of the block, with lastFrame set in the last
//
// So a read of any range is one of whole frames, and bytes of another blob, of another place,
// or of a row that was cut short are found, as changed ones are.
package frame

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

const (
	sumBytes = 8
	// Bytes is the length of all frames but the last.
	Bytes = cluster.BlockBytes + sumBytes
	// lastFrame is set in the block number of the last frame's sum, so that a
	// row that lost frames at its end does not pass for a shorter blob.
	lastFrame = uint64(1) << 63
)

// DataSize returns the length of the blob in a row of n bytes. No blob has
// a row that is empty, or whose last frame has no room for its sum: such a
// frame counts as one without data.
func DataSize(n int64) int64 {
	full, rest := n/Bytes, n%Bytes
	return full*cluster.BlockBytes + max(0, rest-sumBytes)
}

// RowSize returns the length of the row of a blob of n bytes.
func RowSize(n int64) int64 { return n + sumBytes*(LastBlock(n)+1) }

// LastBlock returns the number of the last block of a blob of n bytes.
func LastBlock(n int64) int64 { return max(0, n-1) / cluster.BlockBytes }

// LastFrame returns the number of the last frame of a row of n bytes, any.
func LastFrame(n int64) int64 { return (n - 1) / Bytes }

// seal makes the last n bytes of row a frame, and returns their CRC64NVME.
func seal(row []byte, n int, id cluster.BlobID, block int64, last bool) (sealed []byte, crc uint64) {
	crc = crc64nvme.Checksum(row[len(row)-n:])
	return binary.BigEndian.AppendUint64(row, sum(crc, id, block, last)), crc
}

// sum returns what is stored behind data, whose CRC64NVME is crc.
func sum(crc uint64, id cluster.BlobID, block int64, last bool) uint64 {
	number := uint64(block)
	if last {
		number |= lastFrame
	}
	var suffix [cluster.BlobIDBytes + 8]byte
	return crc64nvme.Update(crc, binary.BigEndian.AppendUint64(id.Append(suffix[:0]), number))
}

// Open returns the data of a frame, or ErrCorrupt.
func Open(frame []byte, id cluster.BlobID, block int64, last bool) ([]byte, error) {
	n := len(frame) - sumBytes
	if n < 0 || binary.BigEndian.Uint64(frame[n:]) != sum(crc64nvme.Checksum(frame[:n]), id, block, last) {
		return nil, fmt.Errorf("%w: blob %v, block %d", cluster.ErrCorrupt, id, block)
	}
	return frame[:n], nil
}
