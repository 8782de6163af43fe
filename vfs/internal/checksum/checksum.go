package checksum

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
	"ogw/vfs/internal/fserr"

	"github.com/cespare/xxhash/v2"
	"github.com/minio/crc64nvme"
	"github.com/zeebo/xxh3"
)

// New returns the hash of an object checksum; its Sum is what Sum.Value
// holds. fserr.ErrInvalid for an algorithm that S3 does not have.
func (a Algorithm) New() (hash.Hash, error) {
	switch a {
	case CRC32:
		return crc32.NewIEEE(), nil
	case CRC32C:
		return crc32.New(crc32.MakeTable(crc32.Castagnoli)), nil
	case CRC64NVME:
		return crc64nvme.New(), nil
	case SHA1:
		return sha1.New(), nil
	case SHA256:
		return sha256.New(), nil
	case SHA512:
		return sha512.New(), nil
	case MD5:
		return md5.New(), nil
	case XXHASH64:
		return xxhash.New(), nil
	case XXHASH3:
		return xxh3.New(), nil
	case XXHASH128:
		return xxh128{xxh3.New()}, nil
	}
	return nil, fmt.Errorf("checksum algorithm %q: %w", a, fserr.ErrInvalid)
}

// xxh128 is the variant of 128 bits of XXH3, in its canonical (big-endian) form.
type xxh128 struct{ *xxh3.Hasher }

func (h xxh128) Size() int { return 16 }

func (h xxh128) Sum(b []byte) []byte {
	sum := h.Sum128().Bytes()
	return append(b, sum[:]...)
}

// Size is the length of a value in bytes, 0 for an unknown algorithm.
func (a Algorithm) Size() int {
	switch a {
	case CRC32, CRC32C:
		return 4
	case CRC64NVME, XXHASH64, XXHASH3:
		return 8
	case MD5, XXHASH128:
		return 16
	case SHA512:
		return sha512.Size
	case SHA1:
		return sha1.Size
	case SHA256:
		return sha256.Size
	}
	return 0
}

// Combines reports whether the checksum of a whole follows from those of its
// parts.
func Combines(a Algorithm) bool {
	return a == CRC32 || a == CRC32C || a == CRC64NVME
}

// Combine returns the checksum of the concatenation of two byte
// strings; sum1 nil stands for the empty one. The algorithm must combine.
func Combine(alg Algorithm, sum1, sum2 []byte, len2 int64) []byte {
	if sum1 == nil {
		return sum2
	}
	if alg == CRC64NVME {
		crc := cluster.CombineCRC64(binary.BigEndian.Uint64(sum1), binary.BigEndian.Uint64(sum2), len2)
		return CRC64Bytes(crc)
	}
	poly := uint32(crc32.IEEE)
	if alg == CRC32C {
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

// Algorithm names an object checksum as S3 does (S3 API reference,
// "Checksum").
type Algorithm string

const (
	CRC32     Algorithm = "CRC32"
	CRC32C    Algorithm = "CRC32C"
	CRC64NVME Algorithm = "CRC64NVME"
	SHA1      Algorithm = "SHA1"
	SHA256    Algorithm = "SHA256"
	SHA512    Algorithm = "SHA512"
	MD5       Algorithm = "MD5"
	XXHASH64  Algorithm = "XXHASH64"
	XXHASH3   Algorithm = "XXHASH3"
	XXHASH128 Algorithm = "XXHASH128"
)

// Sum is the checksum of a content or a part.
type Sum struct {
	Algorithm Algorithm
	Value     []byte // big-endian for the CRCs and XXHASHs
	// Parts is the number of parts of a composite checksum (a checksum of
	// the parts' checksums); 0 means that it covers the whole object.
	Parts int
}

func CRC64Bytes(crc uint64) []byte { return binary.BigEndian.AppendUint64(nil, crc) }
