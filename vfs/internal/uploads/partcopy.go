package uploads

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/vfs/internal/bodyhash"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/receive"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"

	"github.com/minio/crc64nvme"
)

const (
	// MaxPartBytes bounds a part, whose extents stand in one record.
	MaxPartBytes = 5 << 30
	// maxPartRefs bounds the references that a part may consist of, so that its
	// record stays small. What is more fragmented is copied byte by byte.
	maxPartRefs = 1000
	// maxCopyAttempts bounds how often a copy begins anew because its source
	// changed while its checksum was computed.
	maxCopyAttempts = 8
)

// Source is the range of an object that Copy copies.
type Source struct {
	Key    keypath.Key
	Off    int64
	Length int64                 // -1: to the end
	Cond   objects.Preconditions // of the object
}

// Copy stores a range of an object as a part, by reference. ErrBadRange for a range
// that the object does not have.
//
// Its ETag is the MD5 if that is known, else a value of that form that
// stands for the range.
func (s *Uploads) Copy(ctx context.Context, name *keypath.UploadKey, number int, from *Source) (objects.PartInfo, error) {
	for range maxCopyAttempts {
		c := partCopy{Uploads: s, name: name, from: from, p: &record.Part{Number: number}}
		info, err := c.run(ctx)
		if !errors.Is(err, errSourceChanged) {
			return info, err
		}
	}
	return objects.PartInfo{}, fmt.Errorf("source %q keeps changing: %w", from.Key.Key, fserr.ErrConflict)
}

var errSourceChanged = fmt.Errorf("copy source changed: %w", fserr.ErrConflict)

// partCopy is one attempt to copy a part.
type partCopy struct {
	*Uploads
	name *keypath.UploadKey
	from *Source
	p    *record.Part
	n    *record.Inode // of the source, as prepare saw it
}

func (c *partCopy) run(ctx context.Context) (objects.PartInfo, error) {
	rd, err := c.prepare(ctx)
	if rd != nil {
		defer rd.Close()
	}
	if err != nil {
		return objects.PartInfo{}, err
	}
	err = c.store(ctx, c.name, c.p, func(t *Txn, u *record.Upload) error {
		from, err := c.Rights.Object(ctx, t, &c.from.Key, rights.ActReadObject)
		if err != nil {
			return err
		}
		if from.Ino != c.n.Ino || from.Version != c.n.Version || from.Size != c.n.Size {
			return errSourceChanged
		}
		c.p.Extents, err = t.Contents.Refer(t, from, u.ID, content.Range{Off: c.from.Off, Len: c.p.Size}, 0)
		if err == nil && len(c.p.Extents) > maxPartRefs {
			err = content.ErrFragmented
		}
		return err
	})
	if errors.Is(err, content.ErrFragmented) {
		return c.copyBytes(ctx)
	}
	if err != nil {
		return objects.PartInfo{}, err
	}
	return objects.InfoOfPart(c.p), nil
}

// prepare flushes the source, checks the range and computes the checksums
// that the upload asks for.
func (c *partCopy) prepare(ctx context.Context) (rd *content.Reader, err error) {
	var u *record.Upload
	c.n, err = c.Namespace.ReadObject(ctx, &c.from.Key, func(r cluster.Reader, n *record.Inode) (err error) {
		rd.Close() // of an earlier run
		rd = nil
		if u, err = c.Rights.Upload(ctx, r, c.name, rights.ActWriteObject); err != nil {
			return err
		}
		if err := objects.CheckSource(&c.from.Cond, objects.ETagOf(n), n.Mtime.Date()); err != nil {
			return err
		}
		if c.p.Size, err = rangeSize(c.from.Off, c.from.Length, n.Size); err != nil {
			return err
		}
		if u.Alg != "" {
			rd, err = c.Contents.Open(ctx, r, n)
		}
		return err
	})
	if err != nil {
		return rd, err
	}
	whole := c.p.Size == c.n.Size
	if whole && c.n.Has(record.FlagCRC) {
		c.p.CRC, c.p.HasCRC = c.n.CRC, true
	}
	if whole && len(c.n.Object.Sum) == md5.Size && c.n.Object.NParts == 0 {
		copy(c.p.Sum[:], c.n.Object.Sum)
	} else {
		c.p.Sum = rangeSum(c.n, c.from.Off, c.p.Size)
	}
	if u.Alg == "" || u.Alg == checksum.CRC64NVME && c.p.HasCRC {
		return rd, nil
	}
	return rd, c.hash(ctx, u.Alg, rd)
}

// rangeSize returns the length of a range of an object with size bytes.
func rangeSize(off, length, size int64) (int64, error) {
	if length == -1 {
		length = size - off
	}
	if off < 0 || length < 0 || off > size || length > size-off || off == size && size > 0 {
		return 0, fmt.Errorf("range %d+%d of %d bytes: %w", off, length, size, fserr.ErrBadRange)
	}
	if length > MaxPartBytes {
		return 0, objects.TooLarge(MaxPartBytes)
	}
	return length, nil
}

// rangeSum stands for an MD5 of a range that nobody computed.
func rangeSum(n *record.Inode, off, length int64) [md5.Size]byte {
	b := []byte("range")
	for _, v := range [...]uint64{uint64(n.Ino), n.Version, uint64(off), uint64(length)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return md5.Sum(b)
}

// hash computes what only reading the range can give.
func (c *partCopy) hash(ctx context.Context, alg checksum.Algorithm, rd *content.Reader) error {
	h, err := alg.New()
	if err != nil {
		return err
	}
	sum, crc := md5.New(), crc64nvme.New()
	if err := bodyhash.Feed(ctx, rd, c.from.Off, c.p.Size, io.MultiWriter(h, sum, crc)); err != nil {
		return err
	}
	sum.Sum(c.p.Sum[:0])
	c.p.CRC, c.p.HasCRC = crc.Sum64(), true
	if alg != checksum.CRC64NVME {
		c.p.Checksums = []checksum.Sum{{Algorithm: alg, Value: h.Sum(nil)}}
	}
	return nil
}

// copyBytes stores the range as if the client had sent it.
func (c *partCopy) copyBytes(ctx context.Context) (objects.PartInfo, error) {
	var rd *content.Reader
	_, err := c.Namespace.ReadObject(ctx, &c.from.Key, func(r cluster.Reader, n *record.Inode) (err error) {
		rd.Close() // of an earlier run
		rd = nil
		if n.Ino != c.n.Ino || n.Version != c.n.Version {
			return errSourceChanged
		}
		rd, err = c.Contents.Open(ctx, r, n)
		return err
	})
	if rd != nil {
		defer rd.Close()
	}
	if err != nil {
		return objects.PartInfo{}, err
	}
	body := io.NewSectionReader(rd, c.from.Off, c.p.Size)
	return c.Put(ctx, c.name, c.p.Number, &receive.Body{From: body, Size: c.p.Size, MaxSize: MaxPartBytes}, "")
}
