package fileio

import (
	"sync"
	"unsafe"
)

// PageBytes is the unit of O_DIRECT: offsets, lengths and memory addresses
// are multiples of it.
const PageBytes = 4096

// Align rounds n up to a multiple of PageBytes.
func Align(n int64) int64 { return (n + PageBytes - 1) &^ (PageBytes - 1) }

// NewPages returns n bytes of page-aligned memory.
func NewPages(n int) []byte {
	raw := make([]byte, n+PageBytes)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) & (PageBytes - 1))
	return raw[skip : skip+n : skip+n]
}

// Pool keeps page-aligned buffers of one size for reuse.
type Pool struct {
	bytes int
	mu    sync.Mutex
	free  [][]byte
	keep  int // at most so many are kept
}

// NewPool returns a pool of buffers of so many bytes, of which it keeps at most
// keep.
func NewPool(bytes, keep int) *Pool { return &Pool{bytes: bytes, keep: keep} }

// Get returns a buffer, of which the content is not defined.
func (p *Pool) Get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return NewPages(p.bytes)
}

// Put takes back what Get returned; a shorter buffer is dropped.
func (p *Pool) Put(b []byte) {
	if cap(b) < p.bytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < p.keep {
		p.free = append(p.free, b[:p.bytes])
	}
}
