package vfs

import (
	"context"
	"math"
	"sync"
)

const (
	// minChunkBytes and maxChunkBytes bound a write buffer: a small file
	// takes a small one, a stream's grow up to what uploads take at once.
	minChunkBytes = 64 << 10
	maxChunkBytes = 1 << 20
	// atomicWriteBytes is the largest write that readers see whole or not at
	// all; longer ones are several.
	atomicWriteBytes = 4 << 20
)

// dirtyPool bounds the write buffers of all files and recycles them.
type dirtyPool struct {
	limit int64
	free  [chunkClasses]sync.Pool

	mu    sync.Mutex
	used  int64
	freed chan struct{} // closed when bytes come back while somebody waits
}

// chunkClasses are the powers of two from minChunkBytes to maxChunkBytes.
const chunkClasses = 5

// chunk is one write buffer of one file, filled from its start. refs is
// guarded by the openFile.
type chunk struct {
	buf  []byte
	used int
	refs int
}

func (c *chunk) room() int { return len(c.buf) - c.used }

func (p *dirtyPool) init(limit int64) {
	p.limit = max(limit, 2*atomicWriteBytes)
	p.freed = make(chan struct{})
}

func chunkClass(bytes int) int {
	class := 0
	for size := minChunkBytes; size < bytes && class < chunkClasses-1; size *= 2 {
		class++
	}
	return class
}

// try returns chunks that hold need bytes together, each of about size if
// that is more, or nil if the pool is exhausted: all or none, so that writers
// never wait for each other with chunks in their hands.
func (p *dirtyPool) try(need, size int) (list []*chunk) { return p.take(need, size, p.limit) }

// beyond is try for who may exceed the limit.
func (p *dirtyPool) beyond(need, size int) []*chunk { return p.take(need, size, math.MaxInt64) }

func (p *dirtyPool) take(need, size int, limit int64) (list []*chunk) {
	var classes []int
	var total int64
	for left := need; left > 0; {
		class := chunkClass(max(left, size))
		bytes := minChunkBytes << class
		classes = append(classes, class)
		total += int64(bytes)
		left -= bytes
	}
	p.mu.Lock()
	if p.used+total > limit {
		p.mu.Unlock()
		return nil
	}
	p.used += total
	p.mu.Unlock()
	for _, class := range classes {
		c, _ := p.free[class].Get().(*chunk)
		if c == nil {
			c = &chunk{buf: make([]byte, minChunkBytes<<class)}
		}
		c.used, c.refs = 0, 0
		list = append(list, c)
	}
	return list
}

func (p *dirtyPool) put(list ...*chunk) {
	if len(list) == 0 {
		return
	}
	var total int64
	for _, c := range list {
		total += int64(len(c.buf))
		p.free[chunkClass(len(c.buf))].Put(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= total
	close(p.freed)
	p.freed = make(chan struct{})
}

// await returns when done is closed.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal returns what is closed when some chunk comes back.
func (p *dirtyPool) signal() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freed
}

// pressed reports whether more than half of the pool is in use.
func (p *dirtyPool) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used > p.limit/2
}
