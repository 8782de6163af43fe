package vfs

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// maxPartRefs bounds the references that a part may consist of, so that its
// record stays small. What is more fragmented is copied byte by byte.
const maxPartRefs = 1000

// PartSource is the range of an object that CopyPart copies.
type PartSource struct {
	ObjectName
	Off    int64
	Length int64         // -1: to the end
	Cond   Preconditions // of the object
}

// CopyPart stores a range of an object as a part, by reference (S3
// UploadPartCopy). ErrBadRange for a range that the object does not have.
//
// Its ETag is the MD5 if that is known, else a value of that form that
// stands for the range.
func (fs *FS) CopyPart(ctx context.Context, name UploadName, number int, from PartSource) (PartInfo, error) {
	ctx = fs.objectCtx(ctx, name.ObjectName)
	k, err := parsePartName(name, number)
	if err != nil {
		return PartInfo{}, err
	}
	src, err := parseKey(from.ObjectName)
	if err != nil {
		return PartInfo{}, err
	}
	for range maxCopyAttempts {
		c := partCopy{fs: fs, name: &k, src: &src, off: from.Off, length: from.Length, cond: &from.Cond, p: &record.Part{Number: number}}
		err := c.run(ctx)
		if err == nil {
			return objects.InfoOfPart(c.p), nil
		}
		if !errors.Is(err, errSourceChanged) {
			return PartInfo{}, err
		}
	}
	return PartInfo{}, fmt.Errorf("source %q keeps changing: %w", from.Key, ErrConflict)
}

// partCopy is one attempt to copy a part.
type partCopy struct {
	fs          *FS
	name        *keypath.UploadKey
	src         *keypath.Key
	off, length int64
	cond        *Preconditions // of the source
	p           *record.Part
	n           *record.Inode // of the source, as prepare saw it
}

func (c *partCopy) run(ctx context.Context) error {
	rd, err := c.prepare(ctx)
	if rd != nil {
		defer rd.Close()
	}
	if err != nil {
		return err
	}
	err = c.fs.storePart(ctx, c.name, c.p, func(t cluster.Txn, o *op, u *record.Upload) error {
		from, err := c.fs.rights.Object(o.ctx, t, c.src, ActReadObject)
		if err != nil {
			return err
		}
		if from.Ino != c.n.Ino || from.Version != c.n.Version || from.Size != c.n.Size {
			return errSourceChanged
		}
		c.p.Extents, err = o.contents.Refer(t, from, u.ID, c.off, c.p.Size, 0)
		if err == nil && len(c.p.Extents) > maxPartRefs {
			err = content.ErrFragmented
		}
		return err
	})
	if errors.Is(err, content.ErrFragmented) {
		return c.copyBytes(ctx)
	}
	return err
}

// prepare flushes the source, checks the range and computes the checksums
// that the upload asks for.
func (c *partCopy) prepare(ctx context.Context) (rd *content.Reader, err error) {
	var u *record.Upload
	c.n, err = c.fs.readObject(ctx, c.src, func(r cluster.Reader, n *record.Inode) (err error) {
		rd.Close() // of an earlier run
		rd = nil
		if u, err = c.fs.rights.Upload(ctx, r, c.name, ActWriteObject); err != nil {
			return err
		}
		if err := objects.CheckSource(c.cond, objects.ETagOf(n), modifiedAt(n)); err != nil {
			return err
		}
		if c.p.Size, err = rangeSize(c.off, c.length, n.Size); err != nil {
			return err
		}
		if u.Alg != "" {
			rd, err = c.fs.contents.Open(ctx, r, n)
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
		c.p.Sum = rangeSum(c.n, c.off, c.p.Size)
	}
	if u.Alg == "" || u.Alg == ChecksumCRC64NVME && c.p.HasCRC {
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
		return 0, fmt.Errorf("range %d+%d of %d bytes: %w", off, length, size, ErrBadRange)
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

// hash computes what only reading the range can tell.
func (c *partCopy) hash(ctx context.Context, alg ChecksumAlgorithm, rd *content.Reader) error {
	h, err := alg.New()
	if err != nil {
		return err
	}
	sum, crc := md5.New(), crc64nvme.New()
	if err := hashContent(ctx, rd, c.off, c.p.Size, io.MultiWriter(h, sum, crc)); err != nil {
		return err
	}
	sum.Sum(c.p.Sum[:0])
	c.p.CRC, c.p.HasCRC = crc.Sum64(), true
	if alg != ChecksumCRC64NVME {
		c.p.Checksums = []Checksum{{Algorithm: alg, Value: h.Sum(nil)}}
	}
	return nil
}

// copyBytes stores the range as if the client had sent it.
func (c *partCopy) copyBytes(ctx context.Context) error {
	ob, err := c.fs.GetObject(ctx, nameOf(c.src), GetOptions{})
	if err != nil {
		return err
	}
	defer ob.Close()
	if ob.r.Version() != c.n.Version || ob.Info.Ino != c.n.Ino {
		return errSourceChanged
	}
	body := io.NewSectionReader(ob, c.off, c.p.Size)
	info, err := c.fs.PutPart(ctx, nameOf(&c.name.Object).Upload(c.name.ID), c.p.Number, body, PutOptions{Size: c.p.Size})
	if err != nil {
		return err
	}
	c.p.ModifiedNS = info.Modified.UnixNano()
	c.p.Checksums, c.p.HasCRC = nil, false
	for _, s := range info.Checksums {
		if s.Algorithm == ChecksumCRC64NVME {
			c.p.CRC, c.p.HasCRC = binary.BigEndian.Uint64(s.Value), true
		} else {
			c.p.Checksums = append(c.p.Checksums, s)
		}
	}
	sum, err := objects.ParsePartETag(info.ETag)
	copy(c.p.Sum[:], sum)
	return err
}
