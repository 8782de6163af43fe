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

// DecodeUser1 reads a user of format 1: version byte, uvarints uid and gid, a
// byte for admin, the number of keys, and for each its ID, its secret and its
// creation. The name is in the key.
func DecodeUser1(name string, b []byte) (User, error) {
	d := Decoder{B: b, What: "user"}
	if v := d.Byte(); v != UserVersion1 {
		return User{}, fmt.Errorf("%w: user %q has format %d", fserr.ErrCorrupt, name, v)
	}
	u := User{Name: name, UID: uint32(d.Uint()), GID: uint32(d.Uint()), Admin: d.Byte() != 0}
	n := d.Count()
	for i := 0; i < n && d.Err == nil; i++ {
		u.Keys = append(u.Keys, AccessKey{d.Str(), d.Str(), d.Int()})
	}
	return u, d.End()
}

func InodeOfPair(k, v []byte) (*Inode, error) {
	if len(k) != Key1Bytes {
		return nil, fmt.Errorf("%w: inode key %x", fserr.ErrCorrupt, k)
	}
	return DecodeInode(Ino(binary.BigEndian.Uint64(k[1:])), slices.Clone(v))
}
