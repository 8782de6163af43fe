package readcache

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"ogw/cluster"
)

const (
	// chunkBytes is what is read and kept at least: little enough for who reads here and
	// there, and some requests of it make full use of a network.
	chunkBytes = 4 * cluster.BlockBytes
	// maxRun bounds the chunks of one request, 4 MiB.
	maxRun = 16
	// aheadChunks are those of one request ahead at least, maxAhead how many chunks are read
	// ahead of one reader.
	aheadChunks = 4
	maxAhead    = 32
	// maxRequests bounds the requests ahead that are under way at a time; beyond, readers
	// wait for what they read.
	maxRequests = 12
)

// Options of a cache.
type Options struct {
	Memory int64  // bytes
	Dir    string // of the files on disk
	Disk   int64  // bytes there; 0: none
	Log    *slog.Logger
}

// Blobs is a data half whose reads are kept.
type Blobs struct {
	cluster.Blobs
	mem   *memory
	disk  *disk         // nil: none
	ahead chan struct{} // holds one for each request ahead
	loads sync.WaitGroup
	life  sync.RWMutex // held while a load begins
	over  bool         // under life: none begins any more
	stats struct{ memory, disk, fetched atomic.Uint64 }
}

// Stats count bytes: those that readers got from memory, those that came from the disk, and
// those that were asked of the engine, since the start; and those that are kept now.
type Stats struct {
	Memory, Disk, Fetched uint64
	KeptMemory, KeptDisk  int64
}

// New returns b with a cache. What the disk has is kept over restarts.
func New(b cluster.Blobs, o Options) (*Blobs, error) {
	c := &Blobs{Blobs: b, ahead: make(chan struct{}, maxRequests)}
	if o.Disk >= chunkBytes {
		var err error
		if c.disk, err = openDisk(o.Dir, o.Disk, o.Log); err != nil {
			return nil, err
		}
	}
	c.mem = newMemory(o.Memory, c.spill)
	return c, nil
}

// Stats returns what the cache did.
func (b *Blobs) Stats() Stats {
	s := Stats{Memory: b.stats.memory.Load(), Disk: b.stats.disk.Load(), Fetched: b.stats.fetched.Load(), KeptMemory: b.mem.kept()}
	if b.disk != nil {
		s.KeptDisk = b.disk.kept()
	}
	return s
}

// ReadAt implements cluster.BlobReader. It uses the memory, and not the disk.
func (b *Blobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (n int, err error) {
	return b.readAt(ctx, id, blobSum{}, p, off)
}

// ReadSummed implements cluster.BlobCache.
func (b *Blobs) ReadSummed(ctx context.Context, blob cluster.SummedBlob, p []byte, off int64) (n int, err error) {
	return b.readAt(ctx, blob.ID, blobSum{blob.CRC, true}, p, off)
}

func (b *Blobs) readAt(ctx context.Context, id cluster.BlobID, sum blobSum, p []byte, off int64) (n int, err error) {
	if len(p) == 0 || off < 0 || off >= cluster.MaxBlobBytes {
		return b.Blobs.ReadAt(ctx, id, p, off)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for n < len(p) {
		at := off + int64(n)
		first, last := at/chunkBytes, (off+int64(len(p))-1)/chunkBytes
		c, err := b.chunk(ctx, key{id, int(first)}, sum, int(last-first)+1)
		if err != nil {
			return 0, err
		}
		begin := min(at-first*chunkBytes, int64(len(c.data)))
		m := copy(p[n:], c.data[begin:])
		n += m
		b.stats.memory.Add(uint64(m))
		// No engine says of the longest blob's last chunk, read for itself, that it is the last.
		end := c.last && int(begin)+m == len(c.data) || off+int64(n) == cluster.MaxBlobBytes
		b.mem.release(c)
		if end && n < len(p) {
			return n, io.EOF
		}
	}
	return n, nil
}

// chunk returns a chunk of a blob with a checksum, to be released, and asks for up to count in
// order where that is not in memory.
func (b *Blobs) chunk(ctx context.Context, k key, sum blobSum, count int) (*chunk, error) {
	for joined := false; ; joined = true {
		if b.isOver() {
			return nil, cluster.ErrClosed
		}
		c, run := b.mem.get(k, sum, min(count, maxRun))
		if len(run) > 0 {
			b.start(ctx, run, nil)
		}
		select {
		case <-c.loaded:
		case <-ctx.Done():
			b.mem.release(c)
			return nil, ctx.Err()
		}
		if c.err == nil {
			b.readAhead(ctx, c)
			return c, nil
		}
		b.mem.release(c)
		if c.err != errSkipped && (joined || len(run) > 0) { //nolint:errorlint // it is never wrapped
			return nil, c.err
		}
	}
}

func (b *Blobs) isOver() bool {
	b.life.RLock()
	defer b.life.RUnlock()
	return b.over
}

// readAhead asks for what who reads c will read next.
func (b *Blobs) readAhead(ctx context.Context, c *chunk) {
	for _, run := range b.mem.next(c, func() bool { return len(b.ahead) < cap(b.ahead) }) {
		select {
		case b.ahead <- struct{}{}:
			b.start(ctx, run, func() { <-b.ahead })
		default: // others were faster: who reads it asks for it
			b.mem.fail(run, errSkipped)
		}
	}
}

// start loads chunks, then calls ended.
func (b *Blobs) start(ctx context.Context, run []*chunk, ended func()) {
	b.life.RLock()
	defer b.life.RUnlock()
	if b.over {
		b.mem.fail(run, cluster.ErrClosed)
		if ended != nil {
			ended()
		}
		return
	}
	b.loads.Go(func() {
		b.load(context.WithoutCancel(ctx), run)
		if ended != nil {
			ended()
		}
	})
}

// load fills chunks that follow one another, from the disk or else from the engine.
func (b *Blobs) load(ctx context.Context, run []*chunk) {
	missing := run
	if b.disk != nil {
		missing = nil
		for _, c := range run {
			buf := newBuffer()
			n, last, ok := b.disk.read(c.key, c.of, buf)
			if !ok {
				freeBuffer(buf)
				missing = append(missing, c)
				continue
			}
			b.stats.disk.Add(uint64(n))
			b.mem.fill(c, buf[:n], last, true)
		}
	}
	for len(missing) > 0 {
		n := 1
		for n < len(missing) && missing[n].n == missing[n-1].n+1 {
			n++
		}
		b.fetch(ctx, missing[:n])
		missing = missing[n:]
	}
}

// fetch asks the engine for chunks that follow one another.
func (b *Blobs) fetch(ctx context.Context, run []*chunk) {
	into := make(cluster.Buffers, len(run))
	for i := range into {
		into[i] = newBuffer()
	}
	n, err := cluster.ReadScattered(ctx, b.Blobs, run[0].id, into, int64(run[0].n)*chunkBytes)
	ended := err == io.EOF //nolint:errorlint // as io.ReaderAt has it
	if err != nil && !ended {
		for _, buf := range into {
			freeBuffer(buf)
		}
		b.mem.fail(run, err)
		return
	}
	b.stats.fetched.Add(uint64(n))
	for i, c := range run {
		size := min(max(0, n-i*chunkBytes), chunkBytes)
		b.mem.fill(c, into[i][:size], ended && (i+1)*chunkBytes >= n, false)
	}
}

// spill keeps on disk what memory has no room for.
func (b *Blobs) spill(c *chunk) (kept bool) {
	return b.disk != nil && c.spills() && b.disk.write(c, &b.mem.drops)
}

// Delete implements cluster.Blobs.
func (b *Blobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	err := b.Blobs.Delete(ctx, ids...)
	b.mem.drop(ids)
	if b.disk != nil {
		b.disk.drop(ids)
	}
	return err
}

// Forget implements cluster.BlobCache.
func (b *Blobs) Forget(contents ...uint64) {
	of := make(map[uint64]bool, len(contents))
	for _, c := range contents {
		of[c] = true
	}
	b.mem.drop(b.mem.of(of))
	if b.disk != nil {
		b.disk.drop(b.disk.of(of))
		b.mem.drop(b.mem.of(of)) // what was read of the disk meanwhile
	}
}

// Verify implements cluster.BlobVerifier.
func (b *Blobs) Verify(ctx context.Context, id cluster.BlobID) error {
	return cluster.VerifyBlob(ctx, b.Blobs, id)
}

// Probe implements cluster.BlobProber.
func (b *Blobs) Probe(ctx context.Context, from cluster.BlobID, fn func(b cluster.BlobInfo, damage error) error) error {
	return cluster.ProbeBlobs(ctx, b.Blobs, from, fn)
}

// Claim implements cluster.Claimer. From then on the disk is used: for this store.
func (b *Blobs) Claim(ctx context.Context, store, known uint64) (before, now uint64, err error) {
	before, now, err = cluster.ClaimBlobs(ctx, b.Blobs, store, known)
	if err == nil && b.disk != nil {
		b.disk.begin(store)
	}
	return before, now, err
}

// Close implements cluster.Blobs.
func (b *Blobs) Close() error {
	b.life.Lock()
	again := b.over
	b.over = true
	b.life.Unlock()
	err := b.Blobs.Close()
	if again {
		return err
	}
	b.loads.Wait()
	if b.disk != nil {
		b.disk.close(b.mem.unused())
	}
	return err
}
