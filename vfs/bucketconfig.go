package vfs

import (
	"bytes"
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/bucketconf"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// BucketConfig returns what SetBucketConfig stored under a name, such as
// "tagging", to who may configure the bucket; nil if there is none. The store
// does not look inside. ErrNoSuchBucket, ErrAccess.
func (fs *FS) BucketConfig(ctx context.Context, bucket, name string) ([]byte, error) {
	var value []byte
	err := fs.peek(ctx, func(r cluster.Reader) error {
		value = nil
		_, n, err := fs.rights.Bucket(ctx, r, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		b, err := record.GetBucketAttrs(r, n.Ino)
		value = b.Get(record.ConfigPrefix + name)
		return err
	})
	return bytes.Clone(value), err // others may hold what the store returned
}

// SetBucketConfig stores configuration under a name; nil removes it.
// ErrNoSuchBucket, ErrAccess, ErrAttrTooLarge.
func (fs *FS) SetBucketConfig(ctx context.Context, bucket, name string, value []byte) error {
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		_, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		return bucketconf.Set(t, n, record.ConfigPrefix+name, value)
	})
}

// BucketOwnership returns who owns what others write into a bucket, to who may
// configure it. ErrNoSuchBucket, ErrAccess (S3 GetBucketOwnershipControls).
func (fs *FS) BucketOwnership(ctx context.Context, bucket string) (own Ownership, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		j, _, err := fs.rights.Bucket(ctx, r, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		own, err = j.StoredOwnership()
		return err
	})
	return own, err
}

// SetBucketOwnership sets who owns what others write into a bucket from now on;
// OwnershipUnset forgets it. Under OwnershipEnforced that holds for what is there,
// too, as long as it is set. ErrNoSuchBucket, ErrAccess, ErrACLGrants for
// OwnershipEnforced of a bucket whose ACL grants something to others (S3
// PutBucketOwnershipControls, DeleteBucketOwnershipControls).
func (fs *FS) SetBucketOwnership(ctx context.Context, bucket string, own Ownership) error {
	if own > OwnershipEnforced {
		return fmt.Errorf("ownership %d: %w", own, ErrInvalid)
	}
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		_, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		g, err := keypath.BucketGrants(t, n.Ino)
		if err != nil {
			return err
		}
		return bucketconf.SetOwnership(t, n, own, g)
	})
}

// BucketPolicy returns the policy of a bucket and whether it is public; nil if there
// is none. Users are named by ARNs with the names of now, those that were removed by
// ID. ErrNoSuchBucket, ErrAccess (S3 GetBucketPolicy, GetBucketPolicyStatus).
func (fs *FS) BucketPolicy(ctx context.Context, bucket string) (text []byte, public bool, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		_, n, err := fs.rights.Bucket(ctx, r, bucket, ActConfigureBucket)
		if err == nil {
			text, public, err = bucketconf.Policy(r, fs.rights.IAM, n)
		}
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
		_, err := policy.Parse(text, policy.Options{}) // which refuses it
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		j, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		if text == nil {
			return bucketconf.DropPolicy(t, n)
		}
		return bucketconf.SetPolicy(t, &j, fs.rights.IAM, n, text)
	})
}

// SetRequesterPays sets whether the requester pays for requests to a bucket, and must say that
// they know (S3 PutBucketRequestPayment). BucketConfig returns it, under PayerConfig.
// ErrNoSuchBucket, ErrAccess.
func (fs *FS) SetRequesterPays(ctx context.Context, bucket string, on bool) error {
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		j, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		return bucketconf.SetRequesterPays(t, &j, n, on)
	})
}
