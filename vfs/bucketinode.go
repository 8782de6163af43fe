package vfs

import (
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

func bucketInfo(name string, n *record.Inode) BucketInfo {
	return BucketInfo{Name: name, Ino: n.Ino, Created: time.Unix(0, n.BtimeNS), UID: n.UID, GID: n.GID}
}

// bucketInode reads the directory of a bucket; ErrNoSuchBucket.
func bucketInode(r cluster.Reader, name string) (*record.Inode, error) {
	if !ValidBucketName(name) {
		return nil, fmt.Errorf("bucket %q: %w", name, ErrNoSuchBucket)
	}
	e, err := bucketEntry(r, name)
	if err != nil {
		return nil, err
	}
	return record.GetInode(r, e.Ino)
}

// bucketGrants reads the grants of the bucket whose directory ino is.
func bucketGrants(r cluster.Reader, ino Ino) (Grants, error) {
	b, err := record.GetBucket(r, ino)
	if err != nil {
		return nil, err
	}
	return record.DecodeGrants(b[record.GrantsAttr])
}
