package bucketconf

import (
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// maxAttrBytes bounds the attributes of a bucket together: several
// policies of S3's limit (20 KiB), within every engine's transaction.
const maxAttrBytes = 256 << 10

// Set stores an attribute of the bucket n; nil removes it. ErrAttrTooLarge.
func Set(t cluster.Txn, n *record.Inode, attr string, value []byte) error {
	if err := perm.FlagsOf(n).CheckFree(); err != nil {
		return err
	}
	b, err := record.GetBucket(t, n.Ino)
	if err != nil {
		return err
	}
	if value == nil {
		delete(b, attr)
	} else {
		b[attr] = value
	}
	if len(b) == 0 {
		return t.Delete(record.BucketKey(n.Ino))
	}
	v := b.Encode()
	if len(v) > maxAttrBytes {
		return fmt.Errorf("attributes of bucket %q with %d bytes: %w", n.Name, len(v), fserr.ErrAttrTooLarge)
	}
	return t.Set(record.BucketKey(n.Ino), v)
}
