package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/tokens"
)

const (
	// maxBlobUploads bounds the blobs in flight of all files: what it takes to
	// keep a medium busy while others are being synced.
	maxBlobUploads = 8
	// retargetBuffer is what moves a blob to another content at a time.
	retargetBuffer = 1 << 20
	// streamPause is how long a stream does not try again to upload behind
	// the writer after a failure; flushes do.
	streamPause = time.Second
)

// uploadRun uploads pieces i to j, which are contiguous and open, as blobs of
// about uploadBytes. Under mu.
func (of *openFile) uploadRun(i, j int) {
	for i < j {
		var length int64
		k := i
		for k < j && length < of.fs.tune.uploadBytes {
			length += of.pieces[k].len
			k++
		}
		of.startUpload(of.pieces[i:k], length)
		i = k
	}
}

// uploadTarget returns the content that the next flush will most likely
// store into. Under mu, with a snapshot and a spare number.
func (of *openFile) uploadTarget() ContentID {
	n := of.snap.inode
	switch {
	case n.Content != 0 && !n.Has(record.FlagShared):
		of.target, of.fresh = n.Content, false
	case !of.fresh:
		of.target, of.fresh, of.nextID = ContentID(of.nextID), true, 0
	}
	return of.target
}

func (of *openFile) startUpload(run []*piece, length int64) {
	u := &blobUpload{size: length, use: of.fs.ids.Begin(), done: make(chan struct{})}
	u.id.Content = uint64(of.uploadTarget())
	u.refs.Store(int32(len(run)) + 1)
	var pos int64
	for _, p := range run {
		p.up, p.upOff = u, pos
		p.chunk.refs++
		u.parts = append(u.parts, blobPart{p.chunk, p.data})
		pos += p.len
	}
	of.fs.contents.Pins.Pin(ContentID(u.id.Content))
	go of.runUpload(u)
}

// runUpload writes the blob and frees the chunks.
func (of *openFile) runUpload(u *blobUpload) {
	fs := of.fs
	fs.uploads <- struct{}{}
	id, crc, err := fs.writeBlobUpload(context.Background(), u)
	<-fs.uploads

	of.mu.Lock()
	u.id, u.crc, u.err = id, crc, err
	for _, p := range of.pieces {
		switch {
		case p.up != u:
		case err == nil:
			of.releaseChunk(p.chunk)
			p.chunk, p.data = nil, nil
		default: // to be tried again
			p.up, p.upOff = nil, 0
			u.refs.Add(-1)
		}
	}
	for _, part := range u.parts {
		of.releaseChunk(part.chunk)
	}
	u.parts = nil
	if err != nil {
		of.streamAgain = time.Now().Add(streamPause)
	}
	close(u.done)
	of.mu.Unlock()
	fs.releaseBlobUpload(u)
}

func (fs *FS) writeBlobUpload(ctx context.Context, u *blobUpload) (id cluster.BlobID, crc uint64, err error) {
	id = u.id
	if id.Seq, err = fs.ids.Take(ctx); err != nil {
		return u.id, 0, err
	}
	w, err := fs.blobs.Create(ctx, id, u.size)
	if err != nil {
		return id, 0, fserr.Map(err)
	}
	defer w.Abort()
	for _, part := range u.parts {
		if _, err := w.Write(part.data); err != nil {
			return id, 0, fserr.Map(err)
		}
	}
	size, crc, err := w.Commit(ctx)
	if err == nil && size != u.size {
		err = content.ErrBlobLength
	}
	return id, crc, fserr.Map(err)
}

// releaseUpload counts one user less; after the last, a blob that no
// transaction can have named is deleted.
func (fs *FS) releaseBlobUpload(u *blobUpload) {
	if u.refs.Add(-1) > 0 {
		return
	}
	if u.doubt.Load() || u.published.Load() && !u.named.Load() {
		u.use.Doubt()
	}
	u.use.End()
	fs.contents.Pins.Unpin(ContentID(u.id.Content)) // after the doubt, or a beat would say neither
	if u.published.Load() || u.id.Seq == 0 {
		return
	}
	id := u.id
	go func() {
		if _, err := fs.quarantine.Drop(context.Background(), id); err != nil {
			fs.log.Warn("blob of an overwritten buffer is left as an orphan", "blob", id.String(), "err", err)
		}
	}()
}

// retargetError asks for the uploads to be moved to another content.
type retargetError struct {
	to    ContentID
	fresh bool // no transaction named it yet
}

func (e *retargetError) Error() string { return fmt.Sprintf("content is %d by now", e.to) }

// store publishes a plan, for whatever content its uploads have to be.
func (of *openFile) store(ctx context.Context, plan *flushPlan, token *Token) error {
	err := of.awaitUploads(ctx, plan)
	for attempt := 0; err == nil; attempt++ {
		var move *retargetError
		err = of.publish(tokens.Again(ctx, token), plan)
		if !errors.As(err, &move) {
			break
		}
		if of.noted(plan) { // what is stored is not stored again
			return errTried
		}
		if attempt == maxFlushAttempts {
			return fmt.Errorf("%w: inode %d", ErrConflict, of.ino)
		}
		err = of.retarget(ctx, plan, move)
	}
	return err
}

// retarget moves the uploads of plan to another content: theirs was shared,
// replaced or truncated away since they began. It is rare, so it copies.
func (of *openFile) retarget(ctx context.Context, plan *flushPlan, move *retargetError) error {
	fs, to := of.fs, move.to
	defer func() {
		of.mu.Lock()
		of.target, of.fresh = to, move.fresh
		of.mu.Unlock()
	}()
	for _, u := range plan.uploads() {
		if u.id.Content == uint64(to) {
			continue
		}
		id, err := fs.copyBlob(ctx, u.id, u.size, to)
		if err != nil {
			return err
		}
		fs.contents.Pins.Pin(to)
		of.mu.Lock()
		old := u.id
		u.id = id
		of.mu.Unlock()
		fs.contents.Pins.Unpin(ContentID(old.Content))
		switch {
		case u.named.Load(): // the old one, by a transaction before: it stays with its content
			u.published.Store(false)
			u.named.Store(false)
		case u.published.Load(): // it is not known whether one named it
			u.doubt.Store(true)
			u.published.Store(false)
		default:
			// A read that has the old ID begins anew.
			of.gen.Add(1)
			if _, err := fs.quarantine.Drop(ctx, old); err != nil {
				fs.log.Warn("blob is left as an orphan", "blob", old.String(), "err", err)
			}
		}
	}
	if plan.named, plan.fresh = false, 0; move.fresh {
		plan.fresh = to
	}
	return nil
}

// copyBlob stores the bytes of a blob as one of content to.
func (fs *FS) copyBlob(ctx context.Context, from cluster.BlobID, size int64, to ContentID) (cluster.BlobID, error) {
	seq, err := fs.ids.Take(ctx)
	if err != nil {
		return cluster.BlobID{}, err
	}
	id := cluster.BlobID{Content: uint64(to), Seq: seq}
	w, err := fs.blobs.Create(ctx, id, size)
	if err != nil {
		return id, fserr.Map(err)
	}
	defer w.Abort()
	buf := make([]byte, min(size, retargetBuffer))
	for off := int64(0); off < size; {
		part := buf[:min(size-off, int64(len(buf)))]
		n, err := fs.quarantine.Read(ctx, from, part, off)
		if n != len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: blob %v is too short", ErrCorrupt, from)
			}
			return id, fserr.Map(err)
		}
		if _, err := w.Write(part); err != nil {
			return id, fserr.Map(err)
		}
		off += int64(n)
	}
	_, _, err = w.Commit(ctx)
	return id, fserr.Map(err)
}
