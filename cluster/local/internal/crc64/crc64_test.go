package crc64

import (
	"math/rand/v2"
	"testing"

	"github.com/minio/crc64nvme"
)

// TestChecksum compares with the library, for every length and alignment around
// what fold takes.
func TestChecksum(t *testing.T) {
	data := make([]byte, 8<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	for n := range 5 << 10 {
		p := data[n%67:][:n]
		if got, want := Checksum(p), crc64nvme.Checksum(p); got != want {
			t.Fatalf("of %d bytes: %x, want %x", n, got, want)
		}
	}
}

// TestFold tries fold where the processor has it, though the library may be as fast.
func TestFold(t *testing.T) {
	if !wide {
		t.Skip("no VPCLMULQDQ without AVX-512")
	}
	zeros := make([]byte, 64<<10)
	if got, want := Checksum(zeros), crc64nvme.Checksum(zeros); got != want {
		t.Fatalf("of zeros: %x, want %x", got, want)
	}
	for i := range zeros { // each bit counts
		zeros[i] = 1
		if i%997 == 0 && Checksum(zeros) != crc64nvme.Checksum(zeros) {
			t.Fatalf("of ones up to %d", i)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"page", 4 << 10}, {"block", 64 << 10}} {
		p := make([]byte, size.bytes)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				Checksum(p)
			}
		})
		b.Run(size.name+"/crc64nvme", func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				crc64nvme.Checksum(p)
			}
		})
	}
}
