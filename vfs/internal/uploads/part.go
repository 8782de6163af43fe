package uploads

import (
	"bytes"
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/receive"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// Put stores a part, durably, replacing an earlier one of that number. stated is the
// algorithm of the checksum that the body comes with, "" for none.
func (s *Uploads) Put(ctx context.Context, name *keypath.UploadKey, number int, b *receive.Body, stated checksum.Algorithm) (objects.PartInfo, error) {
	u, err := s.Find(ctx, name, rights.ActWriteObject)
	if err != nil {
		return objects.PartInfo{}, err
	}
	b.ID = u.ID
	if u.Alg != "" && u.Alg != stated {
		if stated != "" || u.Composite && b.Finish != nil {
			return objects.PartInfo{}, &objects.ChecksumTypeError{Want: u.Alg, Got: stated}
		}
		if u.Alg != checksum.CRC64NVME { // which every content has
			if b.Extra, err = u.Alg.New(); err != nil {
				return objects.PartInfo{}, err
			}
		}
	}
	v, err := s.Bodies.Receive(ctx, b)
	if err != nil {
		return objects.PartInfo{}, err
	}
	defer v.Release()
	p := &record.Part{Number: number, Size: v.Content.Size, Sum: v.Sum, CRC: v.Content.CRC, HasCRC: true,
		Checksums: v.Checksums, Extents: v.Content.Extents}
	if b.Extra != nil {
		p.Checksums = append(p.Checksums, checksum.Sum{Algorithm: u.Alg, Value: v.Extra})
	}
	err = s.store(ctx, name, p, nil)
	if err != nil && !errors.Is(err, fserr.ErrUnavailable) {
		s.Contents.Discard(ctx, v.Content)
	}
	v.Content.Published(!errors.Is(err, fserr.ErrUnavailable))
	if err != nil {
		return objects.PartInfo{}, err
	}
	return objects.InfoOfPart(p), nil
}

// store stores p under its number. fill, if not nil, completes it within
// the transaction.
func (s *Uploads) store(ctx context.Context, name *keypath.UploadKey, p *record.Part, fill func(t *Txn, u *record.Upload) error) error {
	var key, value []byte
	err := s.Namespace.Update(ctx, func(t *Txn) error {
		u, err := s.Rights.Upload(ctx, t, name, rights.ActWriteObject)
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
			if err := fill(t, u); err != nil {
				return err
			}
		}
		p.ModifiedNS = t.NowNS
		key, value = record.PartKey(u.ID, p.Number), p.Encode()
		if err := retire(t, u, key); err != nil {
			return err
		}
		return t.Set(key, value)
	})
	if !errors.Is(err, fserr.ErrUnavailable) || key == nil {
		return err
	}
	// The outcome is unknown. If the part is there, all is well.
	var now []byte
	if e := s.Namespace.View(ctx, func(r cluster.Reader) (err error) {
		now, err = r.Get(key)
		return err
	}); e == nil && bytes.Equal(now, value) {
		return nil
	}
	return err
}

// retire leaves the part at key, which is being replaced, to the
// collector.
func retire(t *Txn, u *record.Upload, key []byte) error {
	old, err := t.Get(key)
	if err != nil || old == nil {
		return err
	}
	p, err := record.DecodePart(key, old)
	if err != nil || extents.AllInline(p.Extents) {
		return err
	}
	id, err := t.NewID()
	if err != nil {
		return err
	}
	if err := t.Set(record.PartKey(u.ID, int(record.GarbagePart|id%record.GarbagePart)), old); err != nil {
		return err
	}
	return t.Contents.Enqueue(t, record.QueueEntry{Kind: record.QueueUpload, Content: u.ID})
}

// List returns up to limit parts with numbers greater than after, and whether there
// are more.
func (s *Uploads) List(ctx context.Context, name *keypath.UploadKey, after, limit int) (list []objects.PartInfo, more bool, err error) {
	err = s.Namespace.View(ctx, func(r cluster.Reader) error {
		u, err := s.Rights.Upload(ctx, r, name, rights.ActOwnUpload)
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
