package s3

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

const (
	sumBytes   = 8
	frameBytes = cluster.BlockBytes + sumBytes
	// lastFrame is set in the block number of the last frame's sum, so that an
	// object that lost frames at its end does not pass for a shorter blob.
	lastFrame = uint64(1) << 63
)

// dataSize returns the length of the blob in an object of n bytes. No blob has
// an object that is empty, or whose last frame has no room for its sum: such a
// frame counts as one without data.
func dataSize(n int64) int64 {
	full, rest := n/frameBytes, n%frameBytes
	return full*cluster.BlockBytes + max(0, rest-sumBytes)
}

// lastBlock returns the number of the last frame of an object of n bytes.
func lastBlock(n int64) int64 { return (n - 1) / frameBytes }

// frameSum returns what is stored behind data, whose CRC64NVME is crc.
func frameSum(crc uint64, id cluster.BlobID, block int64, last bool) uint64 {
	number := uint64(block)
	if last {
		number |= lastFrame
	}
	var suffix [cluster.BlobIDBytes + 8]byte
	return crc64nvme.Update(crc, binary.BigEndian.AppendUint64(id.Append(suffix[:0]), number))
}

// openFrame returns the data of a frame, or ErrCorrupt.
func openFrame(frame []byte, id cluster.BlobID, block int64, last bool) ([]byte, error) {
	n := len(frame) - sumBytes
	if n < 0 || binary.BigEndian.Uint64(frame[n:]) != frameSum(crc64nvme.Checksum(frame[:n]), id, block, last) {
		return nil, fmt.Errorf("%w: blob %v, block %d", cluster.ErrCorrupt, id, block)
	}
	return frame[:n], nil
}
