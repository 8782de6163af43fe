package rights

import (
	"errors"
	"fmt"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

const (
	// policyCacheBytes bounds the policies in memory. One of the largest size takes 2 to
	// 3 KiB if few of its statements are asked for, so that 10,000 of those fit; with all
	// of them some 1.5 times its text.
	policyCacheBytes = 32 << 20
	// policyEntryBytes is what an entry takes beside.
	policyEntryBytes = 192
)

var errIncomplete = errors.New("statements are missing that were read")

// policyCache keeps policies, with the statements that requests were about. A digest stands
// for one text for good, so no entry is ever wrong. The zero value is ready.
type policyCache struct {
	mu      sync.RWMutex
	entries map[record.PolicyDigest]*BucketPolicy
	bytes   int
}

// policyUse is the policy of a bucket in one snapshot.
type policyUse struct {
	*BucketPolicy        // nil: the bucket has none
	text          []byte // nil: it was not read
	block         AccessBlock
}

// get finds the policy of a bucket, whose digest that is.
func (c *policyCache) get(r cluster.Reader, ino record.Ino, digest record.PolicyDigest) (u policyUse, err error) {
	c.mu.RLock()
	u.BucketPolicy = c.entries[digest]
	c.mu.RUnlock()
	if u.BucketPolicy != nil {
		return u, nil
	}
	stored, err := record.GetBucketPolicy(r, ino)
	if err != nil {
		return u, err
	}
	u.text = stored.Text
	u.BucketPolicy, err = c.compile(ino, &stored, stored.Digest())
	return u, err
}

// compile reads and keeps a policy that is stored with that digest.
func (c *policyCache) compile(ino record.Ino, stored *record.BucketPolicy, digest record.PolicyDigest) (*BucketPolicy, error) {
	p, err := CompilePolicy(stored)
	if err != nil {
		return nil, corruptPolicy(ino, err)
	}
	p.digest = digest
	c.put(nil, p)
	return p, nil
}

func corruptPolicy(ino record.Ino, err error) error {
	return fmt.Errorf("%w: policy of bucket %d: %w", fserr.ErrCorrupt, ino, err)
}

// put keeps a policy, in place of the old one, which has fewer statements in memory; nil:
// there is none. If somebody else was faster, theirs stays. When there is no room, others go,
// whichever come first.
func (c *policyCache) put(old, p *BucketPolicy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[record.PolicyDigest]*BucketPolicy)
	}
	if kept := c.entries[p.digest]; kept != nil {
		if kept != old {
			return
		}
		c.drop(kept)
	}
	for _, kept := range c.entries {
		if c.bytes+p.cost() <= policyCacheBytes {
			break
		}
		c.drop(kept)
	}
	c.entries[p.digest] = p
	c.bytes += p.cost()
}

func (c *policyCache) drop(p *BucketPolicy) {
	delete(c.entries, p.digest)
	c.bytes -= p.cost()
}

// decide returns what the policy of a bucket says of a request.
func (c *policyCache) decide(r cluster.Reader, ino record.Ino, u policyUse, q *policy.Request) (v policyVerdict, err error) {
	e, by, missing := u.Decide(q)
	if len(missing) > 0 {
		if err := c.complete(r, ino, &u, q, missing); err != nil {
			return v, err
		}
		if e, by, missing = u.Decide(q); len(missing) > 0 {
			return v, corruptPolicy(ino, errIncomplete)
		}
	}
	v = policyVerdict{effect: e, number: by + 1}
	if v.number > 0 {
		v.sid = u.Sid(by)
	}
	return v, nil
}

// complete reads the statements that are missing to decide about a request.
func (c *policyCache) complete(r cluster.Reader, ino record.Ino, u *policyUse, q *policy.Request, missing []int) error {
	if u.text == nil {
		stored, err := record.GetBucketPolicy(r, ino)
		if err != nil {
			return err
		}
		u.text = stored.Text
		if digest := stored.Digest(); digest != u.digest { // what is stored counts
			if u.BucketPolicy, err = c.compile(ino, &stored, digest); err != nil {
				return err
			}
			_, _, missing = u.Decide(q)
		}
	}
	part, err := u.With(u.text, missing)
	if err != nil {
		return corruptPolicy(ino, err)
	}
	more := &BucketPolicy{Partial: *part, arn: u.arn, digest: u.digest}
	c.put(u.BucketPolicy, more)
	u.BucketPolicy = more
	return nil
}

// policyVerdict is what a policy says of a request, and the statement that decided, by its
// number from 1 on, 0 for none, and its ID.
type policyVerdict struct {
	effect policy.Effect
	number int
	sid    string
}

// BucketPolicy is the policy of a bucket, compiled.
type BucketPolicy struct {
	policy.Partial
	arn    string // of the bucket that the policy names
	digest record.PolicyDigest
}

// cost is what an entry with it takes.
func (p *BucketPolicy) cost() int { return p.Bytes() + policyEntryBytes }

// ARNPrefix begins the ARNs of buckets.
const ARNPrefix = "arn:aws:s3:::"

// CompilePolicy reads the policy of a bucket. With IDs in place of account numbers it
// may be longer than it was sent.
func CompilePolicy(p *record.BucketPolicy) (*BucketPolicy, error) {
	d, err := policy.ParsePartial(p.Text, policy.Options{Kind: policy.Bucket, Bucket: p.Bucket, MaxBytes: 2 * policy.MaxBucketBytes})
	if err != nil {
		return nil, err
	}
	return &BucketPolicy{Partial: *d, arn: ARNPrefix + p.Bucket}, nil
}

// resource is the ARN of the bucket, or of an object in it.
func (p *BucketPolicy) resource(object bool, key string) string {
	if !object {
		return p.arn
	}
	return p.arn + "/" + key
}
