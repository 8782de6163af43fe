package content

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

const (
	// collectPage is how many entries the collector takes at a time, for which it
	// waits together: where several gateways use the store, for seconds.
	collectPage = 8192
	// unlimitedCollectBatch is how many extents the collector removes in one
	// transaction; limitedCollectBatch keeps it within 128 operations even
	// if each extent releases another source.
	unlimitedCollectBatch = 512
	limitedCollectBatch   = 16
)

// collectBatch is how many extents one transaction of the collector removes.
func (s *Store) collectBatch() int {
	if extents.PerTxn(s.KV) == extents.LimitedTxn {
		return limitedCollectBatch
	}
	return unlimitedCollectBatch
}

// Collect runs one pass of the collector: what is queued for deletion goes. Of several
// gateways one does it. before is called first: it may queue more, and if it fails it keeps
// nothing in the queue. Collect returns how many entries both of them finished.
func (s *Store) Collect(ctx context.Context, before func(context.Context) (int, error)) (int, error) {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	ctx = cluster.Strict(ctx)
	if err := s.relieve(ctx); err != nil || !s.Session.Leads() {
		return 0, err
	}
	done, err := before(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, session.ErrReading)) {
		return done, err // the queue would wait for the same read
	}
	if staged := s.collectStaging(ctx); staged != nil {
		return done, cmp.Or(err, staged)
	}
	n, queued := s.collectQueue(ctx)
	return done + n, cmp.Or(err, queued)
}

func (s *Store) collectQueue(ctx context.Context) (done int, err error) {
	// Deletions by relaxed transactions must be durable before the blobs go:
	// strict views see to that, and this where an engine's views do not.
	if err := s.SyncRelaxed(ctx); err != nil {
		return 0, err
	}
	from, end, err := s.queueBounds(ctx)
	if err != nil {
		return 0, err
	}
	for s.Session.Leads() {
		page, next, err := s.queued(ctx, from, end)
		if err != nil || next == nil {
			return done, err
		}
		from = next
		held, err := s.Session.Settle(ctx)
		if err != nil {
			return done, err
		}
		page = slices.DeleteFunc(page, func(e record.QueueEntry) bool { return held.Contents[e.Content] && e.Kind != record.QueueHold })
		s.dropOldSnapshots(page)
		n, err := s.collectEntries(ctx, page)
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// queueBounds returns where a pass begins and ends in the queue. Beside others, where each
// page takes seconds, it takes none of the entries that come meanwhile, or it would not end.
func (s *Store) queueBounds(ctx context.Context) (from, end []byte, err error) {
	from, to := record.Table(record.TabQueue)
	if s.Session.Alone() {
		return from, to, nil
	}
	err = s.View(ctx, func(r cluster.Reader) error {
		end = from
		return r.Scan(from, to, cluster.ScanOptions{Limit: 1, Reverse: true, KeysOnly: true}, func(k, _ []byte) error {
			end = append(bytes.Clone(k), 0)
			return nil
		})
	})
	return from, end, err
}

// queued returns the next entries, and where those after them begin: nil at the end.
func (s *Store) queued(ctx context.Context, from, end []byte) (page []record.QueueEntry, next []byte, err error) {
	err = s.View(ctx, func(r cluster.Reader) error {
		page, next = page[:0], nil
		return r.Scan(from, end, cluster.ScanOptions{Limit: collectPage}, func(k, v []byte) error {
			next = append(append(next[:0], k...), 0)
			e, err := record.DecodeQueueEntry(k, v)
			if err != nil {
				s.Leave(err)
				return nil
			}
			page = append(page, e)
			return nil
		})
	})
	return page, next, err
}

// dropOldSnapshots lets go of contents that open files hold without need. What was queued of a
// content that has its inode still, no snapshot from here on needs: so files that stay
// open, and are read, load theirs anew.
func (s *Store) dropOldSnapshots(page []record.QueueEntry) {
	queued := make(map[record.ContentID]bool)
	for i := range page {
		if c := page[i].Content; s.Pins.Pinned(c) {
			queued[c] = true
		}
	}
	if len(queued) > 0 {
		s.DropSnapshots(func(c record.ContentID) bool { return queued[c] })
	}
}

// collectEntries finishes what is not pinned: blobs together, and contents.
func (s *Store) collectEntries(ctx context.Context, page []record.QueueEntry) (done int, err error) {
	var blobs, contents []record.QueueEntry
	holds := make(map[record.ContentID][]record.QueueEntry)
	for _, e := range page {
		if e.Kind == record.QueueHold { // readers and backups need what goes then, not this
			holds[e.Content] = append(holds[e.Content], e)
			continue
		}
		if s.Pins.Pinned(e.Content) || s.holds.keeps(&e) {
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
			if err = s.CollectUpload(ctx, e.Content); err == nil {
				err = s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error { return t.Delete(e.Key()) })
			}
		}
		if unreadable(err) {
			s.Leave(fmt.Errorf("upload %d: %w", e.Content, err))
			continue
		}
		if err != nil {
			return done, fmt.Errorf("content %d: %w", e.Content, err)
		}
		done++
	}
	for user, list := range holds {
		err := s.collectHolds(ctx, user, list)
		if err != nil {
			err = fmt.Errorf("holds of content %d: %w", user, err)
		}
		if unreadable(err) {
			s.Leave(err)
			continue
		}
		if err != nil {
			return done, err
		}
		done += len(list)
	}
	n, err := s.collectContents(ctx, contents)
	if done += n; err != nil {
		return done, err
	}
	batch := extents.PerTxn(s.KV)
	for i := 0; i < len(blobs); i += batch {
		part := blobs[i:min(i+batch, len(blobs))]
		if err := s.collectBlobs(ctx, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// collectBlobs deletes single blobs, unless an extent came to name one again
// (a flush whose first outcome was unknown).
func (s *Store) collectBlobs(ctx context.Context, list []record.QueueEntry) error {
	var ids []cluster.BlobID
	err := s.View(ctx, func(r cluster.Reader) error {
		ids = ids[:0]
		for i := range list {
			e := &list[i]
			named, err := blobNamed(r, e, 0)
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
	if _, err := s.Blobs.Drop(ctx, ids...); err != nil {
		return fserr.Map(err)
	}
	return s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error {
		for i := range list {
			if err := t.Delete(list[i].Key()); err != nil {
				return err
			}
		}
		return nil
	})
}

// collectContents removes contents.
func (s *Store) collectContents(ctx context.Context, list []record.QueueEntry) (done int, err error) {
	return Together(s.KV, list, func(part []record.QueueEntry) (int, error) { return s.collectSome(ctx, part) })
}

// distantTogether is how many transactions the collector has under way in an engine of
// which each takes round trips.
const distantTogether = 8

// Together calls fn for the parts of a list that are worked on at the same time, one for
// an engine that is near, and returns the sum of what it returns.
func Together[T any](kv cluster.KV, list []T, fn func(part []T) (int, error)) (done int, err error) {
	if !kv.Limits().Distant || len(list) < 2*distantTogether {
		return fn(list)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for part := range slices.Chunk(list, (len(list)+distantTogether-1)/distantTogether) {
		wg.Go(func() {
			n, e := fn(part)
			mu.Lock()
			defer mu.Unlock()
			done, err = done+n, errors.Join(err, e)
		})
	}
	wg.Wait()
	return done, err
}

// collectSome removes contents, those with few extents together: most
// are small files, of which a million may have been deleted at once.
func (s *Store) collectSome(ctx context.Context, list []record.QueueEntry) (done int, err error) {
	for len(list) > 0 {
		extents, err := s.loadFew(ctx, list)
		n := len(extents)
		if n > 0 {
			err = s.collectFew(ctx, list[:n], extents)
		}
		if err == nil && n == 0 || unreadable(err) && n > 1 {
			n, err = 1, s.collectContent(ctx, &list[0])
		}
		if err != nil {
			err = fmt.Errorf("content %d and %d after it: %w", list[0].Content, max(n, 1)-1, err)
		}
		if unreadable(err) { // it is the first
			s.Leave(err)
			list = list[1:]
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
		list = list[n:]
	}
	return done, nil
}

// loadFew reads all extents of the first contents of list, of as many as one
// transaction can remove and as can be read; none, if the first one alone has too many, or
// cannot be read.
func (s *Store) loadFew(ctx context.Context, list []record.QueueEntry) (loaded [][]record.Extent, err error) {
	err = s.View(ctx, func(r cluster.Reader) error {
		loaded = nil
		room := s.collectBatch()
		for i := range list {
			x, more, err := extents.Load(r, list[i].Content, 0, record.MaxFileBytes, s.collectBatch())
			if unreadable(err) {
				return nil
			}
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
func (s *Store) collectFew(ctx context.Context, list []record.QueueEntry, extents [][]record.Extent) error {
	var ids []cluster.BlobID
	for i := range list {
		ids = append(ids, blobIDs(list[i].Content, extents[i])...)
	}
	if _, err := s.Blobs.Drop(ctx, ids...); err != nil {
		return fserr.Map(err)
	}
	return s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error {
		for i := range list {
			if err := ch.dropExtents(t, list[i].Content, extents[i]); err != nil {
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
func (s *Store) collectContent(ctx context.Context, e *record.QueueEntry) error {
	for {
		var list []record.Extent
		var more bool
		err := s.View(ctx, func(r cluster.Reader) (err error) {
			list, more, err = extents.Load(r, e.Content, 0, record.MaxFileBytes, s.collectBatch())
			return err
		})
		if err != nil {
			return err
		}
		if _, err := s.Blobs.Drop(ctx, blobIDs(e.Content, list)...); err != nil {
			return fserr.Map(err)
		}
		err = s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error {
			if err := ch.dropExtents(t, e.Content, list); err != nil || more {
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
func (ch *Change) dropExtents(t cluster.Txn, c record.ContentID, list []record.Extent) error {
	released := make(map[record.ContentID]bool)
	for i := range list {
		x := &list[i]
		if err := t.Delete(record.ExtentKey(c, x.Off)); err != nil {
			return err
		}
		if x.Kind == record.ExtentRef && !released[x.Src] {
			released[x.Src] = true
			if err := ch.ReleaseRef(t, x.Src, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// blobIDs returns each blob of the extents once.
func blobIDs(c record.ContentID, list []record.Extent) (ids []cluster.BlobID) {
	seen := make(map[uint64]bool)
	for i := range list {
		if e := &list[i]; e.Kind == record.ExtentBlob && !seen[e.Seq] {
			seen[e.Seq] = true
			ids = append(ids, e.BlobID(c))
		}
	}
	return ids
}
