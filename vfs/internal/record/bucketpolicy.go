package record

import (
	"crypto/sha256"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// BucketPolicy is what key 'y' holds: the policy of a bucket. It has a record of its
// own, so that who goes by the bucket's attributes does not read it: they hold its
// digest, by which the compiled policy is found (PolicyAttr).
//
// Value: version byte; the name that the bucket had when the policy was set, which
// the policy's resources begin with; then the text.
type BucketPolicy struct {
	Bucket string
	Text   []byte
}

const bucketPolicyVersion = 1

// PolicyAttr is the attribute of a bucket that holds the digest of its policy.
const PolicyAttr = "policy"

// PolicyDigest distinguishes policies.
type PolicyDigest [16]byte

// Encode returns the stored form.
func (p *BucketPolicy) Encode() []byte {
	var e Encoder
	e.Byte(bucketPolicyVersion)
	e.Str(p.Bucket)
	e.Bytes(p.Text)
	return e.B
}

// Digest returns the digest of the stored form.
func (p *BucketPolicy) Digest() (d PolicyDigest) {
	sum := sha256.Sum256(p.Encode())
	copy(d[:], sum[:])
	return d
}

// GetBucketPolicy reads the policy of a bucket; ErrCorrupt if there is none.
func GetBucketPolicy(r cluster.Reader, ino Ino) (p BucketPolicy, err error) {
	v, err := r.Get(PolicyKey(ino))
	if err != nil {
		return p, err
	}
	return DecodeBucketPolicy(v)
}

// DecodeBucketPolicy reads what Encode wrote.
func DecodeBucketPolicy(v []byte) (p BucketPolicy, err error) {
	d := Decoder{B: v, What: "bucket policy"}
	if version := d.Byte(); version != bucketPolicyVersion {
		return p, fmt.Errorf("%w: bucket policy has format %d", fserr.ErrCorrupt, version)
	}
	p.Bucket = d.Str()
	p.Text = d.Bytes()
	return p, d.End()
}
