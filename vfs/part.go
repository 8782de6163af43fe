package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
)

// PutPart stores a part, durably, replacing an earlier one of that number
// (S3 UploadPart).
func (fs *FS) PutPart(ctx context.Context, name UploadName, number int, body io.Reader, o PutOptions) (PartInfo, error) {
	ctx = fs.objectCtx(ctx, name.ObjectName)
	k, err := parsePartName(name, number)
	if err != nil {
		return PartInfo{}, err
	}
	var u *record.Upload
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		u, err = fs.rights.Upload(ctx, r, &k, ActWriteObject)
		return err
	})
	if err != nil {
		return PartInfo{}, err
	}
	b := o.body(body, MaxPartBytes)
	b.ID = u.ID
	if u.Alg != "" && u.Alg != o.Stated {
		if o.Stated != "" || u.Composite && o.Finish != nil {
			return PartInfo{}, &ChecksumTypeError{Want: u.Alg, Got: o.Stated}
		}
		if u.Alg != ChecksumCRC64NVME { // which every content has
			if b.Extra, err = u.Alg.New(); err != nil {
				return PartInfo{}, err
			}
		}
	}
	v, err := fs.bodies.Receive(ctx, b)
	if err != nil {
		return PartInfo{}, err
	}
	defer v.Release()
	p := &record.Part{Number: number, Size: v.Content.Size, Sum: v.Sum, CRC: v.Content.CRC, HasCRC: true,
		Checksums: v.Checksums, Extents: v.Content.Extents}
	if b.Extra != nil {
		p.Checksums = append(p.Checksums, Checksum{Algorithm: u.Alg, Value: v.Extra})
	}
	err = fs.storePart(ctx, &k, p, nil)
	if err != nil && !errors.Is(err, ErrUnavailable) {
		fs.contents.Discard(ctx, v.Content)
	}
	if err != nil {
		return PartInfo{}, err
	}
	return objects.InfoOfPart(p), nil
}

func parsePartName(name UploadName, number int) (keypath.UploadKey, error) {
	if number < 1 || number > MaxParts {
		return keypath.UploadKey{}, fmt.Errorf("part %d, 1 to %d are allowed: %w", number, MaxParts, ErrBadPartNumber)
	}
	return parseUploadName(name)
}

// storePart stores p under its number. fill, if not nil, completes it within
// the transaction.
func (fs *FS) storePart(ctx context.Context, name *keypath.UploadKey, p *record.Part, fill func(t cluster.Txn, o *op, u *record.Upload) error) error {
	var key, value []byte
	err := fs.update(ctx, func(t cluster.Txn, o *op) error {
		u, err := fs.rights.Upload(ctx, t, name, ActWriteObject)
		if err != nil {
			return err
		}
		if u.Stage > 0 {
			// Who is completing must not go on with the part that was.
			u.Stage++
			if err := t.Set(u.StoreKey(), u.Encode()); err != nil {
				return err
			}
		}
		if fill != nil {
			if err := fill(t, o, u); err != nil {
				return err
			}
		}
		p.ModifiedNS = o.nowNS
		key, value = record.PartKey(u.ID, p.Number), p.Encode()
		if err := o.retirePart(t, u, key); err != nil {
			return err
		}
		return t.Set(key, value)
	})
	if !errors.Is(err, ErrUnavailable) || key == nil {
		return err
	}
	// The outcome is unknown. If the part is there, all is well.
	var now []byte
	if e := fs.view(ctx, func(r cluster.Reader) (err error) {
		now, err = r.Get(key)
		return err
	}); e == nil && bytes.Equal(now, value) {
		return nil
	}
	return err
}

// retirePart leaves the part at key, which is being replaced, to the
// collector.
func (o *op) retirePart(t cluster.Txn, u *record.Upload, key []byte) error {
	old, err := t.Get(key)
	if err != nil || old == nil {
		return err
	}
	p, err := record.DecodePart(key, old)
	if err != nil || extents.AllInline(p.Extents) {
		return err
	}
	id, err := o.newID()
	if err != nil {
		return err
	}
	if err := t.Set(record.PartKey(u.ID, int(record.GarbagePart|id%record.GarbagePart)), old); err != nil {
		return err
	}
	return o.contents.Enqueue(t, record.QueueEntry{Kind: record.QueueUpload, Content: u.ID})
}

// ListParts returns up to limit parts with numbers greater than after, and
// whether there are more.
func (fs *FS) ListParts(ctx context.Context, name UploadName, after, limit int) ([]PartInfo, bool, error) {
	k, err := parseUploadName(name)
	if err != nil {
		return nil, false, err
	}
	var list []PartInfo
	more := false
	err = fs.view(ctx, func(r cluster.Reader) error {
		u, err := fs.rights.Upload(ctx, r, &k, ActOwnUpload)
		if err != nil {
			return err
		}
		list, more = nil, false
		return objects.EachPart(r, u.ID, after+1, func(p *record.Part) error {
			if len(list) >= limit {
				more = true
				return cluster.ErrStop
			}
			list = append(list, objects.InfoOfPart(p))
			return nil
		})
	})
	return list, more, err
}
