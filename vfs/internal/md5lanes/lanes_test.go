package md5lanes

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// finish ends the MD5 of a byte string of n bytes, a multiple of a block,
// with the padding of RFC 1321.
func finish(s State, n int) []byte {
	var pad [BlockBytes]byte
	pad[0] = 0x80
	binary.LittleEndian.PutUint64(pad[56:], uint64(n)*8)
	Blocks([]Lane{{&s, pad[:]}}, BlockBytes)
	return s.Append(nil)
}

func needLanes(t testing.TB) {
	if !Available() {
		t.Skip("this processor has no AVX-512")
	}
}

// Every number of lanes, at any address, in pieces, against crypto/md5.
func TestBlocks(t *testing.T) {
	needLanes(t)
	rnd := rand.NewChaCha8([32]byte{1})
	for lanes := 1; lanes <= Lanes; lanes++ {
		for _, blocks := range []int{1, 2, 3, 17, 100} {
			n := blocks * BlockBytes
			states := make([]State, lanes)
			all := make([]Lane, lanes)
			for i := range all {
				b := make([]byte, n+i)[i:]
				rnd.Read(b)
				states[i] = Init()
				all[i] = Lane{&states[i], b}
			}
			first := blocks / 2 * BlockBytes
			rest := make([]Lane, lanes)
			for i, l := range all {
				rest[i] = Lane{l.State, l.Data[first:]}
			}
			if first > 0 {
				Blocks(all, first)
			}
			Blocks(rest, n-first)
			for i, l := range all {
				want := md5.Sum(l.Data)
				if got := finish(*l.State, n); string(got) != string(want[:]) {
					t.Fatalf("lane %d of %d, %d blocks: %x, want %x", i, lanes, blocks, got, want)
				}
			}
		}
	}
}

// Only the lanes that are given change, and no more than n bytes count.
func TestBlocksLeavesTheRest(t *testing.T) {
	needLanes(t)
	a, b := Init(), Init()
	data := make([]byte, 3*BlockBytes)
	data[BlockBytes] = 1
	Blocks([]Lane{{&a, data}}, BlockBytes)
	Blocks([]Lane{{&b, data[:BlockBytes]}}, BlockBytes)
	if a != b || a == Init() {
		t.Errorf("%x and %x", a, b)
	}
	for _, n := range []int{-64, 0, 1, 4 * BlockBytes} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes of %d were taken", n, len(data))
				}
			}()
			Blocks([]Lane{{&a, data}}, n)
		}()
	}
}

func BenchmarkBlocks(b *testing.B) {
	needLanes(b)
	const n = 64 << 10
	for _, lanes := range []int{1, 2, 4, 16} {
		b.Run(fmt.Sprint(lanes, "lanes"), func(b *testing.B) {
			states := make([]State, lanes)
			all := make([]Lane, lanes)
			for i := range all {
				all[i] = Lane{&states[i], make([]byte, n)}
			}
			b.SetBytes(int64(n * lanes))
			for b.Loop() {
				Blocks(all, n)
			}
		})
	}
	b.Run("crypto", func(b *testing.B) {
		data := make([]byte, n)
		b.SetBytes(n)
		for b.Loop() {
			md5.Sum(data)
		}
	})
}
