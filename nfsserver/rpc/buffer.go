package rpc

import (
	"slices"
	"sync"
)

// bufferSizes are the classes of pooled buffers: small calls and replies, a
// batch of small replies, a page of a directory, and the transfer sizes that
// clients negotiate, with room for headers.
var bufferSizes = [...]int{1 << 10, 8 << 10, 16 << 10, 72 << 10, 136 << 10, 264 << 10, 520 << 10, 1<<20 + 16<<10}

// classOf returns the class of a buffer of n bytes; -1: it is not pooled.
func classOf(n int) int {
	return slices.IndexFunc(bufferSizes[:], func(size int) bool { return n <= size })
}

// memoryOf returns how many bytes a buffer of n bytes takes.
func memoryOf(n int) int {
	if class := classOf(n); class >= 0 {
		return bufferSizes[class]
	}
	return n
}

var bufferPools [len(bufferSizes)]sync.Pool

// Buffer is a pooled byte buffer. B may be resliced within its capacity.
type Buffer struct {
	B     []byte
	class int
}

// GetBuffer returns a buffer with len(B) == n. Its bytes are not cleared.
func GetBuffer(n int) *Buffer {
	class := classOf(n)
	if class < 0 {
		return &Buffer{B: make([]byte, n), class: class}
	}
	if b, ok := bufferPools[class].Get().(*Buffer); ok {
		b.B = b.B[:n]
		return b
	}
	return &Buffer{B: make([]byte, n, bufferSizes[class]), class: class}
}

// Free returns b to its pool. b and slices of b.B must not be used again.
func (b *Buffer) Free() {
	if b == nil || b.class < 0 {
		return
	}
	b.B = b.B[:cap(b.B)]
	bufferPools[b.class].Put(b)
}
