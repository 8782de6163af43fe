package rados

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/frame"
)

// partsUnderWay is how many parts of a writer are sent while the next fills.
const partsUnderWay = 2

var partBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, headBytes+partBytes)
	return &b
}}

var errWriterDone = fmt.Errorf("%w: the blob writer is done", cluster.ErrInvalid)

// newToken returns one that no other writer has.
func newToken() token {
	var b [8]byte
	rand.Read(b[:])
	return token(binary.BigEndian.Uint64(b[:]))
}

// writer streams one blob.
type writer struct {
	blobs *Blobs
	ctx   context.Context // of requests, which does not end: what is stored is cleared after them
	entry entry
	sends *sends

	row   frame.Row
	first *[]byte // the first part, once another one fills
	err   error   // what ended the writer
}

// Create implements cluster.Blobs. The entry of the index is written meanwhile.
func (b *Blobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	if sizeHint > cluster.MaxBlobBytes {
		return nil, fmt.Errorf("%w: blob of %d bytes, at most %d are allowed", cluster.ErrInvalid, sizeHint, cluster.MaxBlobBytes)
	}
	w := &writer{
		blobs: b, ctx: context.WithoutCancel(ctx), entry: entry{id: id, token: newToken()},
		sends: newSends(), row: frame.Row{ID: id, Part: newPart(headBytes)},
	}
	if err := w.enter(w.ctx); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// newPart returns a buffer with room for what begins the object.
func newPart(begin int) *[]byte {
	part := partBuffers.Get().(*[]byte)
	*part = (*part)[:begin]
	return part
}

func release(part *[]byte) {
	if part != nil {
		*part = (*part)[:0]
		partBuffers.Put(part)
	}
}

// enter has the entry written, with the time of now.
func (w *writer) enter(ctx context.Context) error {
	w.entry.at = time.Now()
	e := w.entry
	return w.send(ctx, func() error { return w.blobs.add(w.ctx, e) })
}

// send has a request made, which Close of the blobs waits for.
func (w *writer) send(ctx context.Context, request func() error) error {
	if err := w.blobs.gate.Enter(); err != nil {
		return err
	}
	if err := w.sends.room(ctx); err != nil {
		w.blobs.gate.Leave()
		return err
	}
	return w.sends.begin(func() error {
		defer w.blobs.gate.Leave()
		return request()
	})
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.err = w.keep(w.ctx); w.err != nil {
		return 0, w.err
	}
	n, w.err = w.row.Write(p, func() error {
		if w.row.Sealed%partBlocks != 0 {
			return nil
		}
		return w.next()
	})
	return n, w.err
}

// next has the full part written, and begins another. The first one waits, since it is
// written last.
func (w *writer) next() error {
	if w.first == nil {
		w.first, w.row.Part = w.row.Part, newPart(0)
		return nil
	}
	full, n := w.row.Part, w.row.Sealed/partBlocks-1
	w.row.Part = newPart(0)
	return w.put(w.ctx, full, n)
}

// put has part n written, from 1 on.
func (w *writer) put(ctx context.Context, part *[]byte, n int64) error {
	err := w.keep(ctx)
	if err == nil && n == 1 {
		err = w.sends.wait(ctx) // for the entry, without which nobody finds the part
	}
	if err != nil {
		release(part)
		return err
	}
	return w.send(ctx, func() error {
		defer release(part)
		return w.blobs.pool.Create(w.ctx, partName(w.entry.id, w.entry.token, n), *part)
	})
}

// keep has the entry written anew when it gets old. One that is too old may be gone, with
// parts of the blob.
func (w *writer) keep(ctx context.Context) error {
	switch age := time.Since(w.entry.at); {
	case age > writerLimit:
		return fmt.Errorf("%w: nothing was written to blob %v for %v", cluster.ErrUnavailable, w.entry.id, age)
	case age > entryLife:
		return w.enter(ctx)
	}
	return nil
}

// Commit implements cluster.BlobWriter.
func (w *writer) Commit(ctx context.Context) (int64, uint64, error) {
	if w.err != nil {
		return 0, 0, w.err
	}
	unknown, err := w.commit(ctx)
	w.end(err != nil && !unknown)
	if err != nil {
		return 0, 0, err
	}
	return w.row.Size, w.row.CRC, nil
}

// commit makes the blob exist. unknown reports that it may, or may come to, after an error.
func (w *writer) commit(ctx context.Context) (unknown bool, err error) {
	if err := w.blobs.enter(ctx); err != nil {
		return false, err
	}
	defer w.blobs.gate.Leave()
	w.row.Seal(true)
	begin := w.first
	if begin == nil {
		begin = w.row.Part
	} else {
		part := w.row.Part
		w.row.Part = nil
		if err := w.put(ctx, part, (w.row.Sealed-1)/partBlocks); err != nil {
			return false, err
		}
	}
	if err := w.keep(ctx); err != nil {
		return false, err
	}
	if err := w.sends.wait(ctx); err != nil {
		return false, err
	}
	h := head{id: w.entry.id, token: w.entry.token, size: w.row.Size, modified: time.Now()}
	h.put(*begin)
	err = w.blobs.pool.Create(ctx, headName(h.id), *begin)
	if errors.Is(err, cluster.ErrExists) {
		return w.refused(ctx, err)
	}
	if err == nil {
		w.blobs.heads.put(h)
	}
	return !errors.Is(err, cluster.ErrNoSpace), err
}

// refused returns what became of a head when there is one: err, unless it is this writer's
// own, whose first request was done and its answer lost.
func (w *writer) refused(ctx context.Context, err error) (unknown bool, _ error) {
	h, e := w.blobs.readHead(ctx, w.entry.id)
	switch {
	case e == nil && h.token == w.entry.token:
		return false, nil
	case e == nil || errors.Is(e, cluster.ErrNotFound), errors.Is(e, cluster.ErrCorrupt):
		return false, err
	}
	return true, e
}

// Abort implements cluster.BlobWriter.
func (w *writer) Abort() { w.end(true) }

// end frees what the writer holds, and with drop what it stored. Who aborts does not wait
// for that.
func (w *writer) end(drop bool) {
	if w.err == errWriterDone { //nolint:errorlint // it is set here
		return
	}
	w.err = errWriterDone
	release(w.row.Part)
	release(w.first)
	w.row.Part, w.first = nil, nil
	if !drop || w.blobs.gate.Enter() != nil {
		return
	}
	e, parts := w.entry, (w.row.Sealed+partBlocks-1)/partBlocks
	go func() {
		defer w.blobs.gate.Leave()
		_ = w.sends.wait(w.ctx) // it is dropped in any case
		// What fails is left to a listing, once the entry is old.
		_ = w.blobs.clear(w.ctx, e, parts)
	}()
}
