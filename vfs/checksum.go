package vfs

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"math/bits"

	"ogw/cluster"

	"github.com/cespare/xxhash/v2"
	"github.com/minio/crc64nvme"
	"github.com/zeebo/xxh3"
)

// New returns the hash of an object checksum; its Sum is what Checksum.Value
// holds. ErrInvalid for an algorithm that S3 does not have.
func (a ChecksumAlgorithm) New() (hash.Hash, error) {
	switch a {
	case ChecksumCRC32:
		return crc32.NewIEEE(), nil
	case ChecksumCRC32C:
		return crc32.New(crc32.MakeTable(crc32.Castagnoli)), nil
	case ChecksumCRC64NVME:
		return crc64nvme.New(), nil
	case ChecksumSHA1:
		return sha1.New(), nil
	case ChecksumSHA256:
		return sha256.New(), nil
	case ChecksumSHA512:
		return sha512.New(), nil
	case ChecksumMD5:
		return md5.New(), nil
	case ChecksumXXHASH64:
		return xxhash.New(), nil
	case ChecksumXXHASH3:
		return xxh3.New(), nil
	case ChecksumXXHASH128:
		return xxh128{xxh3.New()}, nil
	}
	return nil, fmt.Errorf("checksum algorithm %q: %w", a, ErrInvalid)
}

// xxh128 is the variant of 128 bits of XXH3, in its canonical (big-endian) form.
type xxh128 struct{ *xxh3.Hasher }

func (h xxh128) Size() int { return 16 }

func (h xxh128) Sum(b []byte) []byte {
	sum := h.Sum128().Bytes()
	return append(b, sum[:]...)
}

// Size is the length of a value in bytes, 0 for an unknown algorithm.
func (a ChecksumAlgorithm) Size() int {
	switch a {
	case ChecksumCRC32, ChecksumCRC32C:
		return 4
	case ChecksumCRC64NVME, ChecksumXXHASH64, ChecksumXXHASH3:
		return 8
	case ChecksumMD5, ChecksumXXHASH128:
		return 16
	case ChecksumSHA512:
		return sha512.Size
	case ChecksumSHA1:
		return sha1.Size
	case ChecksumSHA256:
		return sha256.Size
	}
	return 0
}

// combines tells whether the checksum of a whole follows from those of its
// parts.
func (a ChecksumAlgorithm) combines() bool {
	return a == ChecksumCRC32 || a == ChecksumCRC32C || a == ChecksumCRC64NVME
}

// combineChecksums returns the checksum of the concatenation of two byte
// strings; sum1 nil stands for the empty one. The algorithm must combine.
func combineChecksums(alg ChecksumAlgorithm, sum1, sum2 []byte, len2 int64) []byte {
	if sum1 == nil {
		return sum2
	}
	if alg == ChecksumCRC64NVME {
		crc := cluster.CombineCRC64(binary.BigEndian.Uint64(sum1), binary.BigEndian.Uint64(sum2), len2)
		return crcBytes(crc)
	}
	poly := uint32(crc32.IEEE)
	if alg == ChecksumCRC32C {
		poly = crc32.Castagnoli
	}
	crc := combineCRC32(poly, binary.BigEndian.Uint32(sum1), binary.BigEndian.Uint32(sum2), len2)
	return binary.BigEndian.AppendUint32(nil, crc)
}

// combineCRC32 is cluster.CombineCRC64 for a reflected polynomial of 32 bits:
// it multiplies crc1 with x^(8*len2) and adds crc2. The inversions at both
// ends cancel out.
func combineCRC32(poly, crc1, crc2 uint32, len2 int64) uint32 {
	const one = uint32(1) << 31 // bit 31 is the coefficient of x^0
	power, shift := one>>8, one // x^8
	for n := uint64(len2); n != 0; n >>= 1 {
		if n&1 != 0 {
			shift = mulCRC32(poly, shift, power)
		}
		power = mulCRC32(poly, power, power)
	}
	return mulCRC32(poly, crc1, shift) ^ crc2
}

// mulCRC32 multiplies two polynomials modulo poly.
func mulCRC32(poly, a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if bits.LeadingZeros32(a) == 0 {
			product ^= b
		}
		b = b>>1 ^ poly&-(b&1)
	}
	return product
}
