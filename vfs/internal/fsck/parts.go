package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
)

// partAt is a part of an upload in progress.
type partAt struct {
	upload  record.ContentID
	number  int
	extents []record.Extent
}

// partNames reports whether a part of an upload in progress names a blob of it.
func partNames(r cluster.Reader, id cluster.BlobID, part int) (bool, error) {
	upload := record.ContentID(id.Content)
	k := record.PartKey(upload, part)
	values, err := r.GetMany([][]byte{record.UploadIDKey(upload), k})
	if err != nil || values[0] == nil || values[1] == nil {
		return false, err
	}
	p, err := record.DecodePart(k, values[1])
	if errors.Is(err, fserr.ErrCorrupt) {
		return false, nil // reported with the parts
	}
	return err == nil && slices.ContainsFunc(p.Extents, func(e record.Extent) bool {
		return e.Kind == record.ExtentBlob && e.Seq == id.Seq
	}), err
}

// partText names a part for people, as far as its upload can be read.
func partText(ctx context.Context, s Store, files quarantine.Files, upload record.ContentID, part int) string {
	text := fmt.Sprintf("part %d of upload %d", part, upload)
	var u *record.Upload
	err := s.View(ctx, func(r cluster.Reader) error {
		k, err := r.Get(record.UploadIDKey(upload))
		if err != nil || k == nil {
			return err
		}
		v, err := r.Get(k)
		if err == nil && v != nil {
			u, err = record.DecodeUpload(k, v)
		}
		return err
	})
	if err != nil || u == nil {
		return text
	}
	bucket, err := files.KeyOf(ctx, u.Bucket)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s%s, part %d of upload %s", bucket, u.Key, part, keypath.UploadID(u))
}
