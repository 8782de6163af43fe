package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
)

func (o *op) abortUpload(t cluster.Txn, u *record.Upload) error {
	if u.Stage > 0 {
		// Extents that an attempt to complete wrote. Their entry is due a bit
		// later: both entries have the number of the upload.
		e := record.QueueEntry{DueNS: o.nowNS + int64(o.fs.cfg.Grace) + 1, Kind: record.QueueContent, Content: u.ID}
		if err := t.Set(e.Key(), e.Encode()); err != nil {
			return err
		}
	}
	return o.endUpload(t, u)
}

// endUpload removes the records of an upload and leaves its parts to the
// collector.
func (o *op) endUpload(t cluster.Txn, u *record.Upload) error {
	if err := t.Delete(u.StoreKey()); err != nil {
		return err
	}
	if err := t.Delete(record.UploadIDKey(u.ID)); err != nil {
		return err
	}
	return o.contents.Enqueue(t, record.QueueEntry{Kind: record.QueueUpload, Content: u.ID})
}

const (
	// abortBatch is how many uploads of a bucket that went are aborted in one
	// transaction; each takes 4 writes.
	abortBatch = 25
)

// abortUploads aborts the uploads of a bucket that does not exist any more.
// What a failure leaves is out of reach of everybody; Check finds it.
func (fs *FS) abortUploads(ctx context.Context, bucket Ino) {
	for {
		var n int
		err := fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, o *op) error {
			list, err := keypath.UploadsOf(t, bucket, abortBatch)
			if err != nil {
				return err
			}
			n = len(list)
			for _, u := range list {
				if err := o.abortUpload(t, u); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			fs.log.Warn("uploads of a removed bucket are left", "bucket", uint64(bucket), "err", err)
		}
		if err != nil || n < abortBatch {
			return
		}
	}
}
