package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

const (
	// compactExtents within compactWindow bytes make a file fragmented: reads
	// of it cost more in places than in bytes.
	compactExtents = 256
	compactWindow  = 64 << 20
	// compactSmall: extents that are longer than this part of a window are
	// left as they are, so that a log is rewritten once for each level, and
	// not again and again.
	compactSmall = 16
	// maxCompactQueue bounds the files that wait for compaction; those that
	// find no room come again with their next flush.
	maxCompactQueue = 1024
)

// compactSoon remembers that ino was flushed with many small extents.
func (fs *FS) compactSoon(ino Ino) {
	select {
	case fs.compactQueue <- ino:
	default:
	}
}

// compactQueued compacts the files that wait.
func (fs *FS) compactQueued(ctx context.Context) error {
	for range len(fs.compactQueue) {
		ino := <-fs.compactQueue
		if err := fs.compact(ctx, ino, compactExtents, compactWindow); err != nil && !errors.Is(err, ErrStale) {
			return fmt.Errorf("compact inode %d: %w", ino, err)
		}
	}
	return nil
}

// compact rewrites runs of small extents, where more than many of them lie
// within window bytes, as one blob each, as long as nobody changes them
// meanwhile. Bytes, times and version of the file stay.
func (fs *FS) compact(ctx context.Context, ino Ino, many int, window int64) error {
	for off := int64(0); off >= 0; {
		next, err := fs.compactWindow(ctx, ino, off, many, window)
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}

// compactRun is what one compaction rewrites.
type compactRun struct {
	content ContentID
	version uint64
	list    []record.Extent // contiguous
}

func (r *compactRun) from() int64 { return r.list[0].Off }
func (r *compactRun) to() int64   { return r.list[len(r.list)-1].End() }

// compactWindow handles the window that begins at off and returns where the
// next does, or -1.
func (fs *FS) compactWindow(ctx context.Context, ino Ino, off int64, many int, window int64) (next int64, err error) {
	var run *compactRun
	var rd *contentReader
	err = fs.view(ctx, func(r cluster.Reader) error {
		next, run = -1, nil
		n, err := record.GetInode(r, ino)
		if err != nil || n.Content == 0 || n.Has(record.FlagShared) || off >= n.Size {
			return err
		}
		list, _, err := extents.Load(r, n.Content, off, n.Size, 4*many)
		if err != nil || len(list) == 0 {
			return err
		}
		k := 0
		for k < len(list) && list[k].End()-list[0].Off <= window {
			k++
		}
		if k = max(k, 1); k < len(list) {
			next = list[k].Off
		}
		if k <= many {
			return nil
		}
		small := smallRun(list[:k], window/compactSmall)
		if len(small) <= many/2 {
			return nil
		}
		run = &compactRun{n.Content, n.Version, small}
		rd, err = fs.openContent(ctx, r, n)
		return err
	})
	if err != nil || run == nil {
		return next, err
	}
	defer rd.Close()
	return next, fs.rewrite(ctx, ino, run, rd)
}

// smallRun returns the longest run of contiguous extents of at most limit
// bytes each and cluster.MaxBlobBytes together. References do not count: to
// copy what is shared would take space.
func smallRun(list []record.Extent, limit int64) (best []record.Extent) {
	for i := 0; i < len(list); {
		j, total := i, int64(0)
		for j < len(list) && list[j].Kind != record.ExtentRef && list[j].Len <= limit &&
			(j == i || list[j-1].End() == list[j].Off) && total+list[j].Len <= cluster.MaxBlobBytes {
			total += list[j].Len
			j++
		}
		if j-i > len(best) {
			best = list[i:j]
		}
		i = max(j, i+1)
	}
	return best
}

// rewrite stores the bytes of run as one blob and replaces its extents if
// they are still the same.
func (fs *FS) rewrite(ctx context.Context, ino Ino, run *compactRun, rd *contentReader) error {
	w, err := fs.newContentWriter(ctx, run.content, run.to()-run.from())
	if err != nil {
		return err
	}
	w.inlineLimit = 0
	defer w.abort(ctx)
	buf := make([]byte, min(copyBufferBytes, run.to()-run.from()))
	for off := run.from(); off < run.to(); {
		k, err := rd.readAt(ctx, buf[:min(int64(len(buf)), run.to()-off)], off)
		if k == 0 {
			return err
		}
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		off += int64(k)
	}
	c, err := w.finish(ctx)
	if err != nil {
		return err
	}
	fs.pins.Pin(run.content)
	defer fs.pins.Unpin(run.content)
	stored := false
	err = fs.replaceRun(ctx, ino, run, c.extents, &stored)
	if !stored && !errors.Is(err, ErrUnavailable) {
		fs.deleteBlobs(ctx, c.id, c.extents)
	}
	if errors.Is(err, ErrStale) {
		return nil // changed meanwhile: its next flush tries again
	}
	return err
}

// replaceRun puts the new blob's extents in the place of run, in as many
// transactions as it takes. stored tells that one of them may have named it.
func (fs *FS) replaceRun(ctx context.Context, ino Ino, run *compactRun, list []record.Extent, stored *bool) error {
	e := list[0]
	e.Off += run.from()
	it := flushItem{off: e.Off, len: e.Len, up: &blobUpload{id: e.BlobID(run.content), size: e.BlobSize, crc: e.BlobCRC}}
	keep := map[uint64]bool{e.Seq: true}
	version := run.version
	for off := it.off; off < it.end(); {
		var done int64
		var now uint64
		err := fs.update(ctx, func(t cluster.Txn, o *op) error {
			n, err := record.GetInode(t, ino)
			if err != nil {
				return err
			}
			if n.Content != run.content || n.Version != version || n.Has(record.FlagShared) {
				return ErrStale
			}
			o.contents.sameBytes = true
			if done, _, err = o.storeItem(t, n, &it, off, fs.cutLimit(), keep); err != nil {
				return err
			}
			now = n.Version
			o.stored(ino)
			return record.PutInode(t, n)
		})
		if err != nil {
			return err
		}
		*stored, off, version = true, done, now
	}
	return nil
}
