package vfs

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// maxCommitting is how many full blobs of one writer may be on their way to
// durability while the next is written: enough to hide a sync, and it bounds
// what an engine buffers for one writer.
const maxCommitting = 2

// contentWriter streams a new content: inline if small, else blobs of up to
// cluster.MaxBlobBytes. It copies only what may become inline; larger bytes
// go straight to the engine, and full blobs are committed while the next is
// written. It is for one goroutine.
type contentWriter struct {
	fs   *FS
	ctx  context.Context
	id   ContentID
	own  bool  // the ID was taken for this writer
	hint int64 // bytes expected, or -1
	size int64

	inlineLimit int64  // up to this the content becomes inline
	inline      []byte // all bytes so far, while they may become inline
	blob        cluster.BlobWriter
	seq         uint64
	blobLen     int64

	extents    []record.Extent // in order; lengths and checksums of those under way are still missing
	committing []*blobCommit
	err        error
	closed     bool
}

// blobCommit is a blob on its way to durability.
type blobCommit struct {
	extent int // index
	done   chan struct{}
	size   int64
	crc    uint64
	err    error
}

// newContentWriter begins a content. id 0 takes a fresh one (an upload
// passes its own, which all its parts share; then nothing is staged). size
// is expected, or -1. ctx is that of all writing.
func (fs *FS) newContentWriter(ctx context.Context, id ContentID, size int64) (*contentWriter, error) {
	w := &contentWriter{fs: fs, ctx: ctx, id: id, hint: size, inlineLimit: int64(fs.cfg.InlineBytes)}
	if id == 0 {
		n, err := fs.ids.Take(ctx)
		if err != nil {
			return nil, err
		}
		w.id, w.own = ContentID(n), true
	}
	fs.pins.Pin(w.id) // Check must not take the blobs for orphans
	return w, nil
}

func (w *contentWriter) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.blob == nil && len(w.extents) == 0 {
		if w.size+int64(len(p)) <= w.inlineLimit {
			w.inline = append(w.inline, p...)
			w.size += int64(len(p))
			return len(p), nil
		}
		buffered := w.inline
		w.inline, w.size = nil, 0
		if _, err := w.writeBlobs(buffered); err != nil {
			w.err = err
			return 0, err
		}
	}
	n, w.err = w.writeBlobs(p)
	return n, w.err
}

func (w *contentWriter) writeBlobs(p []byte) (n int, err error) {
	for len(p) > 0 {
		if w.blob == nil {
			if err := w.begin(); err != nil {
				return n, err
			}
		}
		k := int(min(int64(len(p)), cluster.MaxBlobBytes-w.blobLen))
		if _, err := w.blob.Write(p[:k]); err != nil {
			return n, fserr.Map(err)
		}
		n, p = n+k, p[k:]
		w.size += int64(k)
		if w.blobLen += int64(k); w.blobLen == cluster.MaxBlobBytes {
			if err := w.end(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (w *contentWriter) begin() error {
	seq, err := w.fs.ids.Take(w.ctx)
	if err != nil {
		return err
	}
	hint := int64(-1)
	if w.hint > w.size {
		hint = min(w.hint-w.size, cluster.MaxBlobBytes)
	}
	w.blob, err = w.fs.blobs.Create(w.ctx, cluster.BlobID{Content: uint64(w.id), Seq: seq}, hint)
	w.seq, w.blobLen = seq, 0
	return fserr.Map(err)
}

// flush begins to make durable what is there already, in the background. Any
// bytes that follow go to another blob.
func (w *contentWriter) flush() error {
	if w.err == nil && w.blob != nil {
		w.err = w.end()
	}
	return w.err
}

// end hands the blob to a goroutine that commits it.
func (w *contentWriter) end() error {
	if len(w.committing) >= maxCommitting {
		if err := w.reap(); err != nil {
			return err
		}
	}
	c := &blobCommit{extent: len(w.extents), done: make(chan struct{})}
	w.extents = append(w.extents, record.Extent{Off: w.size - w.blobLen, Len: w.blobLen, Kind: record.ExtentBlob, Seq: w.seq, BlobSize: w.blobLen})
	w.committing = append(w.committing, c)
	blob, ctx := w.blob, w.ctx
	w.blob = nil
	go func() {
		defer close(c.done)
		if c.size, c.crc, c.err = blob.Commit(ctx); c.err != nil {
			blob.Abort()
		}
	}()
	return nil
}

// reap waits for the oldest commit.
func (w *contentWriter) reap() error {
	c := w.committing[0]
	w.committing = w.committing[1:]
	<-c.done
	if c.err != nil {
		return fserr.Map(c.err)
	}
	e := &w.extents[c.extent]
	e.BlobCRC = c.crc
	if c.size != e.BlobSize {
		return errBlobLength
	}
	return nil
}

var errBlobLength = errors.New("the engine stored a blob of another length than was written")

// finish commits the blobs, durably, and stages the extents if they are
// many. The content must be published or discarded. After an error nothing
// is left but what the engine may not tell.
func (w *contentWriter) finish(ctx context.Context) (*content, error) {
	w.err = w.flush()
	for w.err == nil && len(w.committing) > 0 {
		w.err = w.reap()
	}
	if w.err != nil {
		err := w.err
		w.abort(ctx)
		return nil, err
	}
	c := &content{id: w.id, size: w.size, used: w.size, extents: w.extents}
	switch {
	case w.size == 0:
		c.id = 0
	case len(w.extents) == 0:
		c.crc = crc64nvme.Checksum(w.inline)
		c.extents = []record.Extent{{Len: w.size, Kind: record.ExtentInline, Data: w.inline}}
	default:
		for i := range w.extents {
			c.crc = cluster.CombineCRC64(c.crc, w.extents[i].BlobCRC, w.extents[i].Len)
		}
	}
	w.close()
	if w.own {
		if err := w.fs.stage(ctx, c); err != nil {
			w.fs.discard(ctx, c)
			return nil, err
		}
	}
	return c, nil
}

// close ends the protection of the blobs. What comes after is quick: Check
// looks twice, and leaves young blobs alone.
func (w *contentWriter) close() {
	if !w.closed {
		w.closed = true
		w.fs.pins.Unpin(w.id)
	}
}

// abort drops what was written. It does nothing after finish.
func (w *contentWriter) abort(ctx context.Context) {
	if w.closed {
		return
	}
	if w.blob != nil {
		w.blob.Abort()
		w.blob = nil
	}
	for _, c := range w.committing {
		<-c.done
	}
	if w.err == nil {
		w.err = errWriterAborted
	}
	w.fs.deleteBlobs(ctx, w.id, w.extents)
	w.close()
}

var errWriterAborted = errors.New("content writer was aborted")

// discard drops a finished content that will not be published. It must not
// be called when the outcome of publishing is unknown (ErrUnavailable): what
// is left then, if anything is, are orphans as after a crash (fsck.Leftovers).
func (fs *FS) discard(ctx context.Context, c *content) {
	if c == nil || c.id == 0 {
		return
	}
	if !c.staged {
		fs.deleteBlobs(ctx, c.id, c.extents)
		return
	}
	fs.staged.Remove(c.id)
	err := fs.update(cluster.Relaxed(context.WithoutCancel(ctx)), func(t cluster.Txn, o *op) error {
		if err := t.Delete(record.ContentKey(c.id)); err != nil {
			return err
		}
		return o.enqueue(t, record.QueueEntry{Kind: record.QueueContent, Content: c.id})
	})
	if err != nil {
		fs.log.Warn("staged content is left to the collector", "content", uint64(c.id), "err", err)
	}
}

// deleteBlobs deletes the blobs of extents that no transaction named. Failure
// leaves orphans, as a crash does (fsck.Leftovers).
func (fs *FS) deleteBlobs(ctx context.Context, id ContentID, list []record.Extent) {
	var ids []cluster.BlobID
	for i := range list {
		if list[i].Kind == record.ExtentBlob {
			ids = append(ids, list[i].BlobID(id))
		}
	}
	if len(ids) == 0 {
		return
	}
	if _, err := fs.quarantine.Drop(context.WithoutCancel(ctx), ids...); err != nil {
		fs.log.Warn("blobs of an unpublished content are left as orphans", "content", uint64(id), "blobs", len(ids), "err", err)
	}
}
