package local

import (
	"sync"
	"unsafe"
)

// pageBytes is the unit of O_DIRECT: offsets, lengths and memory addresses
// are multiples of it.
const pageBytes = 4096

// alignBytes rounds n up to a multiple of pageBytes.
func alignBytes(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// newPages returns n bytes of page-aligned memory.
func newPages(n int) []byte {
	raw := make([]byte, n+pageBytes)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) & (pageBytes - 1))
	return raw[skip : skip+n : skip+n]
}

// pagePool keeps page-aligned buffers of one size for reuse.
type pagePool struct {
	bytes int
	mu    sync.Mutex
	free  [][]byte
	keep  int // at most so many are kept
}

func newPagePool(bytes, keep int) *pagePool { return &pagePool{bytes: bytes, keep: keep} }

func (p *pagePool) get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return newPages(p.bytes)
}

func (p *pagePool) put(b []byte) {
	if cap(b) < p.bytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < p.keep {
		p.free = append(p.free, b[:p.bytes])
	}
}
