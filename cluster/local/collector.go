package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/crc64"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/segment"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// collectEvery is how often segments are looked at, and freeOften how many
	// times as often for dead ones, which cost nothing and can be used again.
	collectEvery = 5 * time.Second
	freeOften    = 5
	// collectRate bounds rewriting, in bytes per second, so that it leaves
	// the disk to those who wait for it.
	collectRate = 256 << 20
	// countStep is after how many blobs the count looks whether somebody waits for it.
	countStep = 128
	// rewriteChunk is what is read of a segment at a time.
	rewriteChunk = 1 << 20
	// badPagesMax is how many pages of a segment may be unreadable before it
	// is left alone: a medium that is dying takes seconds for each.
	badPagesMax = 64
)

// collector gives back the space of dead records. It holds no lock while it
// reads or writes; who reads a blob that it moves looks its place up again.
type collector struct {
	blobs    *Blobs
	segments *segment.Store
	log      *slog.Logger
	every    time.Duration
	quit     chan struct{}
	done     chan struct{}
}

func newCollector(b *Blobs, every time.Duration, log *slog.Logger) *collector {
	c := &collector{blobs: b, segments: b.segments, log: log, every: every, quit: make(chan struct{}), done: make(chan struct{})}
	go c.run()
	return c
}

func (c *collector) stop() {
	close(c.quit)
	<-c.done
}

func (c *collector) stopping() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

func (c *collector) run() {
	defer close(c.done)
	if err := c.count(); err != nil {
		c.log.Error("cannot count the live bytes of data segments; no space is collected until the next start", "err", err)
		return
	}
	tick := time.NewTicker(c.every / freeOften)
	defer tick.Stop()
	for i := 0; ; i++ {
		if i%freeOften == 0 {
			c.segments.Trim()
			c.pass()
		} else {
			c.collectAll(func(g segment.Candidate) bool { return g.Live == 0 })
		}
		select {
		case <-tick.C:
		case <-c.quit:
			return
		}
	}
}

// count adds what the index holds to the live bytes of segments. It begins again when it
// had to give way to Erase.
func (c *collector) count() error {
	for !c.stopping() {
		live, err := c.countLive()
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		if err := c.segments.Measure(); err != nil {
			return err
		}
		for number, bytes := range live {
			if !c.segments.AddLive(number, bytes) {
				c.log.Error("a data segment is missing", "path", c.segments.Path(number), "bytes", bytes)
			}
		}
		return nil
	}
	return nil
}

// countLive returns the live bytes of segments in the index as it was at one moment; nil if
// the store is being closed, or Erase waits. Its iterator keeps all files of the metadata
// of that moment, and in a large store needs minutes.
func (c *collector) countLive() (map[uint64]int64, error) {
	using := &c.blobs.index.kv.using
	using.RLock()
	defer using.RUnlock()
	it, err := c.beginCount()
	if err != nil {
		return nil, err
	}
	live := make(map[uint64]int64)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%countStep == 0 {
			if c.stopping() || !using.TryRLock() {
				return nil, ioerr.Map(it.Close())
			}
			using.RUnlock()
		}
		e, err := decodeEntry(it)
		if err != nil {
			it.Close()
			return nil, err
		}
		if e.Segment != 0 {
			live[e.Segment] += record.Bytes(e.Size)
		}
	}
	return live, ioerr.Map(it.Close())
}

// beginCount returns the blobs of this moment. What changes from then on is counted as it
// happens.
func (c *collector) beginCount() (*pebble.Iterator, error) {
	kv := c.blobs.index.kv
	if err := kv.gate.Enter(); err != nil {
		return nil, err
	}
	defer kv.gate.Leave()
	c.blobs.indexing.Lock()
	defer c.blobs.indexing.Unlock()
	c.segments.ResetLive()
	it, err := kv.db.NewIter(&pebble.IterOptions{LowerBound: record.BlobPrefix, UpperBound: cluster.PrefixEnd(record.BlobPrefix)})
	return it, ioerr.Map(err)
}

// pass frees the dead segments, then rewrites the mostly dead ones.
func (c *collector) pass() { c.collectAll(func(segment.Candidate) bool { return true }) }

func (c *collector) collectAll(which func(segment.Candidate) bool) {
	candidates := c.segments.Collectable()
	slices.SortFunc(candidates, func(a, b segment.Candidate) int { return cmp.Compare(a.Live, b.Live) })
	for _, g := range candidates {
		if c.stopping() {
			return
		}
		if !which(g) {
			continue
		}
		err := c.collect(g)
		if err != nil && !errors.Is(err, segment.ErrStopped) {
			c.log.Warn("cannot collect a data segment", "path", c.segments.Path(g.Number), "err", err)
			if errors.Is(err, cluster.ErrNoSpace) || errors.Is(err, cluster.ErrUnavailable) {
				return // try again at the next pass
			}
			c.segments.MarkDamaged(g.Number)
		}
	}
}

func (c *collector) collect(g segment.Candidate) error {
	if g.Live > 0 {
		stay, err := c.rewrite(g.Number)
		if len(stay) > 0 {
			if e := c.punchRest(g.Number, stay); e != nil {
				c.log.Warn("cannot give back the space around damage", "path", c.segments.Path(g.Number), "err", e)
			}
		}
		if err != nil {
			return err
		}
	}
	// A power cut must not bring back index entries that point to it.
	if err := c.blobs.index.sync(); err != nil {
		return err
	}
	if !c.segments.Forget(g.Number) {
		return fmt.Errorf("%w: live records cannot be found in it", cluster.ErrCorrupt)
	}
	if g.Doubtful {
		return c.removeDoubtful(g.Number)
	}
	path := c.segments.Path(g.Number)
	if c.blobs.handles.Drop(path) {
		if adopted, err := c.segments.Adopt(g.Number); adopted || err != nil {
			c.blobs.handles.Drop(path) // it has another name
			return ioerr.Map(err)
		}
	}
	if err := c.blobs.unlink(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return ioerr.Map(err)
	}
	return nil
}

// rewrite moves the live records of a segment to the current one. It finds
// them by their trailers, each at the end of a page, and asks the index
// whether they are still where they say. Damaged ones stay; damage is the last
// of their errors.
func (c *collector) rewrite(number uint64) (stay []stuck, damage error) {
	path := c.segments.Path(number)
	end, err := c.blobs.disk.Length(path)
	var f fileio.File
	if err == nil {
		f, err = c.blobs.disk.Open(path)
	}
	if ioerr.Unreadable(err) {
		return nil, fmt.Errorf("%w: the medium cannot open it: %w", cluster.ErrCorrupt, err)
	}
	if err != nil {
		return nil, ioerr.Map(err)
	}
	defer f.Close()
	chunk := make([]byte, rewriteChunk)
	bad := 0
	for off := int64(0); off < end; off += int64(len(chunk)) {
		n, err := c.readChunk(f, chunk[:min(int64(len(chunk)), end-off)], off, &bad)
		if err != nil {
			return stay, err
		}
		for at := 0; at+fileio.PageBytes <= n; at += fileio.PageBytes {
			r, _, ok := record.ParseTrailer(chunk[at : at+fileio.PageBytes])
			if !ok || r.Store != c.blobs.store || r.Segment != number ||
				r.Offset+record.Bytes(r.Size) != off+int64(at)+fileio.PageBytes {
				continue
			}
			if c.stopping() {
				return nil, segment.ErrStopped
			}
			if err := c.move(f, &r); errors.Is(err, cluster.ErrCorrupt) {
				damage = err
				stay = append(stay, stuck{r.ID, r.Offset, record.Bytes(r.Size)})
				c.blobs.doubt(r.ID)
			} else if err != nil {
				return nil, err
			}
		}
	}
	return stay, damage
}

// readChunk reads a part of a segment, and returns its length, which is less
// only at the end. Pages that the medium cannot read become zeros, and are
// counted; ErrCorrupt if they are many.
func (c *collector) readChunk(f fileio.File, chunk []byte, off int64, bad *int) (n int, err error) {
	n, err = f.ReadAt(chunk, off)
	if err == nil || errors.Is(err, io.EOF) {
		return n, nil
	}
	for n = 0; n < len(chunk); n += fileio.PageBytes {
		if c.stopping() {
			return 0, segment.ErrStopped
		}
		page := chunk[n:min(n+fileio.PageBytes, len(chunk))]
		switch got, err := f.ReadAt(page, off+int64(n)); {
		case errors.Is(err, io.EOF):
			return n + got, nil
		case ioerr.Unreadable(err):
			if *bad++; *bad > badPagesMax {
				return 0, fmt.Errorf("%w: the medium cannot read it: %w", cluster.ErrCorrupt, err)
			}
			clear(page)
		case err != nil:
			return 0, ioerr.Map(err)
		}
	}
	return n, nil
}

var errMovedAway = errors.New("the blob is elsewhere by now")

// move copies one record if it is live.
func (c *collector) move(f fileio.File, r *record.Record) error {
	b := c.blobs
	old, err := b.index.get(r.ID)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if old.Segment != r.Segment || old.Offset != r.Offset {
		return nil
	}
	pool := b.buffers.forSize(old.Size)
	buf := pool.Get()
	defer pool.Put(buf)
	if record.Bytes(old.Size) > int64(len(buf)) {
		return fmt.Errorf("%w: record of %d bytes in a segment", cluster.ErrCorrupt, old.Size)
	}
	if _, err := f.ReadAt(buf[:old.Size], old.Offset); ioerr.Unreadable(err) {
		return fmt.Errorf("%w: blob %v: %w", cluster.ErrCorrupt, r.ID, err)
	} else if err != nil {
		return ioerr.Map(err)
	}
	for i, crc := range old.Blocks {
		from := int64(i) * cluster.BlockBytes
		if crc64.Checksum(buf[from:min(from+cluster.BlockBytes, old.Size)]) != crc {
			return fmt.Errorf("%w: blob %v, block %d", cluster.ErrCorrupt, r.ID, i)
		}
	}
	fresh := record.Record{Store: b.store, ID: r.ID, Size: old.Size, Blocks: old.Blocks}
	err = b.appendRecord(&fresh, buf, func(p *record.Place) error {
		p.Modified = old.Modified
		return b.replace(r.ID, &old, p)
	})
	if errors.Is(err, errMovedAway) {
		return nil
	}
	if err == nil {
		c.pause(record.Bytes(old.Size))
	}
	return err
}

// replace changes the place of a blob unless it changed already.
func (b *Blobs) replace(id cluster.BlobID, old, fresh *record.Place) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	now, err := b.index.get(id)
	if errors.Is(err, cluster.ErrNotFound) || err == nil && (now.Segment != old.Segment || now.Offset != old.Offset) {
		return errMovedAway
	}
	if err != nil {
		return err
	}
	if err := b.index.put(id, fresh); err != nil {
		return err
	}
	b.places.drop(id)
	b.segments.AddLive(old.Segment, -record.Bytes(old.Size))
	return nil
}

func (c *collector) pause(bytes int64) {
	select {
	case <-time.After(time.Duration(bytes) * time.Second / collectRate):
	case <-c.quit:
	}
}
