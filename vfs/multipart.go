package vfs

import (
	"context"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/internal/uploads"
)

func (fs *FS) newUploads() *uploads.Uploads {
	return &uploads.Uploads{
		Namespace: uploadSpace{fs}, KV: fs.kv, Rights: &fs.rights, Contents: fs.contents, Bodies: fs.bodies,
		Log: fs.log,
	}
}

// uploadSpace is the namespace as uploads see it.
type uploadSpace struct{ fs *FS }

// View implements uploads.Namespace.
func (s uploadSpace) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return s.fs.view(ctx, fn)
}

// Update implements uploads.Namespace.
func (s uploadSpace) Update(ctx context.Context, fn func(t *uploads.Txn) error) error {
	return s.fs.update(ctx, func(t cluster.Txn, o *op) error { return fn(o.uploading(t)) })
}

// ReadObject implements uploads.Namespace.
func (s uploadSpace) ReadObject(ctx context.Context, k *keypath.Key, fn func(cluster.Reader, *record.Inode) error) (*record.Inode, error) {
	return s.fs.readObject(ctx, k, fn)
}

func (o *op) uploading(t cluster.Txn) *uploads.Txn {
	return &uploads.Txn{Txn: t, NowNS: o.nowNS, Contents: &o.contents, NewID: o.newID}
}

// CreateUpload begins a multipart upload (S3 CreateMultipartUpload). alg is
// the checksum that the parts carry, "" for none; composite reports whether the
// object's is made of those of the parts. CRC64NVME cannot be that,
// CRC32 and CRC32C can, all others must.
func (fs *FS) CreateUpload(ctx context.Context, name ObjectName, o PutOptions, alg ChecksumAlgorithm, composite bool) (UploadInfo, error) {
	ctx = fs.objectCtx(ctx, name)
	k, err := parseKey(name)
	if err != nil {
		return UploadInfo{}, err
	}
	if err := fs.validateMeta(&o.Meta); err != nil {
		return UploadInfo{}, err
	}
	if alg != "" && (alg.Size() == 0 || composite && alg == ChecksumCRC64NVME || !composite && !checksum.Combines(alg)) {
		return UploadInfo{}, fmt.Errorf("checksum %s of that type: %w", alg, ErrInvalid)
	}
	id, err := fs.ids.Take(ctx)
	if err != nil {
		return UploadInfo{}, err
	}
	owner := o.Owner
	if owner == nil {
		owner = rights.CredOf(rights.SubjectOf(ctx))
	}
	u := uploads.New(ctx, id, owner)
	u.Key, u.Mode, u.Alg, u.Composite, u.Meta = name.Key, o.Mode, alg, composite, o.Meta
	p := publication{key: &k, cond: &Preconditions{}, meta: &o.Meta, bucket: o.Bucket}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		at, err := keypath.Locate(t, &k)
		if err != nil {
			return err
		}
		j := fs.rights.OnKey(ctx, t, &k, &at)
		if _, err := checkTarget(&j, &p, &at); err != nil {
			return err
		}
		return uploads.Begin(o.uploading(t), u, k.Bucket)
	})
	return uploads.InfoOf(u), fs.tooDeep(err, &k)
}

// GetUpload describes an upload; ErrNoSuchUpload.
func (fs *FS) GetUpload(ctx context.Context, name UploadName) (UploadInfo, error) {
	k, err := parseUploadName(name)
	if err != nil {
		return UploadInfo{}, err
	}
	u, err := fs.multipart.Find(ctx, &k, ActOwnUpload)
	if err != nil {
		return UploadInfo{}, err
	}
	return uploads.InfoOf(u), nil
}

// AbortUpload drops an upload and its parts.
func (fs *FS) AbortUpload(ctx context.Context, name UploadName) error {
	k, err := parseUploadName(name)
	if err != nil {
		return err
	}
	return fs.multipart.Abort(fs.objectCtx(ctx, name.ObjectName), &k)
}

// PutPart stores a part, durably, replacing an earlier one of that number
// (S3 UploadPart).
func (fs *FS) PutPart(ctx context.Context, name UploadName, number int, body io.Reader, o PutOptions) (PartInfo, error) {
	k, err := parsePartName(name, number)
	if err != nil {
		return PartInfo{}, err
	}
	return fs.multipart.Put(fs.objectCtx(ctx, name.ObjectName), &k, number, o.body(body, MaxPartBytes), o.Stated)
}

func parsePartName(name UploadName, number int) (keypath.UploadKey, error) {
	if number < 1 || number > MaxParts {
		return keypath.UploadKey{}, fmt.Errorf("part %d, 1 to %d are allowed: %w", number, MaxParts, ErrBadPartNumber)
	}
	return parseUploadName(name)
}

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
	k, err := parsePartName(name, number)
	if err != nil {
		return PartInfo{}, err
	}
	src, err := parseKey(from.ObjectName)
	if err != nil {
		return PartInfo{}, err
	}
	source := uploads.Source{Key: src, Off: from.Off, Length: from.Length, Cond: from.Cond}
	return fs.multipart.Copy(fs.objectCtx(ctx, name.ObjectName), &k, number, &source)
}

// ListParts returns up to limit parts with numbers greater than after, and
// whether there are more.
func (fs *FS) ListParts(ctx context.Context, name UploadName, after, limit int) ([]PartInfo, bool, error) {
	k, err := parseUploadName(name)
	if err != nil {
		return nil, false, err
	}
	return fs.multipart.List(ctx, &k, after, limit)
}

// CompleteUpload publishes the parts as one object, atomically; it is
// metadata only. Checks order, sizes, ETags and checksums of the parts (S3
// CompleteMultipartUpload). Asked again within a day after it succeeded, it succeeds, whatever
// became of the object, and returns key, ETag, size, time and checksums alone.
func (fs *FS) CompleteUpload(ctx context.Context, name UploadName, o CompleteOptions) (ObjectInfo, error) {
	k, err := parseUploadName(name)
	if err != nil {
		return ObjectInfo{}, err
	}
	c := completing{fs: fs, key: &k.Object, cond: &o.Cond}
	if err := fs.multipart.Complete(fs.objectCtx(ctx, name.ObjectName), &k, &o, &c); err != nil {
		return ObjectInfo{}, err
	}
	return c.info, nil
}

// completing publishes what parts make.
type completing struct {
	fs   *FS
	key  *keypath.Key
	cond *Preconditions
	p    publication // of one attempt
	info ObjectInfo
}

// Begin implements uploads.Publisher.
func (c *completing) Begin(ctx context.Context, u *record.Upload) error {
	c.p = publication{key: c.key, cond: c.cond, meta: &u.Meta, owner: NewCred(u.UID, u.GID), mode: u.Mode, keep: true,
		accepted: true, keepOwner: u.By.KeepsOwner}
	if objects.NoConditions(c.cond) {
		return nil
	}
	return c.fs.precheck(ctx, &c.p)
}

// Publish implements uploads.Publisher.
func (c *completing) Publish(ctx context.Context, assemble func(t *uploads.Txn) (uploads.Assembled, error)) (err error) {
	c.p.make = func(t cluster.Txn, o *op, _ *keypath.Place) (*record.Inode, error) {
		made, err := assemble(o.uploading(t))
		c.p.content, c.p.object, c.p.refs = made.Content, made.Object, made.Refs
		return nil, err
	}
	c.info, err = c.fs.publish(ctx, &c.p)
	return err
}

// Answer implements uploads.Publisher.
func (c *completing) Answer(done *record.Completed) {
	c.info = ObjectInfo{Key: c.key.Key, Size: done.Size, ETag: objects.ETagOfParts(done.Sum[:], done.NParts),
		Modified: TimeNS(done.TimeNS).Date(), Checksums: done.Checksums}
}
