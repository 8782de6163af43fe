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
	d, n, err := bucketDecoder(v)
	if err != nil {
		return nil, err
	}
	for i := 0; i < n && d.Err == nil; i++ {
		name := d.Str()
		b[name] = d.Bytes()
	}
	return b, d.End()
}

// bucketDecoder reads how many attributes follow.
func bucketDecoder(v []byte) (d Decoder, n int, err error) {
	d = Decoder{B: v, What: "bucket"}
	if version := d.Byte(); version != bucketVersion {
		return d, 0, fmt.Errorf("%w: bucket record has format %d", fserr.ErrCorrupt, version)
	}
	n = d.Count()
	return d, n, d.Err
}

func GetBucket(r cluster.Reader, ino Ino) (Bucket, error) {
	v, err := r.Get(BucketKey(ino))
	if err != nil {
		return nil, err
	}
	return DecodeBucket(v)
}

// BucketAttrs is the record of a bucket as it was read, for who wants a few attributes
// of it: nothing is allocated. The zero value has none.
type BucketAttrs struct {
	n    int
	list []byte // n names with their values
}

// GetBucketAttrs reads the record of a bucket, none as one without attributes.
func GetBucketAttrs(r cluster.Reader, ino Ino) (a BucketAttrs, err error) {
	v, err := r.Get(BucketKey(ino))
	if v == nil || err != nil {
		return a, err
	}
	d, n, err := bucketDecoder(v)
	if err != nil {
		return a, err
	}
	a = BucketAttrs{n, d.B}
	for range n {
		d.Bytes()
		d.Bytes()
	}
	return a, d.End()
}

// Get returns the value of an attribute, nil if there is none.
func (a BucketAttrs) Get(name string) []byte {
	d := Decoder{B: a.list}
	for range a.n {
		if is, v := d.Bytes(), d.Bytes(); string(is) == name {
			return v
		}
	}
	return nil
}
