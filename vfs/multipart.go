package vfs

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// A multipart upload is a content in the making: its number names the blobs
// of all its parts, and becomes the content of the object, so that completing
// moves no data.
//
//	'm' bucket, key, upload → record.Upload   'M' upload → that key
//	'p' upload, number      → part; numbers from record.GarbagePart on are parts that
//	                          were replaced and wait for the collector
//	'e' upload, offset      → extents: none until Complete, which writes them
//	                          in front of its last transaction if they are many
//
// Every change of a part reads the 'm' record, and every end of the upload
// removes it: what comes later fails and leaves nothing. A Complete that
// writes extents in several transactions counts up stage in the record, and
// each of them checks it; a part that arrives meanwhile counts it up too.

func uploadInfo(u *record.Upload) UploadInfo {
	return UploadInfo{
		ID: keypath.UploadID(u), Key: u.Key, Initiated: time.Unix(0, u.InitiatedNS), Meta: u.Meta,
		UID: u.UID, ChecksumAlgorithm: u.Alg, ChecksumComposite: u.Composite,
	}
}

// CreateUpload begins a multipart upload (S3 CreateMultipartUpload). alg is
// the checksum that the parts carry, "" for none; composite tells that the
// object's is made of those of the parts. CRC64NVME cannot be that,
// CRC32 and CRC32C can, all others must.
func (fs *FS) CreateUpload(ctx context.Context, name ObjectName, o PutOptions, alg ChecksumAlgorithm, composite bool) (UploadInfo, error) {
	ctx = fs.objectCtx(ctx, name)
	k, err := parseKey(name)
	if err != nil {
		return UploadInfo{}, err
	}
	if err := validateMeta(&o.Meta); err != nil {
		return UploadInfo{}, err
	}
	if alg != "" && (alg.Size() == 0 || composite && alg == ChecksumCRC64NVME || !composite && !checksum.Combines(alg)) {
		return UploadInfo{}, fmt.Errorf("checksum %s of that type: %w", alg, ErrInvalid)
	}
	id, err := fs.ids.Take(ctx)
	if err != nil {
		return UploadInfo{}, err
	}
	u := &record.Upload{ID: ContentID(id), Key: name.Key, Mode: o.Mode, Alg: alg, Composite: composite, Meta: o.Meta}
	rand.Read(u.Token[:])
	s, owner := rights.SubjectOf(ctx), o.Owner
	if s != nil {
		u.By.User = s.User
	}
	if owner == nil {
		owner = rights.CredOf(s)
	}
	u.By.KeepsOwner, u.UID, u.GID = rights.KeepsOwner(s), owner.UID(), owner.GID()
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
		if u.Bucket, err = keypath.UploadBucket(t, k.Bucket); err != nil {
			return err
		}
		if err := o.keepBucket(t, u.Bucket); err != nil {
			return err
		}
		u.InitiatedNS = o.nowNS
		if err := t.Set(u.StoreKey(), u.Encode()); err != nil {
			return err
		}
		return t.Set(record.UploadIDKey(u.ID), u.StoreKey())
	})
	return uploadInfo(u), err
}

// keepBucket notes in the bucket that it has uploads, and makes it explicit
// if it was implied: with an upload in it, it must not vanish with its last
// object.
func (o *op) keepBucket(t cluster.Txn, ino Ino) error {
	n, err := record.GetInode(t, ino)
	if err != nil || n.Has(record.FlagExplicit) && n.Has(record.FlagUploads) {
		return err
	}
	n.Set(record.FlagExplicit|record.FlagUploads, true)
	return record.PutInode(t, n)
}

// GetUpload describes an upload; ErrNoSuchUpload.
func (fs *FS) GetUpload(ctx context.Context, name UploadName) (UploadInfo, error) {
	u, err := fs.readUpload(ctx, name)
	if err != nil {
		return UploadInfo{}, err
	}
	return uploadInfo(u), nil
}

func (fs *FS) readUpload(ctx context.Context, name UploadName) (*record.Upload, error) {
	k, err := parseUploadName(name)
	if err != nil {
		return nil, err
	}
	var u *record.Upload
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		u, err = fs.rights.Upload(ctx, r, &k, ActOwnUpload)
		return err
	})
	return u, err
}

// AbortUpload drops an upload and its parts.
func (fs *FS) AbortUpload(ctx context.Context, name UploadName) error {
	ctx = fs.objectCtx(ctx, name.ObjectName)
	k, err := parseUploadName(name)
	if err != nil {
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		u, err := fs.rights.Upload(ctx, t, &k, ActOwnUpload)
		if err != nil {
			return err
		}
		return o.abortUpload(t, u)
	})
}
