package cluster

import "math/bits"

// crcPoly is the CRC-64/NVME polynomial, reflected: bit 63 is the
// coefficient of x^0. The checksum starts from and ends with an inversion of
// all bits (NVM Express NVM Command Set Specification, 64b CRC).
const crcPoly = 0x9A6C9329AC4BC9B5

// crcOne is the polynomial 1 in reflected form.
const crcOne = uint64(1) << 63

// crcPowers[k] is x^(2^k) modulo the polynomial: what it takes to append 2^k
// zero bits. The longest length has 63 bits, and bytes have 2^3 bits.
var crcPowers = func() (t [63 + 3]uint64) {
	p := crcOne >> 1 // x^1
	for k := range t {
		t[k] = p
		p = crcMul(p, p)
	}
	return t
}()

// crcMul multiplies two polynomials modulo crcPoly.
func crcMul(a, b uint64) uint64 {
	var product uint64
	for ; a != 0; a <<= 1 {
		if a&crcOne != 0 {
			product ^= b
		}
		// b *= x
		b = b>>1 ^ crcPoly&-(b&1)
	}
	return product
}

// CombineCRC64 returns the CRC64NVME of the concatenation of two byte strings
// from the CRC64NVME of each and the length in bytes of the second. It takes
// time in O(log len2): 0.2 µs for a block.
func CombineCRC64(crc1, crc2 uint64, len2 int64) uint64 {
	if len2 <= 0 {
		return crc1
	}
	// The inversions at both ends cancel out, so that appending len2 bytes
	// is a multiplication with x^(8*len2).
	shift := crcOne
	for n := uint64(len2); n != 0; n &= n - 1 {
		shift = crcMul(crcPowers[bits.TrailingZeros64(n)+3], shift)
	}
	return crcMul(shift, crc1) ^ crc2
}
