package vfs

import (
	"context"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// BucketOwnership tells who owns what others write into a bucket, to who may
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

// SetBucketOwnership says who owns what others write into a bucket from now on;
// OwnershipUnset forgets it. Under OwnershipEnforced that holds for what is there,
// too, as long as it is set. ErrNoSuchBucket, ErrAccess, ErrACLGrants for
// OwnershipEnforced of a bucket whose ACL grants something to others (S3
// PutBucketOwnershipControls, DeleteBucketOwnershipControls).
func (fs *FS) SetBucketOwnership(ctx context.Context, bucket string, own Ownership) error {
	if own > OwnershipEnforced {
		return fmt.Errorf("ownership %d: %w", own, ErrInvalid)
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		_, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		g, err := keypath.BucketGrants(t, n.Ino)
		if err != nil {
			return err
		}
		return o.setOwnership(t, n, own, g)
	})
}

// setOwnership stores it with the bucket n, whose ACL is g. The inode and its entry
// tell of it where it changes who owns.
func (o *op) setOwnership(t cluster.Txn, n *record.Inode, own Ownership, g Grants) error {
	if own == OwnershipEnforced && slices.ContainsFunc(g, func(g Grant) bool { return g.Grantee != GranteeOwner }) {
		return fmt.Errorf("bucket %q: %w", n.Name, ErrACLGrants)
	}
	var value []byte
	if own != OwnershipUnset {
		value = []byte{byte(own)}
	}
	if err := o.setBucketAttr(t, n, record.OwnershipAttr, value); err != nil {
		return err
	}
	b, err := record.GetBucket(t, n.Ino)
	if err != nil {
		return err
	}
	n.Set(record.FlagOwnership, own >= OwnershipPreferred || rights.RequesterPays(b))
	if own != OwnershipUnset {
		n.MakeExplicit() // it would go with the last object
	}
	if err := tellEntry(t, n); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// SetRequesterPays says whether who asks pays for requests to a bucket, and must say that
// they know (S3 PutBucketRequestPayment). BucketConfig tells of it, under PayerConfig.
// ErrNoSuchBucket, ErrAccess.
func (fs *FS) SetRequesterPays(ctx context.Context, bucket string, on bool) error {
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		j, n, err := fs.rights.Bucket(ctx, t, bucket, ActConfigureBucket)
		if err != nil {
			return err
		}
		own, err := j.StoredOwnership()
		if err != nil {
			return err
		}
		var value []byte
		if on {
			value = []byte{1}
			n.MakeExplicit() // it would go with the last object
		}
		if err := o.setBucketAttr(t, n, record.ConfigPrefix+PayerConfig, value); err != nil {
			return err
		}
		n.Set(record.FlagOwnership, on || own >= OwnershipPreferred)
		if err := tellEntry(t, n); err != nil {
			return err
		}
		return record.PutInode(t, n)
	})
}
