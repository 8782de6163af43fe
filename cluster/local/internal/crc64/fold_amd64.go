package crc64

import "github.com/klauspost/cpuid/v2"

// wide reports whether fold pays. With AVX-512 the library is as fast.
var wide = cpuid.CPU.Supports(cpuid.AVX2, cpuid.VPCLMULQDQ) &&
	!cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512VL)

// fold replaces acc by 128 bytes that have the checksum of acc and p, one after
// the other. The length of p is a multiple of 128, and not 0.
//
//go:noescape
func fold(acc *[foldBytes]byte, p []byte)
