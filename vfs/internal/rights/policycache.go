package rights

import (
	"fmt"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

const (
	// policyCacheBytes bounds the compiled policies. One of the largest size takes some
	// 1.7 times its text, so 700 of those fit, and tens of thousands of usual ones.
	policyCacheBytes = 24 << 20
	// policyEntryBytes is what an entry takes beside.
	policyEntryBytes = 256
)

// policyCache keeps compiled policies. A digest stands for one text for good, so no
// entry is ever wrong. The zero value is ready.
type policyCache struct {
	mu      sync.RWMutex
	entries map[record.PolicyDigest]*BucketPolicy
	bytes   int
}

// get returns the policy of a bucket, whose digest that is.
func (c *policyCache) get(r cluster.Reader, ino record.Ino, digest record.PolicyDigest) (*BucketPolicy, error) {
	c.mu.RLock()
	p := c.entries[digest]
	c.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	stored, err := record.GetBucketPolicy(r, ino)
	if err != nil {
		return nil, err
	}
	if p, err = CompilePolicy(&stored); err != nil {
		return nil, fmt.Errorf("%w: policy of bucket %d: %w", fserr.ErrCorrupt, ino, err)
	}
	c.put(stored.Digest(), p)
	return p, nil
}

// put keeps a policy. When there is no room, others go, whichever come first.
func (c *policyCache) put(digest record.PolicyDigest, p *BucketPolicy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[record.PolicyDigest]*BucketPolicy)
	}
	if _, ok := c.entries[digest]; ok {
		return
	}
	cost := p.Bytes() + policyEntryBytes
	for d, old := range c.entries {
		if c.bytes+cost <= policyCacheBytes {
			break
		}
		delete(c.entries, d)
		c.bytes -= old.Bytes() + policyEntryBytes
	}
	c.entries[digest] = p
	c.bytes += cost
}

// BucketPolicy is the policy of a bucket, compiled.
type BucketPolicy struct {
	*policy.Document
	arn    string // of the bucket that the policy names
	Public bool
}

// ARNPrefix begins the ARNs of buckets.
const ARNPrefix = "arn:aws:s3:::"

// CompilePolicy reads the policy of a bucket. With IDs in place of account numbers it
// may be longer than it was sent.
func CompilePolicy(p *record.BucketPolicy) (*BucketPolicy, error) {
	d, err := policy.Parse(p.Text, policy.Options{Kind: policy.Bucket, Bucket: p.Bucket, MaxBytes: 2 * policy.MaxBucketBytes})
	if err != nil {
		return nil, err
	}
	return &BucketPolicy{Document: d, arn: ARNPrefix + p.Bucket, Public: d.Public()}, nil
}

// resource is the ARN of the bucket, or of an object in it.
func (p *BucketPolicy) resource(object bool, key string) string {
	if !object {
		return p.arn
	}
	return p.arn + "/" + key
}
