package record

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Bucket is what key 'b' holds: attributes by name.
//
// Value: version byte, the number of attributes, and for each its name and
// its value.
type Bucket map[string][]byte

const bucketVersion = 1

// Names of attributes of buckets.
const (
	// GrantsAttr holds the grants (EncodeGrants).
	GrantsAttr = "grants"
	// OwnershipAttr holds who owns what is written, in one byte.
	OwnershipAttr = "ownership"
	// ConfigPrefix begins the names of those that hold configuration.
	ConfigPrefix = "config."
)

func (b Bucket) Encode() []byte {
	out := binary.AppendUvarint([]byte{bucketVersion}, uint64(len(b)))
	for _, name := range slices.Sorted(maps.Keys(b)) {
		out = appendBytes(appendStr(out, name), b[name])
	}
	return out
}

func DecodeBucket(v []byte) (Bucket, error) {
	b := make(Bucket)
	if v == nil {
		return b, nil
	}
	d := Decoder{B: v, What: "bucket"}
	if version := d.Byte(); version != bucketVersion {
		return nil, fmt.Errorf("%w: bucket record has format %d", fserr.ErrCorrupt, version)
	}
	n := d.Count()
	for i := 0; i < n && d.Err == nil; i++ {
		name := d.Str()
		b[name] = d.Bytes()
	}
	return b, d.End()
}

func GetBucket(r cluster.Reader, ino Ino) (Bucket, error) {
	v, err := r.Get(BucketKey(ino))
	if err != nil {
		return nil, err
	}
	return DecodeBucket(v)
}
