package readcache

import (
	"container/list"
	"errors"
	"sync"
	"sync/atomic"

	"ogw/cluster"
)

// errSkipped is of chunks that were not asked for after all.
var errSkipped = errors.New("not read ahead")

// key names a chunk.
type key struct {
	id cluster.BlobID
	n  int
}

// blobSum is the checksum that the metadata have of a blob, if the reader knew it.
type blobSum struct {
	crc   uint64
	known bool
}

// chunk is a part of a blob, in memory or on its way there.
type chunk struct {
	key
	of     blobSum       // as the first reader had it
	loaded chan struct{} // closed when what follows is set
	data   []byte        // shorter than chunkBytes only if last
	last   bool          // of its blob
	onDisk bool
	err    error

	// Guarded by memory.mu.
	users int
	led   bool   // what follows was asked for
	gone  bool   // dropped meanwhile
	drops uint64 // memory.drops when it made room
	place *list.Element
}

// memory keeps chunks, those that were used last.
type memory struct {
	max   int64
	spill func(*chunk) (kept bool) // takes the bytes of a chunk that makes room, if it returns true

	mu     sync.Mutex
	bytes  int64
	blobs  map[cluster.BlobID]map[int]*chunk
	recent list.List // of *chunk that are loaded, the last used first

	drops atomic.Uint64 // how often something was dropped; grows under mu
}

func newMemory(max int64, spill func(*chunk) bool) *memory {
	return &memory{max: max, spill: spill, blobs: make(map[cluster.BlobID]map[int]*chunk)}
}

func (m *memory) kept() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// get returns a chunk of a blob with a checksum, to be released. If it is not there, it is the
// first of run, which the caller has to load: up to count chunks in order.
func (m *memory) get(k key, sum blobSum, count int) (c *chunk, run []*chunk) {
	m.mu.Lock()
	if c = m.blobs[k.id][k.n]; c == nil {
		run = m.reserve(k, sum, count)
		c = run[0]
	}
	c.users++
	old := m.makeRoom()
	m.mu.Unlock()
	m.put(old)
	return c, run
}

// reserve adds chunks from k on, until one is there. Under mu.
func (m *memory) reserve(k key, sum blobSum, count int) (run []*chunk) {
	of := m.blobs[k.id]
	if of == nil {
		of = make(map[int]*chunk)
		m.blobs[k.id] = of
	}
	for n := k.n; n < k.n+count && n < cluster.MaxBlobBytes/chunkBytes && of[n] == nil; n++ {
		c := &chunk{key: key{k.id, n}, of: sum, loaded: make(chan struct{})}
		of[n], run = c, append(run, c)
		m.bytes += chunkBytes
	}
	return run
}

// makeRoom takes chunks out that nobody uses until the rest fits. Under mu.
func (m *memory) makeRoom() (old []*chunk) {
	for e := m.recent.Back(); e != nil && m.bytes > m.max; {
		c := e.Value.(*chunk)
		e = e.Prev()
		if c.users == 0 {
			m.remove(c)
			c.drops = m.drops.Load()
			old = append(old, c)
		}
	}
	return old
}

// remove takes a chunk out. Under mu.
func (m *memory) remove(c *chunk) {
	of := m.blobs[c.id]
	if delete(of, c.n); len(of) == 0 {
		delete(m.blobs, c.id)
	}
	m.bytes -= chunkBytes
	if c.place != nil {
		m.recent.Remove(c.place)
		c.place = nil
	}
	c.gone = true
}

// put gives the bytes of chunks on that made room.
func (m *memory) put(old []*chunk) {
	for _, c := range old {
		if !m.spill(c) {
			freeBuffer(c.data)
		}
	}
}

// release ends a use.
func (m *memory) release(c *chunk) {
	m.mu.Lock()
	c.users--
	if c.place != nil {
		m.recent.MoveToFront(c.place)
	}
	old := m.makeRoom()
	m.mu.Unlock()
	m.put(old)
}

// fill ends the loading of a chunk. The memory is the cache's then.
func (m *memory) fill(c *chunk, data []byte, last, onDisk bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.data, c.last, c.onDisk = data, last, onDisk
	if !c.gone {
		c.place = m.recent.PushFront(c)
	}
	close(c.loaded)
}

// fail ends the loading of chunks that are not to be had.
func (m *memory) fail(run []*chunk, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range run {
		if !c.gone {
			m.remove(c)
		}
		c.err = err
		close(c.loaded)
	}
}

// next returns what is to be loaded, in runs, for who reads c in order. room reports whether
// there is any for that.
func (m *memory) next(c *chunk, room func() bool) (runs [][]*chunk) {
	m.mu.Lock()
	if c.led || c.last || c.gone || !room() {
		m.mu.Unlock()
		return nil
	}
	c.led = true
	of, before := m.blobs[c.id], 0
	for of[c.n-before-1] != nil && before < maxAhead/2 {
		before++
	}
	// A quarter of the memory at the most: others read, too.
	ahead := min(2*before, maxAhead, int(m.max/chunkBytes/4))
	size := max(aheadChunks, min(before, ahead, maxRun))
	for n := c.n + 1; n <= c.n+ahead; n++ {
		if next := of[n]; next != nil {
			if next.isLast() {
				break
			}
			continue
		}
		run := m.reserve(key{c.id, n}, c.of, min(size, c.n+ahead+aheadChunks-n)) // beyond that, rather than in small pieces
		if len(run) == 0 {                                                       // behind the longest blob
			break
		}
		runs = append(runs, run)
		n = run[len(run)-1].n
	}
	old := m.makeRoom()
	m.mu.Unlock()
	m.put(old)
	return runs
}

// spills reports whether the disk is to have it, and has not. Without the checksum of its blob
// nobody could tell there whether it is of the blob that has the ID then.
func (c *chunk) spills() bool { return c.of.known && !c.onDisk && len(c.data) > 0 }

// isLast reports whether the chunk is known to be the last of its blob.
func (c *chunk) isLast() bool {
	select {
	case <-c.loaded:
		return c.last
	default:
		return false
	}
}

// unused returns the chunks that nobody uses and the disk has not, the last used first.
func (m *memory) unused() (list []*chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.recent.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*chunk); c.users == 0 && c.spills() {
			list = append(list, c)
		}
	}
	return list
}

// of returns the blobs of contents of which something is kept.
func (m *memory) of(contents map[uint64]bool) []cluster.BlobID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return ofContents(m.blobs, contents)
}

func ofContents[V any](kept map[cluster.BlobID]V, contents map[uint64]bool) (ids []cluster.BlobID) {
	for id := range kept {
		if contents[id.Content] {
			ids = append(ids, id)
		}
	}
	return ids
}

// drop removes what is kept of blobs. Who uses it goes on.
func (m *memory) drop(ids []cluster.BlobID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drops.Add(1)
	for _, id := range ids {
		for _, c := range m.blobs[id] {
			m.remove(c) // Go's collector frees its bytes
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

func newBuffer() []byte { return buffers.Get().(*[chunkBytes]byte)[:] }

func freeBuffer(b []byte) {
	if cap(b) >= chunkBytes {
		buffers.Put((*[chunkBytes]byte)(b[:chunkBytes]))
	}
}
