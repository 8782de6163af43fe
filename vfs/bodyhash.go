package vfs

import (
	"hash"
	"sync"
)

const (
	// putBufferBytes is a buffer of a body on its way: large enough that
	// handing it between goroutines costs nothing.
	putBufferBytes = 1 << 20
	// putBuffers is how many buffers one body uses: one being read, one being
	// written, one being hashed.
	putBuffers = 3
	// maxPutBuffers bounds the buffers of all bodies together (64 MiB). A body
	// that finds none free goes on with two small ones of its own, so that
	// slow clients cannot hold up others.
	maxPutBuffers = 64
	// ownBufferBytes is the size of these.
	ownBufferBytes = 64 << 10
)

// bodyHasher hashes a body beside its reading and writing. Buffers go round:
// buffer takes a free one, write hands it to the goroutine, which frees it.
type bodyHasher struct {
	pool  *putPool
	sum   *md5Sum
	extra hash.Hash
	own   bool // the buffers are not the pool's
	all   [][]byte
	free  chan []byte
	full  chan []byte
	done  chan struct{}
	ended bool
}

func newBodyHasher(pool *putPool, sums *md5Pool, extra hash.Hash) *bodyHasher {
	h := &bodyHasher{
		pool: pool, sum: sums.begin(), extra: extra,
		free: make(chan []byte, putBuffers), full: make(chan []byte, putBuffers), done: make(chan struct{}),
	}
	h.all = pool.take(putBuffers, 2)
	if h.own = len(h.all) == 0; h.own {
		h.all = [][]byte{make([]byte, ownBufferBytes), make([]byte, ownBufferBytes)}
	}
	for _, b := range h.all {
		h.free <- b
	}
	go h.run()
	return h
}

func (h *bodyHasher) run() {
	defer close(h.done)
	for b := range h.full {
		h.sum.write(b)
		if h.extra != nil {
			h.extra.Write(b)
		}
		h.free <- b[:cap(b)]
	}
}

// buffer returns a buffer to fill; it must be given to write.
func (h *bodyHasher) buffer() []byte { return <-h.free }

// write hashes b, which stays readable until the next call of buffer.
func (h *bodyHasher) write(b []byte) { h.full <- b }

// finish appends the MD5 to sum and returns the other hash's sum.
func (h *bodyHasher) finish(sum []byte) (extra []byte) {
	h.stop()
	h.sum.finish(sum)
	if h.extra != nil {
		extra = h.extra.Sum(nil)
	}
	return extra
}

// stop ends the goroutine and gives the buffers back.
func (h *bodyHasher) stop() {
	if h.ended {
		return
	}
	h.ended = true
	close(h.full)
	<-h.done
	if !h.own {
		h.pool.give(h.all)
	}
}

// putPool lends the large buffers of bodies.
type putPool struct {
	mu   sync.Mutex
	lent int
	idle [][]byte
}

// take lends up to n buffers, and at least so many or none.
func (p *putPool) take(n, least int) [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n = min(n, maxPutBuffers-p.lent); n < least {
		return nil
	}
	p.lent += n
	list := make([][]byte, 0, n)
	for len(list) < n {
		if k := len(p.idle); k > 0 {
			list = append(list, p.idle[k-1])
			p.idle = p.idle[:k-1]
		} else {
			list = append(list, make([]byte, putBufferBytes))
		}
	}
	return list
}

func (p *putPool) give(list [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent -= len(list)
	p.idle = append(p.idle, list...)
}
