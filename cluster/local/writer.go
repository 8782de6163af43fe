package local

import (
	"context"
	"fmt"
	"path/filepath"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/watchdog"
)

var (
	errTooLong    = fmt.Errorf("%w: a blob has at most %d bytes", cluster.ErrInvalid, cluster.MaxBlobBytes)
	errWriterDone = fmt.Errorf("%w: the blob writer is done", cluster.ErrInvalid)
)

// writer streams one blob. It fills a buffer; a blob that ends within it goes
// into a segment at Commit, a longer one is written to a file, one buffer
// being written while the next is filled.
//
// What waits for the disk may go on after the caller was told that this does not answer. All but
// err belongs to that then.
type writer struct {
	blobs *Blobs
	id    cluster.BlobID
	err   error // what ended the writer

	pool *fileio.Pool
	buf  []byte
	fill int   // bytes in buf
	size int64 // bytes in all

	file    fileio.File // nil: small so far
	closed  bool        // file is, and stays until the index has it
	flushed int64       // bytes given to the file
	sums    []uint64    // of what was flushed
	flush   chan flushed
}

// flushed is the end of a flush in the background.
type flushed struct {
	buf  []byte
	sums []uint64
	err  error
}

func newWriter(b *Blobs, id cluster.BlobID, sizeHint int64) *writer {
	pool := b.buffers.forSize(sizeHint)
	return &writer{blobs: b, id: id, pool: pool, buf: pool.Get()}
}

// room is how much data fits into the buffer, the footer aside.
func (w *writer) room() int {
	if w.pool == w.blobs.buffers.mid {
		return midMax
	}
	return smallMax
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.size+int64(len(p)) > cluster.MaxBlobBytes {
		w.fail(errTooLong)
		return 0, w.err
	}
	for len(p) > 0 {
		if w.fill == w.room() {
			if w.do(w.makeRoom); w.err != nil {
				return n, w.err
			}
		}
		copied := copy(w.buf[w.fill:w.room()], p)
		w.fill += copied
		w.size += int64(copied)
		n += copied
		p = p[copied:]
	}
	return n, nil
}

// makeRoom goes from the small buffer to the large, and from there to a file.
func (w *writer) makeRoom() error {
	large := w.blobs.buffers.large
	if w.pool != large {
		bigger := large.Get()
		copy(bigger, w.buf[:w.fill])
		w.pool.Put(w.buf)
		w.pool, w.buf = large, bigger
		return nil
	}
	if w.file == nil {
		f, err := w.blobs.createFile(w.id)
		if err != nil {
			return err
		}
		w.file = f
	}
	next, err := w.awaitFlush()
	if err != nil {
		return err
	}
	if err := w.blobs.admit(int64(w.fill)); err != nil {
		w.pool.Put(next)
		return err
	}
	w.startFlush()
	w.buf, w.fill = next, 0
	return nil
}

// startFlush writes the full buffer in the background. The buffer is whole
// blocks, so the checksums stay those of blocks.
func (w *writer) startFlush() {
	w.flush = make(chan flushed, 1)
	result, file, buf, off, sums := w.flush, w.file, w.buf, w.flushed, w.sums
	w.flushed += smallMax
	go func() {
		sums = record.BlockSums(sums, buf[:smallMax])
		result <- flushed{buf, sums, file.WritePages(off, buf[:smallMax])}
	}()
}

// awaitFlush waits for the flush under way, if any, and returns a free buffer.
func (w *writer) awaitFlush() ([]byte, error) {
	if w.flush == nil {
		return w.pool.Get(), nil
	}
	done := <-w.flush
	w.flush = nil
	if done.err != nil {
		w.pool.Put(done.buf)
		return nil, ioerr.Map(done.err)
	}
	w.sums = done.sums
	return done.buf, nil
}

// Commit implements cluster.BlobWriter.
func (w *writer) Commit(ctx context.Context) (int64, uint64, error) {
	if w.err != nil {
		return 0, 0, w.err
	}
	if err := w.blobs.begin(ctx); err != nil {
		w.fail(err)
		return 0, 0, err
	}
	defer w.blobs.gate.Leave()
	r := record.Record{Store: w.blobs.store, ID: w.id, Size: w.size}
	if w.do(func() error { return w.commit(&r) }); w.err != nil {
		return 0, 0, w.err
	}
	w.fail(errWriterDone)
	return r.Size, r.WholeCRC(), nil
}

func (w *writer) commit(r *record.Record) error {
	if w.file == nil {
		return w.commitSmall(r)
	}
	err := w.commitFile(r)
	if err == nil {
		w.file = nil
	}
	return err
}

// do calls op, which waits for the disk, and ends the writer if that fails.
func (w *writer) do(op func() error) {
	ended, err := w.guard(op)
	switch {
	case ended != nil:
		w.err = err
		go func() {
			<-ended
			w.giveBack()
		}()
	case err != nil:
		w.fail(err)
	}
}

func (w *writer) commitSmall(r *record.Record) error {
	r.Blocks = record.BlockSums(nil, w.buf[:w.fill])
	return w.blobs.appendRecord(r, w.buf, func(p *record.Place) error { return w.blobs.index.put(w.id, p) })
}

// appendRecord writes r, whose data begins buf, to a segment, and calls put
// to index it before the segment can be collected.
func (b *Blobs) appendRecord(r *record.Record, buf []byte, put func(*record.Place) error) error {
	total := record.Bytes(r.Size)
	clear(buf[r.Size : total-record.FooterBytes(r.Size)])
	if err := b.segments.Append(r, buf[:total]); err != nil {
		return err
	}
	p := &record.Place{Size: r.Size, Modified: b.now(), Segment: r.Segment, Offset: r.Offset, Blocks: r.Blocks}
	b.indexing.RLock()
	err := put(p)
	if err == nil {
		b.segments.AddLive(r.Segment, total)
	}
	b.indexing.RUnlock()
	b.segments.Indexed(r.Segment)
	return err
}

func (w *writer) commitFile(r *record.Record) error {
	spare, err := w.awaitFlush()
	if err != nil {
		return err
	}
	w.pool.Put(spare)
	r.Blocks = record.BlockSums(w.sums, w.buf[:w.fill])
	tail := w.buf[:record.Bytes(r.Size)-w.flushed]
	clear(tail[w.fill : int64(len(tail))-record.FooterBytes(r.Size)])
	r.PutFooter(tail)
	if err := w.file.WritePages(w.flushed, tail); err != nil {
		return ioerr.Map(err)
	}
	if err := w.file.Sync(); err != nil {
		return ioerr.Map(err)
	}
	w.closed = true
	if err := w.file.Close(); err != nil {
		return ioerr.Map(err)
	}
	if err := w.blobs.disk.SyncDir(filepath.Dir(w.blobs.filePath(w.id))); err != nil {
		return ioerr.Map(err)
	}
	return w.blobs.index.put(w.id, &record.Place{Size: r.Size, Modified: w.blobs.now()})
}

// Abort implements cluster.BlobWriter.
func (w *writer) Abort() {
	if w.err == nil {
		w.fail(errWriterDone)
	}
}

// fail ends the writer.
func (w *writer) fail(err error) {
	w.err = err
	ended, err := w.guard(func() error {
		w.giveBack()
		return nil
	})
	if err != nil && ended == nil { // it did not begin
		go w.giveBack()
	}
}

// guard is watchdog.Do for what returns nothing else.
func (w *writer) guard(op func() error) (ended <-chan struct{}, err error) {
	_, ended, err = watchdog.Do(w.blobs.health.Disk, func() (none struct{}, err error) { return none, op() })
	return ended, err
}

// giveBack gives back what the writer holds; a file that was not committed is removed.
func (w *writer) giveBack() {
	if w.flush != nil {
		w.pool.Put((<-w.flush).buf)
		w.flush = nil
	}
	if w.buf != nil {
		w.pool.Put(w.buf)
		w.buf = nil
	}
	if w.file != nil {
		if !w.closed {
			_ = w.file.Close()
		}
		_ = w.blobs.unlink(w.blobs.filePath(w.id)) // else the sweep finds it
		w.file = nil
	}
	w.blobs.release(w.id)
}
