package quarantine

import (
	"context"
	"errors"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// FoundBy names who looks for damage; without a name, it is a reader.
func FoundBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, finderKey{}, who)
}

type finderKey struct{}

func finder(ctx context.Context) string {
	if who, ok := ctx.Value(finderKey{}).(string); ok {
		return who
	}
	return "read"
}

// Read reads from a blob as cluster.Blobs.ReadAt does. Of damage that it meets it
// takes note before it returns, once the medium itself is known to have it.
func (q *Blobs) Read(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	n, err := q.Engine.ReadAt(ctx, id, p, off)
	q.met(ctx, id, err)
	return n, err
}

// ReadSummed is Read for who knows the checksum of the blob, as cluster.ReadSummed.
func (q *Blobs) ReadSummed(ctx context.Context, blob cluster.SummedBlob, p []byte, off int64) (int, error) {
	n, err := cluster.ReadSummed(ctx, q.Engine, blob, p, off)
	q.met(ctx, blob.ID, err)
	return n, err
}

// met takes note of what a reader of a blob met.
func (q *Blobs) met(ctx context.Context, id cluster.BlobID, err error) {
	if errors.Is(err, cluster.ErrCorrupt) || errors.Is(err, cluster.ErrUnavailable) {
		q.suspect(ctx, id, err)
	}
}

// Splice is Read for who copies nothing, as cluster.BlobSplicer: what it does not
// take is to be read, and noted then.
func (q *Blobs) Splice(ctx context.Context, id cluster.BlobID, w int, off, n int64) (int64, error) {
	return cluster.SplicerOf(q.Engine).Splice(ctx, id, w, off, n)
}

// suspect verifies a blob that gave cause. A flood of errors, from a disk that
// is gone, is not to read everything again and again: who finds another at it
// leaves this to the next reader.
func (q *Blobs) suspect(ctx context.Context, id cluster.BlobID, cause error) {
	if !q.room(id, cause) || !q.confirming.TryLock() {
		return
	}
	defer q.confirming.Unlock()
	err := cluster.VerifyBlob(ctx, q.Engine, id)
	if !errors.Is(err, cluster.ErrCorrupt) {
		return
	}
	if err := q.Note(ctx, id, err); err != nil {
		q.Log.Error("the note of a damaged blob is not stored, it is tried again", "blob", id.String(), "err", err)
	}
}

// Drop deletes blobs that nothing names any more, but those in quarantine:
// these are set aside. It returns how many it deleted.
func (q *Blobs) Drop(ctx context.Context, ids ...cluster.BlobID) (deleted int, err error) {
	kept, err := q.setAside(ctx, ids)
	if err != nil {
		return 0, err
	}
	if len(kept) > 0 {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id cluster.BlobID) bool { return slices.Contains(kept, id) })
	}
	return len(ids), q.Engine.Delete(ctx, ids...)
}

// setAside marks those of ids that are in quarantine, and returns them.
func (q *Blobs) setAside(ctx context.Context, ids []cluster.BlobID) (kept []cluster.BlobID, err error) {
	known, err := q.Find(ctx, ids)
	if err != nil {
		return nil, err
	}
	for id, rec := range known {
		if !rec.Aside || rec.Unsaved {
			is, err := q.Write(ctx, id, func(old *record.Damaged) *record.Damaged {
				if old != nil {
					old.Aside = true
				}
				return old
			})
			if err != nil {
				return nil, err
			}
			if is == nil {
				continue // dropped concurrently: there is nothing to keep
			}
		}
		kept = append(kept, id)
	}
	return kept, nil
}

// Find returns those of ids that are in quarantine, also where other processes
// take blobs in.
func (q *Blobs) Find(ctx context.Context, ids []cluster.BlobID) (map[cluster.BlobID]record.Damaged, error) {
	found := make(map[cluster.BlobID]record.Damaged)
	q.mu.Lock()
	for _, id := range ids {
		if rec, ok := q.list[id]; ok && (q.Feed.Complete() || rec.Unsaved) {
			found[id] = rec
		}
	}
	q.mu.Unlock()
	if q.Feed.Complete() || len(ids) == 0 {
		return found, nil
	}
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = record.DamagedKey(id)
	}
	err := q.KV.View(ctx, func(r cluster.Reader) error {
		values, err := r.GetMany(keys)
		for i, v := range values {
			if v != nil {
				found[ids[i]] = record.DecodeDamaged(v)
			}
		}
		return err
	})
	return found, fserr.Map(err)
}
