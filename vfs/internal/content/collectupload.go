package content

import (
	"bytes"
	"context"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// CollectUpload removes what an upload that was queued (record.QueueUpload) does not
// need: the parts that were replaced, and when it ended, all part records,
// the blobs that its content does not name, and holds on other contents that
// it does not use. It does nothing when called again.
func (s *Store) CollectUpload(ctx context.Context, upload record.ContentID) error {
	var alive bool
	named := make(map[uint64]bool) // blobs of its content, which no part adds to any more
	err := s.View(ctx, func(r cluster.Reader) error {
		clear(named)
		v, err := r.Get(record.UploadIDKey(upload))
		if err != nil || v != nil {
			alive = v != nil
			return err
		}
		return EachExtent(r, upload, func(e *record.Extent) {
			if e.Kind == record.ExtentBlob {
				named[e.Seq] = true
			}
		})
	})
	if err != nil {
		return err
	}
	from := record.PartPrefix(upload)
	if alive {
		from = record.PartKey(upload, record.GarbagePart)
	}
	for {
		done, err := s.collectParts(ctx, upload, from, alive, named)
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// EachExtent calls fn for every extent of c, in order.
func EachExtent(r cluster.Reader, c record.ContentID, fn func(*record.Extent)) error {
	prefix := record.ExtentPrefix(c)
	return r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		_, e, err := record.ParseExtent(k, v)
		if err == nil {
			fn(&e)
		}
		return err
	})
}

// EachPart calls fn for every extent of the parts of an upload, but for those that were replaced.
func EachPart(r cluster.Reader, upload record.ContentID, fn func(*record.Extent)) error {
	return r.Scan(record.PartPrefix(upload), record.PartKey(upload, record.GarbagePart), cluster.ScanOptions{}, func(k, v []byte) error {
		p, err := record.DecodePart(k, v)
		for i := range p.Extents {
			fn(&p.Extents[i])
		}
		return err
	})
}

// collectParts removes some of the parts from a key on: blobs first, then
// the records that name them, so that a crash leaves no orphans.
func (s *Store) collectParts(ctx context.Context, upload record.ContentID, from []byte, alive bool, named map[uint64]bool) (done bool, err error) {
	var keys [][]byte
	var blobs []cluster.BlobID
	var sources []record.ContentID
	limit := s.collectBatch()
	err = s.View(ctx, func(r cluster.Reader) error {
		keys, blobs, sources = nil, nil, nil
		o := cluster.ScanOptions{Limit: limit}
		return r.Scan(from, cluster.PrefixEnd(record.PartPrefix(upload)), o, func(k, v []byte) error {
			if len(sources) >= limit {
				return cluster.ErrStop
			}
			p, err := record.DecodePart(k, v)
			if err != nil {
				return err
			}
			keys = append(keys, bytes.Clone(k))
			for i := range p.Extents {
				switch e := &p.Extents[i]; {
				case e.Kind == record.ExtentBlob && !named[e.Seq]:
					blobs = append(blobs, e.BlobID(upload))
				case e.Kind == record.ExtentRef && !slices.Contains(sources, e.Src):
					sources = append(sources, e.Src)
				}
			}
			return nil
		})
	})
	if err != nil {
		return false, err
	}
	if len(keys) == 0 {
		return true, nil
	}
	if _, err := s.Blobs.Drop(ctx, blobs...); err != nil {
		return false, fserr.Map(err)
	}
	for _, source := range sources {
		if err := s.releaseUnused(ctx, upload, source, keys); err != nil {
			return false, err
		}
	}
	return false, s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error {
		for _, k := range keys {
			if err := t.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// releaseUnused ends the upload's hold on source, unless its content or one
// of its parts, other than those that go, refers to it.
func (s *Store) releaseUnused(ctx context.Context, upload, source record.ContentID, gone [][]byte) error {
	return s.Update(cluster.Relaxed(ctx), func(t cluster.Txn, ch *Change) error {
		used := false
		err := EachExtent(t, upload, func(e *record.Extent) { used = used || e.Kind == record.ExtentRef && e.Src == source })
		if err != nil || used {
			return err
		}
		prefix := record.PartPrefix(upload)
		err = t.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
			if _, going := slices.BinarySearchFunc(gone, k, bytes.Compare); going {
				return nil
			}
			p, err := record.DecodePart(k, v)
			if err != nil {
				return err
			}
			used = used || slices.ContainsFunc(p.Extents, func(e record.Extent) bool { return e.Kind == record.ExtentRef && e.Src == source })
			return nil
		})
		if err != nil || used {
			return err
		}
		return ch.ReleaseRef(t, source, upload)
	})
}
