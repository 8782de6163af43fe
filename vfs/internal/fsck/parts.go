package fsck

import (
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
)

// partAt is a part of an upload in progress.
type partAt struct {
	upload  record.ContentID
	number  int
	extents []record.Extent
}

// fillParts loads the next page of parts where there is none. Those that were replaced, and
// those of uploads that ended, are the collector's, which removes their blobs first.
func (m *merge) fillParts() error {
	for len(m.parts) == 0 && m.nextPart != nil {
		var alive [][]byte
		page, next, err := m.load(record.TabPart, m.nextPart, func(r cluster.Reader, page []pair) (err error) {
			keys := make([][]byte, len(page))
			for i, p := range page {
				keys[i] = record.UploadIDKey(record.ContentID(record.InoOfKey(p.key)))
			}
			alive, err = r.GetMany(keys)
			return err
		})
		if err != nil {
			return err
		}
		m.nextPart = next
		for i, p := range page {
			x, err := record.DecodePart(p.key, p.value)
			if err != nil {
				m.c.report(findings{{"part-record", err.Error(), nil}})
				continue
			}
			if alive[i] != nil && x.Number < record.GarbagePart {
				m.parts = append(m.parts, partAt{record.ContentID(record.InoOfKey(p.key)), x.Number, x.Extents})
			}
		}
	}
	return nil
}

// partBlobs adds to named the blobs of the parts of an upload.
func (m *merge) partBlobs(id record.ContentID, named map[uint64]missingBlob) error {
	for len(m.parts) > 0 && m.parts[0].upload == id {
		p := m.parts[0]
		m.parts = m.parts[1:]
		for i := range p.extents {
			if e := &p.extents[i]; e.Kind == record.ExtentBlob {
				named[e.Seq] = missingBlob{content: id, part: p.number, off: e.Off, id: e.BlobID(id), size: e.BlobSize, used: true}
			}
		}
		if err := m.fillParts(); err != nil {
			return err
		}
	}
	return nil
}

// partNames reports whether a part of an upload in progress names a blob.
func partNames(r cluster.Reader, x *missingBlob) (bool, error) {
	k := record.PartKey(x.content, x.part)
	values, err := r.GetMany([][]byte{record.UploadIDKey(x.content), k})
	if err != nil || values[0] == nil || values[1] == nil {
		return false, err
	}
	p, err := record.DecodePart(k, values[1])
	if damaged(err) {
		return false, nil // reported with the parts
	}
	return err == nil && slices.ContainsFunc(p.Extents, func(e record.Extent) bool {
		return e.Kind == record.ExtentBlob && e.Seq == x.id.Seq
	}), err
}

// partText names a part for people, as far as its upload can be read.
func (c *checker) partText(upload record.ContentID, part int) string {
	text := fmt.Sprintf("part %d of upload %d", part, upload)
	var u *record.Upload
	err := c.Store.View(c.ctx, func(r cluster.Reader) error {
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
	bucket, err := c.Blobs.Files.KeyOf(c.ctx, u.Bucket)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s%s, part %d of upload %s", bucket, u.Key, part, keypath.UploadID(u))
}
