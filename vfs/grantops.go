package vfs

import (
	"context"

	"ogw/cluster"
)

// BucketGrants describes a bucket and returns what its owner granted;
// ErrNoSuchBucket.
func (fs *FS) BucketGrants(ctx context.Context, name string) (BucketInfo, Grants, error) {
	var info BucketInfo
	var g Grants
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := bucketInode(r, name)
		if err != nil {
			return err
		}
		info = bucketInfo(name, n)
		g, err = bucketGrants(r, n.ino)
		return err
	})
	return info, g, err
}

// SetBucketGrants replaces what the owner of a bucket granted.
func (fs *FS) SetBucketGrants(ctx context.Context, name string, g Grants) error {
	if err := g.validate(); err != nil {
		return err
	}
	return fs.SetBucketAttr(ctx, name, attrGrants, g.encode())
}

// SetObjectGrants replaces what the owner of an object granted (ObjectMeta.Grants
// tells), without touching content and ETag; ErrNoSuchKey.
func (fs *FS) SetObjectGrants(ctx context.Context, bucket, key string, g Grants) error {
	if err := g.validate(); err != nil {
		return err
	}
	return fs.changeObject(ctx, bucket, key, func(n *inode) { n.setGrants(g) })
}
