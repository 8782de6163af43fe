package vfs

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

// maxPartRefs bounds the references that a part may consist of, so that its
// record stays small. What is more fragmented is copied byte by byte.
const maxPartRefs = 1000

// CopyPart stores a range of an object as a part, by reference. length -1
// means to the end (S3 UploadPartCopy). ErrBadRange for a range that the
// object does not have.
//
// Its ETag is the MD5 if that is known, else a value of that form that
// stands for the range.
func (fs *FS) CopyPart(ctx context.Context, srcBucket, srcKey string, off, length int64, bucket, key, upload string, number int, o CopyOptions) (PartInfo, error) {
	ctx = fs.objectCtx(ctx, bucket, key)
	name, err := parsePartName(bucket, key, upload, number)
	if err != nil {
		return PartInfo{}, err
	}
	src, err := parseKey(srcBucket, srcKey)
	if err != nil {
		return PartInfo{}, err
	}
	for range maxCopyAttempts {
		c := partCopy{fs: fs, name: &name, src: &src, off: off, length: length, o: &o, p: &part{number: number}}
		err := c.run(ctx)
		if err == nil {
			return c.p.info(), nil
		}
		if !errors.Is(err, errSourceChanged) {
			return PartInfo{}, err
		}
	}
	return PartInfo{}, fmt.Errorf("source %q keeps changing: %w", srcKey, ErrConflict)
}

// partCopy is one attempt to copy a part.
type partCopy struct {
	fs          *FS
	name        *uploadName
	src         *objectKey
	off, length int64
	o           *CopyOptions
	p           *part
	n           *inode // of the source, as prepare saw it
}

func (c *partCopy) run(ctx context.Context) error {
	content, err := c.prepare(ctx)
	if content != nil {
		defer content.Close()
	}
	if err != nil {
		return err
	}
	err = c.fs.storePart(ctx, c.name, c.p, func(t cluster.Txn, o *op, u *uploadRecord) error {
		from, err := c.fs.objectFor(o.ctx, t, c.src, ActReadObject)
		if err != nil {
			return err
		}
		if from.ino != c.n.ino || from.version != c.n.version || from.size != c.n.size {
			return errSourceChanged
		}
		c.p.extents, err = o.refExtents(t, from, u.id, c.off, c.p.size, 0)
		if err == nil && len(c.p.extents) > maxPartRefs {
			err = errTooFragmented
		}
		return err
	})
	if errors.Is(err, errTooFragmented) {
		return c.copyBytes(ctx)
	}
	return err
}

// prepare flushes the source, checks the range and computes the checksums
// that the upload asks for.
func (c *partCopy) prepare(ctx context.Context) (content *contentReader, err error) {
	var u *uploadRecord
	c.n, err = c.fs.readObject(ctx, c.src, func(r cluster.Reader, n *inode) (err error) {
		content.Close() // of an earlier run
		content = nil
		if u, err = c.fs.uploadFor(ctx, r, c.name, ActWriteObject); err != nil {
			return err
		}
		if err := c.o.SourceCond.checkSource(n.etag(), n.modified()); err != nil {
			return err
		}
		if c.p.size, err = rangeSize(c.off, c.length, n.size); err != nil {
			return err
		}
		if u.alg != "" {
			content, err = c.fs.openContent(ctx, r, n)
		}
		return err
	})
	if err != nil {
		return content, err
	}
	whole := c.p.size == c.n.size
	if whole && c.n.has(flagCRC) {
		c.p.crc, c.p.hasCRC = c.n.crc, true
	}
	if whole && len(c.n.object.sum) == md5.Size && c.n.object.nparts == 0 {
		copy(c.p.sum[:], c.n.object.sum)
	} else {
		c.p.sum = rangeSum(c.n, c.off, c.p.size)
	}
	if u.alg == "" || u.alg == ChecksumCRC64NVME && c.p.hasCRC {
		return content, nil
	}
	return content, c.hash(ctx, u.alg, content)
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
		return 0, tooLarge(MaxPartBytes)
	}
	return length, nil
}

// rangeSum stands for an MD5 of a range that nobody computed.
func rangeSum(n *inode, off, length int64) [md5.Size]byte {
	b := []byte("range")
	for _, v := range [...]uint64{uint64(n.ino), n.version, uint64(off), uint64(length)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return md5.Sum(b)
}

// hash computes what only reading the range can tell.
func (c *partCopy) hash(ctx context.Context, alg ChecksumAlgorithm, content *contentReader) error {
	h, err := alg.New()
	if err != nil {
		return err
	}
	sum, crc := md5.New(), crc64nvme.New()
	if err := hashContent(ctx, content, c.off, c.p.size, io.MultiWriter(h, sum, crc)); err != nil {
		return err
	}
	sum.Sum(c.p.sum[:0])
	c.p.crc, c.p.hasCRC = crc.Sum64(), true
	if alg != ChecksumCRC64NVME {
		c.p.checksums = []Checksum{{Algorithm: alg, Value: h.Sum(nil)}}
	}
	return nil
}

// copyBytes stores the range as if the client had sent it.
func (c *partCopy) copyBytes(ctx context.Context) error {
	ob, err := c.fs.GetObject(ctx, c.src.bucket, c.src.key, GetOptions{})
	if err != nil {
		return err
	}
	defer ob.Close()
	if ob.r.version != c.n.version || ob.Info.Ino != c.n.ino {
		return errSourceChanged
	}
	body := io.NewSectionReader(ob, c.off, c.p.size)
	info, err := c.fs.PutPart(ctx, c.name.key.bucket, c.name.key.key, c.name.upload, c.p.number, body, PutOptions{Size: c.p.size})
	if err != nil {
		return err
	}
	c.p.modifiedNS = info.Modified.UnixNano()
	c.p.checksums, c.p.hasCRC = nil, false
	for _, s := range info.Checksums {
		if s.Algorithm == ChecksumCRC64NVME {
			c.p.crc, c.p.hasCRC = binary.BigEndian.Uint64(s.Value), true
		} else {
			c.p.checksums = append(c.p.checksums, s)
		}
	}
	sum, err := parsePartETag(info.ETag)
	copy(c.p.sum[:], sum)
	return err
}
