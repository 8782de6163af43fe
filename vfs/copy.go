package vfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/bodyhash"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/internal/xattr"
)

// maxCopyAttempts bounds how often a copy begins anew because its source
// changed while its checksum was computed.
const maxCopyAttempts = 8

// CopyObject copies by reference, attributes included (S3 CopyObject). A copy
// onto itself replaces the metadata only.
func (fs *FS) CopyObject(ctx context.Context, src, dst ObjectName, o CopyOptions) (ObjectInfo, error) {
	ctx = fs.objectCtx(ctx, dst)
	from, err := parseKey(src)
	if err != nil {
		return ObjectInfo{}, err
	}
	to, err := parseKey(dst)
	if err != nil {
		return ObjectInfo{}, err
	}
	if err := fs.validateMeta(&o.Meta); err != nil {
		return ObjectInfo{}, err
	}
	for range maxCopyAttempts {
		c := copying{fs: fs, src: &from, o: &o}
		if err := c.prepare(ctx); err != nil {
			return ObjectInfo{}, err
		}
		info, err := c.run(ctx, &to)
		if !errors.Is(err, errSourceChanged) {
			return info, err
		}
	}
	return ObjectInfo{}, fmt.Errorf("source %q keeps changing: %w", src.Key, ErrConflict)
}

var errSourceChanged = fmt.Errorf("copy source changed: %w", ErrConflict)

// copying is one attempt to copy an object.
type copying struct {
	fs   *FS
	src  *keypath.Key
	o    *CopyOptions
	n    *record.Inode // of the source, as prepare saw it
	sum  *Checksum     // computed over it, if it had to be
	meta ObjectMeta
}

// prepare flushes the source and computes the checksum that was asked for.
func (c *copying) prepare(ctx context.Context) error {
	alg := c.o.ChecksumAlgorithm
	var rd *content.Reader
	n, err := c.fs.readObject(ctx, c.src, func(r cluster.Reader, n *record.Inode) (err error) {
		rd.Close() // of an earlier run
		rd = nil
		if err := c.check(n); err != nil {
			return err
		}
		if alg != "" && alg != ChecksumCRC64NVME && !hasWhole(&n.Object, alg) || alg == ChecksumCRC64NVME && !n.Has(record.FlagCRC) {
			rd, err = c.fs.contents.Open(ctx, r, n)
		}
		return err
	})
	if rd != nil {
		defer rd.Close()
	}
	if err != nil {
		return err
	}
	c.n = n
	if rd != nil {
		h, err := alg.New()
		if err != nil {
			return err
		}
		if err := bodyhash.Feed(ctx, rd, 0, n.Size, h); err != nil {
			return err
		}
		c.sum = &Checksum{Algorithm: alg, Value: h.Sum(nil)}
	}
	return nil
}

// check asks whether the source is the one that shall be copied.
func (c *copying) check(n *record.Inode) error {
	etag := objects.ETagOf(n)
	if err := objects.CheckSource(&c.o.SourceCond, etag, modifiedAt(n)); err != nil {
		return err
	}
	if want := c.o.SourceETag; want != "" && want != etag {
		return fmt.Errorf("source %q is another one: %w", c.src.Key, ErrConflict)
	}
	if want := c.o.SourceTags; want != nil && *want != n.Object.Tags() {
		return fmt.Errorf("source %q has other tags: %w", c.src.Key, ErrConflict)
	}
	return nil
}

// hasWhole reports whether there is a checksum of the whole object.
func hasWhole(o *record.Object, alg ChecksumAlgorithm) bool {
	return slices.ContainsFunc(o.Checksums, wholeOf(alg))
}

func wholeOf(alg ChecksumAlgorithm) func(Checksum) bool {
	return func(c Checksum) bool { return c.Algorithm == alg && c.Parts == 0 }
}

// checksumsOf gives the copy the checksums of its source, or the one that was
// asked for, besides which the parts' mean nothing.
func (c *copying) checksumsOf(p *publication, from *record.Inode) {
	p.object.Checksums = slices.Clone(from.Object.Checksums)
	alg := c.o.ChecksumAlgorithm
	if alg == "" {
		return
	}
	whole := wholeOf(alg)
	p.object.Checksums = slices.DeleteFunc(p.object.Checksums, func(s Checksum) bool { return !whole(s) })
	if c.sum != nil && alg != ChecksumCRC64NVME {
		p.object.Checksums = append(p.object.Checksums, *c.sum)
	}
	p.object.Parts = slices.Clone(from.Object.Parts)
	for i := range p.object.Parts {
		p.object.Parts[i].Checksum = nil
	}
}

// run copies in one transaction.
func (c *copying) run(ctx context.Context, dst *keypath.Key) (ObjectInfo, error) {
	id, err := c.fs.ids.Take(ctx)
	if err != nil {
		return ObjectInfo{}, err
	}
	p := publication{key: dst, cond: &c.o.Cond, meta: &c.meta, owner: c.o.Owner, mode: c.o.Mode, bucket: c.o.Bucket}
	p.writer(rights.SubjectOf(ctx))
	p.make = func(t cluster.Txn, o *op, at *keypath.Place) (self *record.Inode, err error) {
		p.content = nil
		from, err := c.source(o.ctx, t)
		if err != nil {
			return nil, err
		}
		p.object = record.Object{Sum: from.Object.Sum, NParts: from.Object.NParts, Parts: from.Object.Parts}
		c.checksumsOf(&p, from)
		crc := c.sum != nil && c.sum.Algorithm == ChecksumCRC64NVME
		// With other names it is written through only for who owns it under them.
		mine := p.keepOwner || p.owner.Is(from.UID)
		if at.Entry != nil && at.Entry.Ino == from.Ino && (from.Nlink <= 1 || c.sameKey(dst) && mine) {
			if crc {
				from.CRC = binary.BigEndian.Uint64(c.sum.Value)
				from.Set(record.FlagCRC, true)
			}
			return from, nil
		}
		if p.content, err = o.contents.Clone(t, from, ContentID(id)); err == nil && crc {
			p.content.CRC, p.content.NoCRC = binary.BigEndian.Uint64(c.sum.Value), false
		}
		return nil, err
	}
	if !objects.NoConditions(&c.o.Cond) {
		if err := c.fs.precheck(ctx, &p); err != nil {
			return ObjectInfo{}, err
		}
	}
	return c.fs.publish(ctx, &p)
}

func (c *copying) sameKey(dst *keypath.Key) bool {
	return nameOf(c.src) == nameOf(dst)
}

// source reads the source and fills what the copy takes from it.
func (c *copying) source(ctx context.Context, t cluster.Txn) (*record.Inode, error) {
	judge, from, err := c.fs.rights.JudgedObject(ctx, t, c.src, ActReadObject)
	if err == nil && (!c.o.ReplaceMeta || c.o.SourceTags != nil) {
		err = judge.ReadsTags(from)
	}
	if err != nil {
		return nil, err
	}
	if err := c.check(from); err != nil {
		return nil, err
	}
	if c.sum != nil && (from.Ino != c.n.Ino || from.Version != c.n.Version) {
		return nil, errSourceChanged
	}
	c.meta = c.o.Meta
	if !c.o.ReplaceMeta {
		c.meta = ObjectMeta{ContentType: from.Object.ContentType, Headers: from.Object.Headers, Grants: c.o.Meta.Grants}
		if c.meta.ContentType == "" && from.IsRegular() {
			c.meta.ContentType = naming.ContentType(c.src.Key)
		}
	}
	if (!c.o.ReplaceMeta || c.o.KeepUser) && from.Has(record.FlagXattrs) {
		if c.meta.User, _, err = xattr.UserMeta(t, from.Ino, math.MaxInt); err != nil {
			return nil, err
		}
	}
	return from, nil
}
