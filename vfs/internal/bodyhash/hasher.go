package bodyhash

import (
	"hash"
	"sync"
)

const (
	// BufferBytes is a buffer of a body on its way: large enough that
	// handing it between goroutines costs nothing.
	BufferBytes = 1 << 20
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

// Hasher hashes a body beside its reading and writing. Buffers go round:
// buffer takes a free one, write hands it to the goroutine, which frees it.
type Hasher struct {
	pool  *Buffers
	Sum   *md5Sum
	extra hash.Hash
	own   bool // the buffers are not the pool's
	all   [][]byte
	free  chan []byte
	full  chan []byte
	done  chan struct{}
	ended bool
}

func New(pool *Buffers, sums *MD5Pool, extra hash.Hash) *Hasher {
	h := &Hasher{
		pool: pool, Sum: sums.begin(), extra: extra,
		free: make(chan []byte, putBuffers), full: make(chan []byte, putBuffers), done: make(chan struct{}),
	}
	h.all = pool.Take(putBuffers, 2)
	if h.own = len(h.all) == 0; h.own {
		h.all = [][]byte{make([]byte, ownBufferBytes), make([]byte, ownBufferBytes)}
	}
	for _, b := range h.all {
		h.free <- b
	}
	go h.run()
	return h
}

func (h *Hasher) run() {
	defer close(h.done)
	for b := range h.full {
		h.Sum.Write(b)
		if h.extra != nil {
			h.extra.Write(b)
		}
		h.free <- b[:cap(b)]
	}
}

// Buffer returns a buffer to fill; it must be given to write.
func (h *Hasher) Buffer() []byte { return <-h.free }

// Write hashes b, which stays readable until the next call of buffer.
func (h *Hasher) Write(b []byte) { h.full <- b }

// Finish appends the MD5 to sum and returns the other hash's sum.
func (h *Hasher) Finish(sum []byte) (extra []byte) {
	h.Stop()
	h.Sum.finish(sum)
	if h.extra != nil {
		extra = h.extra.Sum(nil)
	}
	return extra
}

// Stop ends the goroutine and gives the buffers back.
func (h *Hasher) Stop() {
	if h.ended {
		return
	}
	h.ended = true
	close(h.full)
	<-h.done
	if !h.own {
		h.pool.Give(h.all)
	}
}

// Buffers lends the large buffers of bodies.
type Buffers struct {
	mu   sync.Mutex
	lent int
	idle [][]byte
}

// Take lends up to n buffers, and at least so many or none.
func (p *Buffers) Take(n, least int) [][]byte {
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
			list = append(list, make([]byte, BufferBytes))
		}
	}
	return list
}

func (p *Buffers) Give(list [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent -= len(list)
	p.idle = append(p.idle, list...)
}
