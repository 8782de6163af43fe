package cluster

import (
	"hash/crc64"
	"math/rand/v2"
	"testing"
)

func TestCombineCRC64(t *testing.T) {
	table := crc64.MakeTable(crcPoly)
	if got := crc64.Checksum([]byte("123456789"), table); got != 0xae8b14860a799888 {
		t.Fatalf("check value of the polynomial: %x", got)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	cuts := []int{0, 1, 7, 8, 9, 4095, 4096, 65536, 65537, 1<<20 - 1, 1 << 20}
	for range 50 {
		cuts = append(cuts, rng.IntN(len(data)))
	}
	whole := crc64.Checksum(data, table)
	for _, cut := range cuts {
		a, b := data[:cut], data[cut:]
		got := CombineCRC64(crc64.Checksum(a, table), crc64.Checksum(b, table), int64(len(b)))
		if got != whole {
			t.Errorf("cut at %d: %x, want %x", cut, got, whole)
		}
	}
}

// The combination is associative, whatever the lengths: shift by more than
// memory could hold.
func TestCombineCRC64Long(t *testing.T) {
	const a, b, c = 0x0123456789abcdef, 0xfedcba9876543210, 0xdeadbeefcafef00d
	for _, n := range []int64{1, 64 << 10, 5 << 40, 1<<59 + 12345, 1<<61 + 7} {
		left := CombineCRC64(CombineCRC64(a, b, n), c, n)
		right := CombineCRC64(a, CombineCRC64(b, c, n), n+n)
		if left != right {
			t.Errorf("length %d: %x, %x", n, left, right)
		}
	}
}

func BenchmarkCombineCRC64(b *testing.B) {
	crc := uint64(1)
	for b.Loop() {
		crc = CombineCRC64(crc, 2, BlockBytes)
	}
}
