package vfs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"ogw/cluster"
)

// A multipart upload is a content in the making: its number names the blobs
// of all its parts, and becomes the content of the object, so that completing
// moves no data.
//
//	'm' bucket, key, upload → uploadRecord   'M' upload → that key
//	'p' upload, number      → part; numbers from garbagePart on are parts that
//	                          were replaced and wait for the collector
//	'e' upload, offset      → extents: none until Complete, which writes them
//	                          in front of its last transaction if they are many
//
// Every change of a part reads the 'm' record, and every end of the upload
// removes it: what comes later fails and leaves nothing. A Complete that
// writes extents in several transactions counts up stage in the record, and
// each of them checks it; a part that arrives meanwhile counts it up too.

// uploadRecord is what key 'm' holds.
//
// Value: version byte, token (8 bytes), time of creation (8, Unix
// nanoseconds), uvarints uid, gid, mode and stage, the checksum algorithm, a
// byte for composite, content type, headers, user metadata, and since version
// 2 grants, the ID of the user who began it ("": anonymous, or of version 1), and
// a byte that tells whether what it overwrites stays its owner's.
type uploadRecord struct {
	id     ContentID // part of the key
	bucket Ino       // part of the key
	key    string    // part of the key

	token       [8]byte // random part of the upload ID
	initiatedNS int64
	owner       Cred // uid and gid only
	by          initiator
	mode        uint32
	stage       uint64 // counts attempts to complete in several transactions
	alg         ChecksumAlgorithm
	composite   bool
	meta        ObjectMeta
}

const uploadVersion = 2

func (u *uploadRecord) storeKey() []byte { return uploadKey(u.bucket, u.key, u.id) }

func (u *uploadRecord) encode() []byte {
	var e encoder
	e.byte(uploadVersion)
	e.b = append(e.b, u.token[:]...)
	e.fixed64(uint64(u.initiatedNS))
	e.uint(uint64(u.owner.UID))
	e.uint(uint64(u.owner.GID))
	e.uint(uint64(u.mode))
	e.uint(u.stage)
	e.str(string(u.alg))
	e.bool(u.composite)
	e.str(u.meta.ContentType)
	e.strMap(u.meta.Headers)
	e.strMap(u.meta.User)
	e.bytes(u.meta.Grants.encode())
	e.str(string(u.by.user))
	e.bool(u.by.keepsOwner)
	return e.b
}

func decodeUpload(k, v []byte) (*uploadRecord, error) {
	bucket, key, id, err := parseUploadKey(k)
	if err != nil {
		return nil, err
	}
	d := decoder{b: v, what: "upload"}
	version := d.byte()
	if version < 1 || version > uploadVersion {
		return nil, fmt.Errorf("%w: upload %d has format %d", ErrCorrupt, id, version)
	}
	u := &uploadRecord{id: id, bucket: bucket, key: key}
	binary.BigEndian.PutUint64(u.token[:], d.fixed64())
	u.initiatedNS = int64(d.fixed64())
	u.owner = Cred{UID: uint32(d.uint()), GID: uint32(d.uint())}
	u.mode, u.stage = uint32(d.uint()), d.uint()
	u.alg, u.composite = ChecksumAlgorithm(d.str()), d.byte() != 0
	u.meta = ObjectMeta{ContentType: d.str(), Headers: d.strMap(), User: d.strMap()}
	if version >= 2 {
		if u.meta.Grants, err = decodeGrants(d.bytes()); err != nil {
			return nil, err
		}
		u.by = initiator{UserID(d.str()), d.byte() != 0}
	}
	return u, d.end()
}

// idString is the upload ID that clients see: the content's number, which
// finds the upload, and the token, which nobody can guess.
func (u *uploadRecord) idString() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(u.id))
	return hex.EncodeToString(append(b, u.token[:]...))
}

func (u *uploadRecord) info() UploadInfo {
	return UploadInfo{
		ID: u.idString(), Key: u.key, Initiated: time.Unix(0, u.initiatedNS), Meta: u.meta,
		UID: u.owner.UID, ChecksumAlgorithm: u.alg, ChecksumComposite: u.composite,
	}
}

// parseUploadID is the inverse of idString.
func parseUploadID(s string) (id ContentID, token [8]byte, ok bool) {
	var b [16]byte
	if len(s) != 2*len(b) {
		return 0, token, false
	}
	if _, err := hex.Decode(b[:], []byte(s)); err != nil || hex.EncodeToString(b[:]) != s {
		return 0, token, false
	}
	copy(token[:], b[8:])
	return ContentID(binary.BigEndian.Uint64(b[:])), token, true
}

// uploadName names an upload as clients do.
type uploadName struct {
	key    objectKey
	upload string
}

func parseUploadName(bucket, key, upload string) (uploadName, error) {
	k, err := parseKey(bucket, key)
	return uploadName{k, upload}, err
}

// uploadBucket returns the directory that keeps the uploads of a bucket.
func uploadBucket(r cluster.Reader, bucket string) (Ino, error) {
	if bucket == "" {
		return RootIno, nil
	}
	e, err := bucketEntry(r, bucket)
	if err != nil {
		return 0, err
	}
	return e.ino, nil
}

// getUpload reads an upload; ErrNoSuchUpload, ErrNoSuchBucket.
func getUpload(r cluster.Reader, name *uploadName) (*uploadRecord, error) {
	bucket, err := uploadBucket(r, name.key.bucket)
	if err != nil {
		return nil, err
	}
	none := fmt.Errorf("upload %q of key %q: %w", name.upload, name.key.key, ErrNoSuchUpload)
	id, token, ok := parseUploadID(name.upload)
	if !ok {
		return nil, none
	}
	k := uploadKey(bucket, name.key.key, id)
	v, err := r.Get(k)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, none
	}
	u, err := decodeUpload(k, v)
	if err == nil && u.token != token {
		return nil, none
	}
	return u, err
}

// CreateUpload begins a multipart upload (S3 CreateMultipartUpload). alg is
// the checksum that the parts carry, "" for none; composite tells that the
// object's is made of those of the parts. CRC64NVME cannot be that,
// CRC32 and CRC32C can, all others must.
func (fs *FS) CreateUpload(ctx context.Context, bucket, key string, o PutOptions, alg ChecksumAlgorithm, composite bool) (UploadInfo, error) {
	ctx = fs.objectCtx(ctx, bucket, key)
	k, err := parseKey(bucket, key)
	if err != nil {
		return UploadInfo{}, err
	}
	if err := o.Meta.validate(); err != nil {
		return UploadInfo{}, err
	}
	if alg != "" && (alg.Size() == 0 || composite && alg == ChecksumCRC64NVME || !composite && !alg.combines()) {
		return UploadInfo{}, fmt.Errorf("checksum %s of that type: %w", alg, ErrInvalid)
	}
	id, err := fs.ids.take(ctx)
	if err != nil {
		return UploadInfo{}, err
	}
	u := &uploadRecord{id: ContentID(id), key: key, mode: o.Mode, alg: alg, composite: composite, meta: o.Meta}
	rand.Read(u.token[:])
	if s := subjectOf(ctx); s != nil {
		u.by.user, u.owner = s.User, *s.cred()
	}
	u.by.keepsOwner = subjectOf(ctx).keepsOwner()
	if o.Owner != nil {
		u.owner = Cred{UID: o.Owner.UID, GID: o.Owner.GID}
	}
	p := publication{key: &k, cond: &Preconditions{}, bucket: o.Bucket}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		at, err := locate(t, &k)
		if err != nil {
			return err
		}
		j := fs.judge(ctx, t, at.bucket(&k))
		if _, err := j.checkTarget(&p, &at); err != nil {
			return err
		}
		if u.bucket, err = uploadBucket(t, k.bucket); err != nil {
			return err
		}
		if err := o.keepBucket(t, u.bucket); err != nil {
			return err
		}
		u.initiatedNS = o.nowNS
		if err := t.Set(u.storeKey(), u.encode()); err != nil {
			return err
		}
		return t.Set(uploadIDKey(u.id), u.storeKey())
	})
	return u.info(), err
}

// keepBucket notes in the bucket that it has uploads, and makes it explicit
// if it was implied: with an upload in it, it must not vanish with its last
// object.
func (o *op) keepBucket(t cluster.Txn, ino Ino) error {
	n, err := getInode(t, ino)
	if err != nil || n.has(flagExplicit) && n.has(flagUploads) {
		return err
	}
	n.set(flagExplicit|flagUploads, true)
	return putInode(t, n)
}

// GetUpload describes an upload; ErrNoSuchUpload.
func (fs *FS) GetUpload(ctx context.Context, bucket, key, upload string) (UploadInfo, error) {
	u, err := fs.readUpload(ctx, bucket, key, upload)
	if err != nil {
		return UploadInfo{}, err
	}
	return u.info(), nil
}

func (fs *FS) readUpload(ctx context.Context, bucket, key, upload string) (*uploadRecord, error) {
	name, err := parseUploadName(bucket, key, upload)
	if err != nil {
		return nil, err
	}
	var u *uploadRecord
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		u, err = fs.uploadFor(ctx, r, &name, ActOwnUpload)
		return err
	})
	return u, err
}

// AbortUpload drops an upload and its parts.
func (fs *FS) AbortUpload(ctx context.Context, bucket, key, upload string) error {
	ctx = fs.objectCtx(ctx, bucket, key)
	name, err := parseUploadName(bucket, key, upload)
	if err != nil {
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		u, err := fs.uploadFor(ctx, t, &name, ActOwnUpload)
		if err != nil {
			return err
		}
		return o.abortUpload(t, u)
	})
}

func (o *op) abortUpload(t cluster.Txn, u *uploadRecord) error {
	if u.stage > 0 {
		// Extents that an attempt to complete wrote. Their entry is due a bit
		// later: both entries have the number of the upload.
		e := queueEntry{dueNS: o.nowNS + int64(o.fs.cfg.Grace) + 1, kind: queueContent, content: u.id}
		if err := t.Set(e.key(), e.encode()); err != nil {
			return err
		}
	}
	return o.endUpload(t, u)
}

// endUpload removes the records of an upload and leaves its parts to the
// collector.
func (o *op) endUpload(t cluster.Txn, u *uploadRecord) error {
	if err := t.Delete(u.storeKey()); err != nil {
		return err
	}
	if err := t.Delete(uploadIDKey(u.id)); err != nil {
		return err
	}
	return o.enqueue(t, queueEntry{kind: queueUpload, content: u.id})
}

const (
	// abortBatch is how many uploads of a bucket that went are aborted in one
	// transaction; each takes 4 writes.
	abortBatch = 25
)

// abortUploads aborts the uploads of a bucket that does not exist any more.
// What a failure leaves is out of reach of everybody; Check finds it.
func (fs *FS) abortUploads(ctx context.Context, bucket Ino) {
	for {
		var n int
		err := fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, o *op) error {
			list, err := uploadsOf(t, bucket, abortBatch)
			if err != nil {
				return err
			}
			n = len(list)
			for _, u := range list {
				if err := o.abortUpload(t, u); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			fs.log.Warn("uploads of a removed bucket are left", "bucket", uint64(bucket), "err", err)
		}
		if err != nil || n < abortBatch {
			return
		}
	}
}

func uploadsOf(r cluster.Reader, bucket Ino, limit int) ([]*uploadRecord, error) {
	var list []*uploadRecord
	prefix := uploadPrefix(bucket)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{Limit: limit}, func(k, v []byte) error {
		u, err := decodeUpload(k, v)
		list = append(list, u)
		return err
	})
	return list, err
}
