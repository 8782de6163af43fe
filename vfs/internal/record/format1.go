package record

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ogw/vfs/internal/fserr"
)

// What stores of format 1 hold, for the conversion alone.
const (
	UserVersion1 = 1
	// AclAttr1 is the bucket attribute, and AclHeader1 the header of objects
	// and uploads, that held an ACL as JSON.
	AclAttr1   = "s3.acl"
	AclHeader1 = "X-Ogw-Acl"
	// Founder1 is the name that the first user had.
	Founder1 = "root"
)

func InodeOfPair(k, v []byte) (*Inode, error) {
	if len(k) != Key1Bytes {
		return nil, fmt.Errorf("%w: inode key %x", fserr.ErrCorrupt, k)
	}
	return DecodeInode(Ino(binary.BigEndian.Uint64(k[1:])), slices.Clone(v))
}
