package vfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// collectPage is how many entries the collector takes at a time.
	collectPage = 256
	// unlimitedCollectBatch is how many extents the collector removes in one
	// transaction; limitedCollectBatch keeps it within 128 operations even
	// if each extent releases another source.
	unlimitedCollectBatch = 512
	limitedCollectBatch   = 16
	// stagingGrace is how long a staged content may wait for the transaction
	// that publishes it, which comes at once.
	stagingGrace = time.Hour
	// quiesceTimeout bounds how long the collector waits for old views. It
	// tries again later.
	quiesceTimeout = 30 * time.Second
)

// collectBatch is how many extents one transaction of the collector removes.
func (fs *FS) collectBatch() int {
	if extents.PerTxn(fs.kv) == extents.LimitedTxn {
		return limitedCollectBatch
	}
	return unlimitedCollectBatch
}

// Collect runs one pass of the collector: what is queued for deletion and
// due goes. It returns how many queue entries it finished.
func (fs *FS) Collect(ctx context.Context) (int, error) {
	fs.collectMu.Lock()
	defer fs.collectMu.Unlock()
	ctx = cluster.Strict(ctx)
	if err := fs.relieve(ctx); err != nil {
		return 0, err
	}
	done, err := fs.collectOrphans(ctx)
	if err != nil {
		return done, err
	}
	if err := fs.collectStaging(ctx); err != nil {
		return done, err
	}
	n, err := fs.collectQueue(ctx)
	return done + n, err
}

func (fs *FS) collectQueue(ctx context.Context) (done int, err error) {
	// Deletions by relaxed transactions must be durable before the blobs go:
	// strict views see to that, and this where an engine's views do not.
	if err := fs.syncRelaxed(ctx); err != nil {
		return 0, err
	}
	from := record.QueueKey(0, 0)
	for {
		page, next, err := fs.dueEntries(ctx, from)
		if err != nil || len(page) == 0 {
			return done, err
		}
		from = next
		wait, cancel := context.WithTimeout(ctx, quiesceTimeout)
		err = fs.session.Readers.Quiesce(wait)
		cancel()
		if err != nil {
			return done, err
		}
		fs.dropOldSnapshots(page)
		n, err := fs.collectEntries(ctx, page)
		if done += n; err != nil {
			return done, err
		}
	}
}

// dueEntries returns the next entries that are due.
func (fs *FS) dueEntries(ctx context.Context, from []byte) (page []record.QueueEntry, next []byte, err error) {
	end := record.QueueKey(fs.cfg.Now().UnixNano()+1, 0)
	err = fs.view(ctx, func(r cluster.Reader) error {
		page = page[:0]
		return r.Scan(from, end, cluster.ScanOptions{Limit: collectPage}, func(k, v []byte) error {
			e, err := record.DecodeQueueEntry(k, v)
			if err != nil {
				return err
			}
			page = append(page, e)
			next = append(append(next[:0], k...), 0)
			return nil
		})
	})
	return page, next, err
}

// dropOldSnapshots lets go of contents that open files hold without need.
func (fs *FS) dropOldSnapshots(page []record.QueueEntry) {
	for i := range page {
		if fs.pins.Pinned(page[i].Content) {
			fs.eachOpen((*openFile).dropOldSnapshot)
			return
		}
	}
}

func (of *openFile) dropOldSnapshot() {
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.snap != nil && !of.current() {
		of.snap.release()
		of.snap = nil
	}
}

// collectEntries finishes what is not pinned: blobs together, and contents.
func (fs *FS) collectEntries(ctx context.Context, page []record.QueueEntry) (done int, err error) {
	var blobs, contents []record.QueueEntry
	for _, e := range page {
		if fs.pins.Pinned(e.Content) || fs.holds.keeps(&e) {
			continue
		}
		switch e.Kind {
		case record.QueueBlob:
			blobs = append(blobs, e)
			continue
		case record.QueueContent:
			contents = append(contents, e)
			continue
		case record.QueueUpload:
			if err = fs.collectUpload(ctx, e.Content); err == nil {
				err = fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, o *op) error { return t.Delete(e.Key()) })
			}
		}
		if err != nil {
			return done, fmt.Errorf("content %d: %w", e.Content, err)
		}
		done++
	}
	n, err := fs.collectContents(ctx, contents)
	if done += n; err != nil {
		return done, err
	}
	batch := extents.PerTxn(fs.kv)
	for i := 0; i < len(blobs); i += batch {
		part := blobs[i:min(i+batch, len(blobs))]
		if err := fs.collectBlobs(ctx, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// collectBlobs deletes single blobs, unless an extent came to name one again
// (a flush whose first outcome was unknown).
func (fs *FS) collectBlobs(ctx context.Context, list []record.QueueEntry) error {
	var ids []cluster.BlobID
	err := fs.view(ctx, func(r cluster.Reader) error {
		ids = ids[:0]
		for i := range list {
			e := &list[i]
			named, err := blobNamed(r, e.Content, e.Seq, e.Origin, e.Size)
			if err != nil {
				return err
			}
			if !named {
				ids = append(ids, cluster.BlobID{Content: uint64(e.Content), Seq: e.Seq})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := fs.quarantine.Drop(ctx, ids...); err != nil {
		return fserr.Map(err)
	}
	return fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, o *op) error {
		for i := range list {
			if err := t.Delete(list[i].Key()); err != nil {
				return err
			}
		}
		return nil
	})
}

// collectContents removes contents, those with few extents together: most
// are small files, of which a million may have been deleted at once.
func (fs *FS) collectContents(ctx context.Context, list []record.QueueEntry) (done int, err error) {
	for len(list) > 0 {
		extents, err := fs.loadFew(ctx, list)
		n := len(extents)
		switch {
		case err != nil:
		case n == 0:
			n, err = 1, fs.collectContent(ctx, &list[0])
		default:
			err = fs.collectFew(ctx, list[:n], extents)
		}
		if err != nil {
			return done, fmt.Errorf("content %d and %d after it: %w", list[0].Content, max(n, 1)-1, err)
		}
		done += n
		list = list[n:]
	}
	return done, nil
}

// loadFew reads all extents of the first contents of list, of as many as one
// transaction can remove; none, if the first one alone has too many.
func (fs *FS) loadFew(ctx context.Context, list []record.QueueEntry) (loaded [][]record.Extent, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		loaded = nil
		room := fs.collectBatch()
		for i := range list {
			x, more, err := extents.Load(r, list[i].Content, 0, MaxFileBytes, fs.collectBatch())
			if err != nil {
				return err
			}
			if room -= len(x) + 1; more || room < 0 { // one for the entry of the queue
				return nil
			}
			loaded = append(loaded, x)
		}
		return nil
	})
	return loaded, err
}

// collectFew removes contents whole, in one transaction: blobs, then the
// extents that name them, so that a crash leaves no orphans.
func (fs *FS) collectFew(ctx context.Context, list []record.QueueEntry, extents [][]record.Extent) error {
	var ids []cluster.BlobID
	for i := range list {
		ids = append(ids, blobIDs(list[i].Content, extents[i])...)
	}
	if _, err := fs.quarantine.Drop(ctx, ids...); err != nil {
		return fserr.Map(err)
	}
	return fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, o *op) error {
		for i := range list {
			if err := o.dropExtents(t, list[i].Content, extents[i]); err != nil {
				return err
			}
			if err := t.Delete(list[i].Key()); err != nil {
				return err
			}
		}
		return nil
	})
}

// collectContent removes a content in batches, as collectFew does.
func (fs *FS) collectContent(ctx context.Context, e *record.QueueEntry) error {
	for {
		var list []record.Extent
		var more bool
		err := fs.view(ctx, func(r cluster.Reader) (err error) {
			list, more, err = extents.Load(r, e.Content, 0, MaxFileBytes, fs.collectBatch())
			return err
		})
		if err != nil {
			return err
		}
		if _, err := fs.quarantine.Drop(ctx, blobIDs(e.Content, list)...); err != nil {
			return fserr.Map(err)
		}
		err = fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, o *op) error {
			if err := o.dropExtents(t, e.Content, list); err != nil || more {
				return err
			}
			return t.Delete(e.Key())
		})
		if err != nil || !more {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// dropExtents removes extents of a content that nobody reads again, with its
// holds on others: each can go with the first extent that had it.
func (o *op) dropExtents(t cluster.Txn, c ContentID, list []record.Extent) error {
	released := make(map[ContentID]bool)
	for i := range list {
		x := &list[i]
		if err := t.Delete(record.ExtentKey(c, x.Off)); err != nil {
			return err
		}
		if x.Kind == record.ExtentRef && !released[x.Src] {
			released[x.Src] = true
			if err := o.releaseRef(t, x.Src, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// blobIDs returns each blob of the extents once.
func blobIDs(c ContentID, list []record.Extent) (ids []cluster.BlobID) {
	seen := make(map[uint64]bool)
	for i := range list {
		if e := &list[i]; e.Kind == record.ExtentBlob && !seen[e.Seq] {
			seen[e.Seq] = true
			ids = append(ids, e.BlobID(c))
		}
	}
	return ids
}

// collectStaging queues contents that were staged and never published. Those
// that this process stages are left alone, whatever the clock says.
func (fs *FS) collectStaging(ctx context.Context) error {
	var old []ContentID
	now := fs.cfg.Now().UnixNano()
	from := []byte{record.TabContent}
	for {
		var n int
		err := fs.view(ctx, func(r cluster.Reader) error {
			n = 0
			return r.Scan(from, []byte{record.TabContent + 1}, cluster.ScanOptions{Limit: collectPage}, func(k, v []byte) error {
				n++
				from = append(append(from[:0:0], k...), 0)
				rec, err := record.DecodeContent(v)
				if err != nil || len(k) != 9 {
					return fmt.Errorf("%w: content record %x", ErrCorrupt, k)
				}
				c := ContentID(record.InoOfKey(k))
				if rec.Staging && !fs.staged.Has(c) && fs.session.Gone(0, time.Duration(now-rec.MadeNS), stagingGrace) {
					old = append(old, c)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if n < collectPage || len(old) >= collectPage {
			break
		}
	}
	for _, c := range old {
		if err := fs.dropStaged(ctx, c); err != nil && !errors.Is(err, ErrStale) {
			return err
		}
	}
	return nil
}

// dropStaged hands a staged content to the collector.
func (fs *FS) dropStaged(ctx context.Context, c ContentID) error {
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		b, err := t.Get(record.ContentKey(c))
		if err != nil || b == nil {
			return err // published meanwhile
		}
		rec, err := record.DecodeContent(b)
		if err != nil || !rec.Staging {
			return err
		}
		if err := t.Delete(record.ContentKey(c)); err != nil {
			return err
		}
		return o.enqueue(t, record.QueueEntry{Kind: record.QueueContent, Content: c})
	})
}

// enqueue puts e into the queue, due after the grace period.
func (o *op) enqueue(t cluster.Txn, e record.QueueEntry) error {
	e.DueNS = o.nowNS + int64(o.fs.cfg.Grace)
	return t.Set(e.Key(), e.Encode())
}
