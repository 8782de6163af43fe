// Package crc64 computes CRC64NVME, the checksum of blocks, as
// github.com/minio/crc64nvme does, and faster on processors that multiply without
// carry in 256 bits but have no AVX-512: there the library goes by 128 bits.
//
//	Checksum ── fold (256 bits) ── crc64nvme, of the 128 bytes that are left
//	       └─── crc64nvme, elsewhere and of little
package crc64

import (
	"encoding/binary"

	"github.com/minio/crc64nvme"
)

const (
	// foldBytes is what fold takes at a time.
	foldBytes = 128
	// foldFrom is from where on it pays.
	foldFrom = 512
)

// Checksum returns the CRC64NVME of p.
func Checksum(p []byte) uint64 {
	if !wide || len(p) < foldFrom {
		return crc64nvme.Checksum(p)
	}
	// What is folded has, by itself and from the state 0, the checksum of all that
	// it was made of. States are inverted, on both ends.
	var acc [foldBytes]byte
	copy(acc[:], p)
	binary.LittleEndian.PutUint64(acc[:], ^binary.LittleEndian.Uint64(acc[:]))
	whole := len(p) &^ (foldBytes - 1)
	fold(&acc, p[foldBytes:whole])
	return crc64nvme.Update(crc64nvme.Update(^uint64(0), acc[:]), p[whole:])
}
