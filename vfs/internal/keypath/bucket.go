package keypath

import (
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

// BucketInode reads the directory of a bucket; ErrNoSuchBucket.
func BucketInode(r cluster.Reader, name string) (*record.Inode, error) {
	if !naming.ValidBucket(name) {
		return nil, fmt.Errorf("bucket %q: %w", name, fserr.ErrNoSuchBucket)
	}
	e, err := BucketEntry(r, name)
	if err != nil {
		return nil, err
	}
	return record.GetInode(r, e.Ino)
}

// BucketGrants reads the grants of the bucket whose directory ino is.
func BucketGrants(r cluster.Reader, ino record.Ino) (record.Grants, error) {
	b, err := record.GetBucketAttrs(r, ino)
	if err != nil {
		return nil, err
	}
	return record.DecodeGrants(b.Get(record.GrantsAttr))
}
