package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/policy"
)

// BucketPolicy returns the policy of a bucket and whether it is public; nil if there
// is none. Users are named by ARNs with the names of now, those that were removed by
// ID. ErrNoSuchBucket, ErrAccess (S3 GetBucketPolicy, GetBucketPolicyStatus).
func (fs *FS) BucketPolicy(ctx context.Context, bucket string) (text []byte, public bool, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		text, public = nil, false
		_, n, err := fs.rights.Bucket(ctx, r, bucket, ActConfigureBucket)
		if err != nil || !n.Has(record.FlagPolicy) {
			return err
		}
		stored, err := record.GetBucketPolicy(r, n.Ino)
		if err != nil {
			return err
		}
		p, err := rights.CompilePolicy(&stored)
		if err != nil {
			return fmt.Errorf("%w: policy of bucket %q: %w", ErrCorrupt, bucket, err)
		}
		public = p.Public
		text, err = policy.Rewrite(stored.Text, func(id string) (string, error) { return fs.rights.IAM.Shown(r, id) })
		return err
	})
	return text, public, err
}

// SetBucketPolicy replaces the policy of a bucket; nil removes it. Users are kept by
// their IDs, so that nothing passes with a name. *policy.Error for a text that S3
// would refuse, ErrNoSuchBucket, ErrAccess, also for a public policy where the public
// access block refuses those (S3 PutBucketPolicy, DeleteBucketPolicy).
func (fs *FS) SetBucketPolicy(ctx context.Context, bucket string, text []byte) error {
	if len(text) > policy.MaxBucketBytes {
		_, err := policy.Parse(text, policy.Options{}) // says so
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		j, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		if text == nil {
			return o.dropBucketPolicy(t, n)
		}
		return o.putBucketPolicy(t, &j, n, text)
	})
}

func (o *op) putBucketPolicy(t cluster.Txn, j *rights.Judge, n *record.Inode, text []byte) error {
	// What is wrong is told of the text as it was sent.
	sent := record.BucketPolicy{Bucket: n.Name, Text: text}
	if _, err := rights.CompilePolicy(&sent); err != nil {
		return err
	}
	kept, err := policy.Rewrite(text, func(name string) (string, error) { return o.fs.principalID(t, name) })
	if err != nil {
		return err
	}
	stored := record.BucketPolicy{Bucket: n.Name, Text: kept}
	p, err := rights.CompilePolicy(&stored)
	if err != nil {
		return err
	}
	if err := j.TakesPolicy(p); err != nil {
		return err
	}
	return o.storeBucketPolicy(t, n, &stored)
}

func (o *op) storeBucketPolicy(t cluster.Txn, n *record.Inode, stored *record.BucketPolicy) error {
	if err := t.Set(record.PolicyKey(n.Ino), stored.Encode()); err != nil {
		return err
	}
	digest := stored.Digest()
	if err := o.setBucketAttr(t, n, record.PolicyAttr, digest[:]); err != nil {
		return err
	}
	return o.tellPolicy(t, n, true)
}

func (o *op) dropBucketPolicy(t cluster.Txn, n *record.Inode) error {
	if !n.Has(record.FlagPolicy) {
		return nil
	}
	if err := t.Delete(record.PolicyKey(n.Ino)); err != nil {
		return err
	}
	if err := o.setBucketAttr(t, n, record.PolicyAttr, nil); err != nil {
		return err
	}
	return o.tellPolicy(t, n, false)
}

// tellPolicy notes in the bucket's inode and entry whether there is a policy.
func (o *op) tellPolicy(t cluster.Txn, n *record.Inode, has bool) error {
	n.Set(record.FlagPolicy, has)
	if has {
		n.MakeExplicit() // it would go with the last object
	}
	if err := tellEntry(t, n); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// principalID returns the ID of a user or role whom a policy names.
func (fs *FS) principalID(r cluster.Reader, name string) (string, error) {
	id, err := fs.rights.IAM.Principal(r, name)
	if errors.Is(err, ErrNoSuchUser) {
		err = &policy.Error{Message: "Invalid principal in policy", Detail: name}
	}
	return id, err
}
