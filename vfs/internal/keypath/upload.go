package keypath

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// UploadID is the upload ID that clients see: the content's number, which
// finds the upload, and the token, which nobody can guess.
func UploadID(u *record.Upload) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(u.ID))
	return hex.EncodeToString(append(b, u.Token[:]...))
}

// ParseUploadID is the inverse of idString.
func ParseUploadID(s string) (id record.ContentID, token [8]byte, ok bool) {
	var b [16]byte
	if len(s) != 2*len(b) {
		return 0, token, false
	}
	if _, err := hex.Decode(b[:], []byte(s)); err != nil || hex.EncodeToString(b[:]) != s {
		return 0, token, false
	}
	copy(token[:], b[8:])
	return record.ContentID(binary.BigEndian.Uint64(b[:])), token, true
}

// UploadKey is the name of an upload, with that of its object split.
type UploadKey struct {
	Object Key
	ID     string
}

func ParseUpload(bucket, key, id string) (UploadKey, error) {
	k, err := Parse(bucket, key)
	return UploadKey{k, id}, err
}

// UploadBucket returns the directory that keeps the uploads of a bucket.
func UploadBucket(r cluster.Reader, bucket string) (record.Ino, error) {
	if bucket == "" {
		return record.RootIno, nil
	}
	e, err := BucketEntry(r, bucket)
	if err != nil {
		return 0, err
	}
	return e.Ino, nil
}

// GetUpload reads an upload; ErrNoSuchUpload, ErrNoSuchBucket.
func GetUpload(r cluster.Reader, name *UploadKey) (*record.Upload, error) {
	bucket, err := UploadBucket(r, name.Object.Bucket)
	if err != nil {
		return nil, err
	}
	id, token, ok := ParseUploadID(name.ID)
	if !ok {
		return nil, name.none()
	}
	k := record.UploadKey(bucket, name.Object.Key, id)
	v, err := r.Get(k)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, name.none()
	}
	u, err := record.DecodeUpload(k, v)
	if err == nil && u.Token != token {
		return nil, name.none()
	}
	return u, err
}

func (name *UploadKey) none() error {
	return fmt.Errorf("upload %q of key %q: %w", name.ID, name.Object.Key, fserr.ErrNoSuchUpload)
}

// GetCompleted reads what became of an upload that was completed, and its bucket;
// ErrNoSuchUpload, ErrNoSuchBucket.
func GetCompleted(r cluster.Reader, name *UploadKey) (*record.Completed, record.Ino, error) {
	bucket, err := UploadBucket(r, name.Object.Bucket)
	if err != nil {
		return nil, 0, err
	}
	u := record.Upload{Bucket: bucket, Key: name.Object.Key}
	var ok bool
	if u.ID, u.Token, ok = ParseUploadID(name.ID); !ok {
		return nil, 0, name.none()
	}
	v, err := r.Get(record.CompletedKey(u.ID))
	if err != nil {
		return nil, 0, err
	}
	c, ok := record.DecodeCompleted(v)
	if !ok || c.Digest != u.Digest() {
		return nil, 0, name.none()
	}
	return &c, bucket, nil
}

// UploadsOf returns uploads of a bucket, at most limit.
func UploadsOf(r cluster.Reader, bucket record.Ino, limit int) ([]*record.Upload, error) {
	var list []*record.Upload
	prefix := record.UploadPrefix(bucket)
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{Limit: limit}, func(k, v []byte) error {
		u, err := record.DecodeUpload(k, v)
		list = append(list, u)
		return err
	})
	return list, err
}
