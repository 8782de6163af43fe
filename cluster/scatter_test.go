package cluster

import (
	"bytes"
	"testing"
)

// Buffers in pieces behave as one of their length.
func TestBuffers(t *testing.T) {
	const size = 10
	for _, cuts := range [][]int{{size}, {3, 7}, {0, 1, 0, 4, 5, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		for from := range int64(size + 1) {
			for to := from; to <= size; to++ {
				whole := make([]byte, size)
				var pieces Buffers
				for rest := whole; len(pieces) < len(cuts); rest = rest[cuts[len(pieces)-1]:] {
					pieces = append(pieces, rest[:cuts[len(pieces)]:cuts[len(pieces)]])
				}
				part := pieces.Slice(from, to)
				if pieces.Len() != size || part.Len() != to-from {
					t.Fatalf("%v: %d bytes, %d of them from %d to %d", cuts, pieces.Len(), part.Len(), from, to)
				}
				if n := part.CopyAt([]byte("abcdefghijkl"), 1); n != int(max(0, to-from-1)) {
					t.Fatalf("%v from %d to %d: %d copied", cuts, from, to, n)
				}
				want := make([]byte, size)
				copy(want[min(from+1, to):to], "abcdefghijkl")
				if !bytes.Equal(whole, want) {
					t.Fatalf("%v from %d to %d: %q, want %q", cuts, from, to, whole, want)
				}
			}
		}
	}
}
