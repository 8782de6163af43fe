package s3

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/frame"
)

// partBytes is the length of all parts but the last. S3 takes none below 5 MiB,
// and half of what is written waits in memory.
const partBytes = 8 << 20 / cluster.BlockBytes * frame.Bytes

// abortWait is how long a part that is under way may still take when the writer is aborted: an
// endpoint may store one whose request broke off, after the others were dropped.
const abortWait = 5 * time.Second

var partBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, partBytes)
	return &b
}}

var errWriterDone = fmt.Errorf("%w: the blob writer is done", cluster.ErrInvalid)

// writer streams one blob.
type writer struct {
	blobs  *Blobs
	ctx    context.Context // of requests; ends with cancel
	cancel context.CancelFunc
	id     cluster.BlobID
	number string

	row frame.Row // Part is nil when the writer is done

	upload *upload    // nil until a part is full
	sent   chan error // how the part that is under way ended; nil if none is
	err    error      // what ended the writer
}

// Create implements cluster.Blobs. It asks the endpoint for nothing.
func (b *Blobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	defer b.gate.Leave()
	if sizeHint > cluster.MaxBlobBytes {
		return nil, fmt.Errorf("%w: blob of %d bytes, at most %d are allowed", cluster.ErrInvalid, sizeHint, cluster.MaxBlobBytes)
	}
	w := &writer{blobs: b, id: id, number: newNumber(), row: frame.Row{ID: id, Part: partBuffers.Get().(*[]byte)}}
	// Parts that are under way may outlive the request that began them.
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return w, nil
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	n, w.err = w.row.Write(p, func() error {
		if len(*w.row.Part) < partBytes {
			return nil
		}
		return w.send()
	})
	return n, w.err
}

// send has the part uploaded, once the one before it is, and begins another.
func (w *writer) send() (err error) {
	if err := w.wait(); err != nil {
		return err
	}
	if err := w.blobs.enter(w.ctx); err != nil {
		return err
	}
	if w.upload == nil {
		u, err := w.blobs.beginUpload(w.ctx, w.blobs.key(w.id), w.number)
		if err != nil {
			w.blobs.gate.Leave()
			return callerOr(w.ctx, err)
		}
		w.upload = u
	}
	full, sent := w.row.Part, make(chan error, 1)
	w.row.Part, w.sent = partBuffers.Get().(*[]byte), sent
	go func() {
		defer w.blobs.gate.Leave()
		err := w.blobs.putPart(w.ctx, w.upload, *full)
		release(full)
		sent <- callerOr(w.ctx, err)
	}()
	return nil
}

// wait returns how the part that is under way ended.
func (w *writer) wait() error {
	if w.sent == nil {
		return nil
	}
	err := <-w.sent
	w.sent = nil
	return err
}

// Commit implements cluster.BlobWriter.
func (w *writer) Commit(ctx context.Context) (int64, uint64, error) {
	if w.err != nil {
		return 0, 0, w.err
	}
	err := w.commit(ctx)
	w.end(err != nil)
	if err != nil {
		return 0, 0, err
	}
	return w.row.Size, w.row.CRC, nil
}

func (w *writer) commit(ctx context.Context) error {
	if err := w.blobs.enter(ctx); err != nil {
		return err
	}
	defer w.blobs.gate.Leave()
	// A caller who gives up stops the parts, too.
	defer context.AfterFunc(ctx, w.cancel)()
	w.row.Seal(true)
	key := w.blobs.key(w.id)
	if w.upload == nil {
		_, err := w.blobs.put(ctx, key, *w.row.Part, w.number)
		return w.blobs.outcome(ctx, key, w.number, err)
	}
	if err := w.wait(); err != nil {
		if e := ctx.Err(); e != nil {
			return e
		}
		return err
	}
	if err := w.blobs.putPart(ctx, w.upload, *w.row.Part); err != nil {
		return callerOr(ctx, err)
	}
	return w.blobs.outcome(ctx, key, w.number, w.blobs.complete(ctx, w.upload))
}

// Abort implements cluster.BlobWriter.
func (w *writer) Abort() { w.end(true) }

// end frees what the writer holds, and drops its parts unless they are a blob
// now. Who aborts does not wait for the endpoint.
func (w *writer) end(drop bool) {
	if w.row.Part == nil {
		return
	}
	release(w.row.Part)
	w.row.Part, w.err = nil, errWriterDone
	if !drop || w.upload == nil || w.blobs.gate.Enter() != nil {
		w.cancel()
		return
	}
	late := time.AfterFunc(abortWait, w.cancel)
	go func() {
		defer w.blobs.gate.Leave()
		defer w.cancel()
		defer late.Stop()
		_ = w.wait() // the part is dropped in any case
		w.blobs.abort(context.Background(), w.upload)
	}()
}

func release(part *[]byte) {
	*part = (*part)[:0]
	partBuffers.Put(part)
}
