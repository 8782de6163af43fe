package content

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// maxCommitting is how many full blobs of one writer may be on their way to
// durability while the next is written: enough to hide a sync, and it bounds
// what an engine buffers for one writer.
const maxCommitting = 2

// Writer streams a new content: inline if small, else blobs of up to
// cluster.MaxBlobBytes. It copies only what may become inline; larger bytes
// go straight to the engine, and full blobs are committed while the next is
// written. It is for one goroutine.
type Writer struct {
	s    *Store
	ctx  context.Context
	id   record.ContentID
	use  *ids.Use
	own  bool  // the ID was taken for this writer
	hint int64 // bytes expected, or -1
	size int64

	InlineLimit int64  // up to this the content becomes inline
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

// NewWriter begins a content. id 0 takes a fresh one (an upload
// passes its own, which all its parts share; then nothing is staged). size
// is expected, or -1. ctx is that of all writing.
func (s *Store) NewWriter(ctx context.Context, id record.ContentID, size int64) (*Writer, error) {
	w := &Writer{s: s, ctx: ctx, id: id, use: s.IDs.Begin(), hint: size, InlineLimit: int64(s.InlineBytes)}
	if id == 0 {
		n, err := s.IDs.Take(ctx)
		if err != nil {
			w.use.End()
			return nil, err
		}
		w.id, w.own = record.ContentID(n), true
	}
	s.Pins.Pin(w.id) // Check must not take the blobs for orphans
	return w, nil
}

// Write adds p to the content. It keeps nothing of p but what becomes inline.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.blob == nil && len(w.extents) == 0 {
		if w.size+int64(len(p)) <= w.InlineLimit {
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

func (w *Writer) writeBlobs(p []byte) (n int, err error) {
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

func (w *Writer) begin() error {
	seq, err := w.s.IDs.Take(w.ctx)
	if err != nil {
		return err
	}
	hint := int64(-1)
	if w.hint > w.size {
		hint = min(w.hint-w.size, cluster.MaxBlobBytes)
	}
	w.blob, err = w.s.Engine.Create(w.ctx, cluster.BlobID{Content: uint64(w.id), Seq: seq}, hint)
	w.seq, w.blobLen = seq, 0
	return fserr.Map(err)
}

// Flush begins to make durable what is there already, in the background. Any
// bytes that follow go to another blob.
func (w *Writer) Flush() error {
	if w.err == nil && w.blob != nil {
		w.err = w.end()
	}
	return w.err
}

// end hands the blob to a goroutine that commits it.
func (w *Writer) end() error {
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
func (w *Writer) reap() error {
	c := w.committing[0]
	w.committing = w.committing[1:]
	<-c.done
	if c.err != nil {
		return fserr.Map(c.err)
	}
	e := &w.extents[c.extent]
	e.BlobCRC = c.crc
	if c.size != e.BlobSize {
		return ErrBlobLength
	}
	return nil
}

var ErrBlobLength = errors.New("the engine stored a blob of another length than was written")

// Finish commits the blobs, durably, and stages the extents if they are
// many. The content must be published (Published) or discarded. After an error nothing
// is left but what an unknown outcome may have stored.
func (w *Writer) Finish(ctx context.Context) (*Written, error) {
	w.err = w.Flush()
	for w.err == nil && len(w.committing) > 0 {
		w.err = w.reap()
	}
	if w.err != nil {
		err := w.err
		w.Abort(ctx)
		return nil, err
	}
	c := &Written{ID: w.id, Size: w.size, Used: w.size, Extents: w.extents, use: w.use}
	switch {
	case w.size == 0:
		c.ID = 0
	case len(w.extents) == 0:
		c.CRC = crc64nvme.Checksum(w.inline)
		c.Extents = []record.Extent{{Len: w.size, Kind: record.ExtentInline, Data: w.inline}}
	default:
		for i := range w.extents {
			c.CRC = cluster.CombineCRC64(c.CRC, w.extents[i].BlobCRC, w.extents[i].Len)
		}
	}
	w.close()
	if w.own {
		if err := w.s.Stage(ctx, c); err != nil {
			w.s.Discard(ctx, c)
			return nil, err
		}
	}
	return c, nil
}

// close ends the protection of the blobs. What comes after is quick: Check
// looks twice, and leaves young blobs alone.
func (w *Writer) close() {
	if !w.closed {
		w.closed = true
		w.s.Pins.Unpin(w.id)
	}
}

// Abort drops what was written. It does nothing after finish.
func (w *Writer) Abort(ctx context.Context) {
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
	w.s.deleteBlobs(ctx, w.id, w.extents)
	w.use.End()
	w.close()
}

var errWriterAborted = errors.New("content writer was aborted")

// Discard drops a finished content that will not be published. It must not
// be called when the outcome of publishing is unknown (ErrUnavailable): what
// is left then, if anything is, are orphans as after a crash (fsck.Leftovers).
func (s *Store) Discard(ctx context.Context, c *Written) {
	if c == nil {
		return
	}
	defer c.use.End()
	if c.ID == 0 {
		return
	}
	if !c.Staged {
		s.deleteBlobs(ctx, c.ID, c.Extents)
		return
	}
	s.Staged.Remove(c.ID)
	err := s.Update(cluster.Relaxed(context.WithoutCancel(ctx)), func(t cluster.Txn, ch *Change) error {
		if err := t.Delete(record.ContentKey(c.ID)); err != nil {
			return err
		}
		return ch.Enqueue(t, record.QueueEntry{Kind: record.QueueContent, Content: c.ID})
	})
	if err != nil {
		s.Log.Warn("staged content is left to the collector", "content", uint64(c.ID), "err", err)
	}
}

// Published is called after the transaction that published c, or should have: known
// reports whether it did. nil is a content that has nothing to publish.
func (c *Written) Published(known bool) {
	switch {
	case c == nil:
	case known:
		c.use.End()
	default:
		c.use.Doubt()
	}
}

// deleteBlobs deletes the blobs of extents that no transaction named. Failure
// leaves orphans, as a crash does (fsck.Leftovers).
func (s *Store) deleteBlobs(ctx context.Context, id record.ContentID, list []record.Extent) {
	var ids []cluster.BlobID
	for i := range list {
		if list[i].Kind == record.ExtentBlob {
			ids = append(ids, list[i].BlobID(id))
		}
	}
	if len(ids) == 0 {
		return
	}
	if _, err := s.Blobs.Drop(context.WithoutCancel(ctx), ids...); err != nil {
		s.Log.Warn("blobs of an unpublished content are left as orphans", "content", uint64(id), "blobs", len(ids), "err", err)
	}
}
