package uploads

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// Abort drops an upload and its parts; ErrNoSuchUpload.
func (s *Uploads) Abort(ctx context.Context, name *keypath.UploadKey) error {
	return s.Namespace.Update(ctx, func(t *Txn) error {
		u, err := s.Rights.Upload(ctx, t, name, rights.ActOwnUpload)
		if err != nil {
			return err
		}
		return s.abort(t, u)
	})
}

func (s *Uploads) abort(t *Txn, u *record.Upload) error {
	if u.Stage > 0 {
		// Extents that an attempt to complete wrote. Their entry is a bit later:
		// both entries have the number of the upload.
		e := record.QueueEntry{TimeNS: t.NowNS + 1, Kind: record.QueueContent, Content: u.ID}
		if err := t.Set(e.Key(), e.Encode()); err != nil {
			return err
		}
	}
	return end(t, u)
}

// end removes the records of an upload and leaves its parts to the
// collector.
func end(t *Txn, u *record.Upload) error {
	if err := t.Delete(u.StoreKey()); err != nil {
		return err
	}
	if err := t.Delete(record.UploadIDKey(u.ID)); err != nil {
		return err
	}
	return t.Contents.Enqueue(t, record.QueueEntry{Kind: record.QueueUpload, Content: u.ID})
}

const (
	// abortBatch is how many uploads of a bucket that went are aborted in one
	// transaction; each takes 4 writes.
	abortBatch = 25
)

// AbortAll aborts the uploads of a bucket that does not exist any more.
// What a failure leaves is out of reach of everybody; Check finds it.
func (s *Uploads) AbortAll(ctx context.Context, bucket record.Ino) {
	for {
		var n int
		err := s.Namespace.Update(cluster.Relaxed(ctx), func(t *Txn) error {
			list, err := keypath.UploadsOf(t, bucket, abortBatch)
			if err != nil {
				return err
			}
			n = len(list)
			for _, u := range list {
				if err := s.abort(t, u); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.Log.Warn("uploads of a removed bucket are left", "bucket", uint64(bucket), "err", err)
		}
		if err != nil || n < abortBatch {
			return
		}
	}
}
