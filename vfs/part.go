package vfs

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"ogw/cluster"
)

// part is what key 'p' holds: one part of an upload, its extents in offsets
// within the part.
//
// Value: version byte, size (uvarint), MD5 (16 bytes), time (8, Unix
// nanoseconds), a byte that tells whether the CRC64NVME is known, that (8),
// checksums, the number of extents, and for each its offset (uvarint) and its
// value as under 'e' (with its length).
type part struct {
	number     int // part of the key
	size       int64
	sum        [md5.Size]byte
	modifiedNS int64
	crc        uint64
	hasCRC     bool
	checksums  []Checksum
	extents    []extent
}

const partVersion = 1

// garbagePart is the first number of parts that were replaced.
const garbagePart = 1 << 31

func (p *part) encode() []byte {
	var e encoder
	e.byte(partVersion)
	e.uint(uint64(p.size))
	e.b = append(e.b, p.sum[:]...)
	e.fixed64(uint64(p.modifiedNS))
	e.bool(p.hasCRC)
	e.fixed64(p.crc)
	e.b = appendChecksums(e.b, p.checksums)
	e.uint(uint64(len(p.extents)))
	for i := range p.extents {
		e.uint(uint64(p.extents[i].off))
		e.bytes(p.extents[i].encode())
	}
	return e.b
}

// decodePart is the inverse of encode. The result keeps v.
func decodePart(k, v []byte) (*part, error) {
	if len(k) != 13 || k[0] != tabPart {
		return nil, fmt.Errorf("%w: part key %x", ErrCorrupt, k)
	}
	d := decoder{b: v, what: "part"}
	if version := d.byte(); version != partVersion {
		return nil, fmt.Errorf("%w: part %x has format %d", ErrCorrupt, k, version)
	}
	p := &part{number: int(binary.BigEndian.Uint32(k[9:])), size: int64(d.uint())}
	binary.BigEndian.PutUint64(p.sum[:8], d.fixed64())
	binary.BigEndian.PutUint64(p.sum[8:], d.fixed64())
	p.modifiedNS = int64(d.fixed64())
	p.hasCRC = d.byte() != 0
	p.crc = d.fixed64()
	p.checksums = d.checksums()
	n := d.count()
	var end int64
	for i := 0; i < n && d.err == nil; i++ {
		off := int64(d.uint())
		e, err := decodeExtent(off, d.bytes())
		if err != nil {
			return nil, err
		}
		if e.off < end {
			d.fail()
		}
		end = e.end()
		p.extents = append(p.extents, e)
	}
	if p.size < 0 || end > p.size {
		d.fail()
	}
	return p, d.end()
}

// partExtents returns the extents of a part record ('p'), for Check.
func partExtents(v []byte) ([]extent, error) {
	p, err := decodePart(partKey(0, 0), v)
	if err != nil {
		return nil, err
	}
	return p.extents, nil
}

func (p *part) info() PartInfo {
	info := PartInfo{Number: p.number, Size: p.size, ETag: partETag(p.sum[:]), Modified: time.Unix(0, p.modifiedNS)}
	info.Checksums = append(info.Checksums, p.checksums...)
	if p.hasCRC {
		info.Checksums = append(info.Checksums, Checksum{Algorithm: ChecksumCRC64NVME, Value: crcBytes(p.crc)})
	}
	return info
}

// checksum returns the part's value of an algorithm, nil if it has none.
func (p *part) checksum(alg ChecksumAlgorithm) []byte {
	if alg == ChecksumCRC64NVME && p.hasCRC {
		return crcBytes(p.crc)
	}
	for _, c := range p.checksums {
		if c.Algorithm == alg && c.Parts == 0 {
			return c.Value
		}
	}
	return nil
}

// PutPart stores a part, durably, replacing an earlier one of that number
// (S3 UploadPart).
func (fs *FS) PutPart(ctx context.Context, bucket, key, upload string, number int, body io.Reader, o PutOptions) (PartInfo, error) {
	ctx = fs.objectCtx(ctx, bucket, key)
	name, err := parsePartName(bucket, key, upload, number)
	if err != nil {
		return PartInfo{}, err
	}
	var u *uploadRecord
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		u, err = fs.uploadFor(ctx, r, &name, ActWriteObject)
		return err
	})
	if err != nil {
		return PartInfo{}, err
	}
	var extra hash.Hash
	if u.alg != "" && u.alg != o.Stated {
		if o.Stated != "" || u.composite && o.Finish != nil {
			return PartInfo{}, &ChecksumTypeError{u.alg, o.Stated}
		}
		if u.alg != ChecksumCRC64NVME { // which every content has
			if extra, err = u.alg.New(); err != nil {
				return PartInfo{}, err
			}
		}
	}
	v, err := fs.receive(ctx, u.id, body, &o, MaxPartBytes, extra)
	if err != nil {
		return PartInfo{}, err
	}
	defer v.release(fs)
	p := &part{number: number, size: v.content.size, sum: v.sum, crc: v.content.crc, hasCRC: true,
		checksums: v.checksums, extents: v.content.extents}
	if extra != nil {
		p.checksums = append(p.checksums, Checksum{Algorithm: u.alg, Value: v.extra})
	}
	err = fs.storePart(ctx, &name, p, nil)
	if err != nil && !errors.Is(err, ErrUnavailable) {
		fs.discard(ctx, v.content)
	}
	if err != nil {
		return PartInfo{}, err
	}
	return p.info(), nil
}

func parsePartName(bucket, key, upload string, number int) (uploadName, error) {
	if number < 1 || number > MaxParts {
		return uploadName{}, fmt.Errorf("part %d, 1 to %d are allowed: %w", number, MaxParts, ErrBadPartNumber)
	}
	return parseUploadName(bucket, key, upload)
}

// storePart stores p under its number. fill, if not nil, completes it within
// the transaction.
func (fs *FS) storePart(ctx context.Context, name *uploadName, p *part, fill func(t cluster.Txn, o *op, u *uploadRecord) error) error {
	var key, value []byte
	err := fs.update(ctx, func(t cluster.Txn, o *op) error {
		u, err := fs.uploadFor(ctx, t, name, ActWriteObject)
		if err != nil {
			return err
		}
		if u.stage > 0 {
			// Who is completing must not go on with the part that was.
			u.stage++
			if err := t.Set(u.storeKey(), u.encode()); err != nil {
				return err
			}
		}
		if fill != nil {
			if err := fill(t, o, u); err != nil {
				return err
			}
		}
		p.modifiedNS = o.nowNS
		key, value = partKey(u.id, p.number), p.encode()
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
func (o *op) retirePart(t cluster.Txn, u *uploadRecord, key []byte) error {
	old, err := t.Get(key)
	if err != nil || old == nil {
		return err
	}
	p, err := decodePart(key, old)
	if err != nil || allInline(p.extents) {
		return err
	}
	id, err := o.newID()
	if err != nil {
		return err
	}
	if err := t.Set(partKey(u.id, int(garbagePart|id%garbagePart)), old); err != nil {
		return err
	}
	return o.enqueue(t, queueEntry{kind: queueUpload, content: u.id})
}

// ListParts returns up to limit parts with numbers greater than after, and
// whether there are more.
func (fs *FS) ListParts(ctx context.Context, bucket, key, upload string, after, limit int) ([]PartInfo, bool, error) {
	name, err := parseUploadName(bucket, key, upload)
	if err != nil {
		return nil, false, err
	}
	var list []PartInfo
	more := false
	err = fs.view(ctx, func(r cluster.Reader) error {
		u, err := fs.uploadFor(ctx, r, &name, ActOwnUpload)
		if err != nil {
			return err
		}
		list, more = nil, false
		return eachPart(r, u.id, after+1, func(p *part) error {
			if len(list) >= limit {
				more = true
				return cluster.ErrStop
			}
			list = append(list, p.info())
			return nil
		})
	})
	return list, more, err
}

// eachPart calls fn for the parts from a number on.
func eachPart(r cluster.Reader, upload ContentID, from int, fn func(*part) error) error {
	start, end := partKey(upload, max(from, 0)), partKey(upload, garbagePart)
	if from > MaxParts {
		return nil
	}
	return r.Scan(start, end, cluster.ScanOptions{}, func(k, v []byte) error {
		p, err := decodePart(k, bytes.Clone(v))
		if err != nil {
			return err
		}
		return fn(p)
	})
}
