package vfs

import (
	"bytes"
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// BucketConfig returns what SetBucketConfig stored under a name, such as
// "tagging", to who may configure the bucket; nil if there is none. The store
// does not look inside. ErrNoSuchBucket, ErrAccess.
func (fs *FS) BucketConfig(ctx context.Context, bucket, name string) ([]byte, error) {
	var value []byte
	err := fs.peek(ctx, func(r cluster.Reader) error {
		value = nil
		_, n, err := fs.rights.Bucket(ctx, r, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		b, err := record.GetBucket(r, n.Ino)
		value = b[record.ConfigPrefix+name]
		return err
	})
	return bytes.Clone(value), err // others may hold what the store returned
}

// SetBucketConfig stores configuration under a name; nil removes it.
// ErrNoSuchBucket, ErrAccess, ErrAttrTooLarge.
func (fs *FS) SetBucketConfig(ctx context.Context, bucket, name string, value []byte) error {
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		_, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		return o.setBucketAttr(t, n, record.ConfigPrefix+name, value)
	})
}
