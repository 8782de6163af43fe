package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/bucketconf"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/policy"
)

// BucketGrants describes a bucket and returns what its owner granted;
// ErrNoSuchBucket, ErrAccess.
func (fs *FS) BucketGrants(ctx context.Context, name string) (BucketInfo, Grants, error) {
	var info BucketInfo
	var g Grants
	err := fs.view(ctx, func(r cluster.Reader) error {
		_, n, err := fs.rights.Bucket(ctx, r, name, ActReadBucketACL)
		if err != nil {
			return err
		}
		info = bucketInfo(name, n)
		g, err = keypath.BucketGrants(r, n.Ino)
		return err
	})
	return info, g, err
}

// SetBucketGrants replaces what the owner of a bucket granted. The mode of the
// bucket's directory denies nothing at the object doors until the next chmod.
func (fs *FS) SetBucketGrants(ctx context.Context, name string, g Grants) error {
	if err := record.ValidateGrants(g); err != nil {
		return err
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		j, n, err := fs.rights.Bucket(ctx, t, name, ActWriteBucketACL)
		if err != nil {
			return err
		}
		if err := j.SetsACL(g); err != nil {
			return err
		}
		if err := bucketconf.Set(t, n, record.GrantsAttr, record.EncodeGrants(g)); err != nil {
			return err
		}
		return o.lastWord(t, &j, n)
	})
}

// lastWord takes a mode that somebody chose out of account, where who grants
// now could have chosen another one (chmod).
func (o *op) lastWord(t cluster.Txn, j *rights.Judge, n *record.Inode) error {
	if n.Has(record.FlagUnchosen) || j.Subject == nil || !j.Free() && !rights.Owns(j.Subject, n) {
		return nil
	}
	n.Unchoose()
	if err := record.RefreshEntry(t, n); err != nil {
		return err
	}
	return o.putChanged(t, n)
}

// ObjectGrants describes an object (the inode alone) and returns what its
// owner granted, to who may read that (ActReadObjectACL) or change it
// (ActWriteObjectACL). ErrNoSuchKey, ErrAccess.
func (fs *FS) ObjectGrants(ctx context.Context, act Action, name ObjectName) (ObjectInfo, Grants, error) {
	k, err := parseKey(name)
	if err != nil {
		return ObjectInfo{}, nil, err
	}
	var info ObjectInfo
	var g Grants
	err = fs.peek(ctx, func(r cluster.Reader) error {
		j, n, err := fs.rights.JudgedObject(ctx, r, &k, act)
		if err != nil {
			return err
		}
		info, g = plainInfo(name.Key, n), n.Grants
		owner, err := j.OwnerOfAll()
		if owner != nil {
			info.UID, g = owner.UID, nil
		}
		return err
	})
	return info, g, err
}

// SetObjectGrants replaces what the owner of an object granted, without
// touching content and ETag; ErrNoSuchKey, ErrAccess. The mode of the file
// denies nothing at the object doors until the next chmod.
func (fs *FS) SetObjectGrants(ctx context.Context, name ObjectName, g Grants) error {
	if err := record.ValidateGrants(g); err != nil {
		return err
	}
	return fs.changeObject(ctx, ActWriteObjectACL, name, func(j *rights.Judge, n *record.Inode) error {
		if err := j.SetsACL(g); err != nil {
			return err
		}
		n.SetGrants(g)
		s := rights.SubjectOf(ctx)
		if s != nil && n.IsRegular() && (rights.MayAll(s) || rights.Owns(s, n)) {
			n.Unchoose()
		}
		return nil
	})
}

// Authorize is the early answer to an action on a bucket, or on a key in it, before a
// body is taken; the operation itself decides again, by what is stored then. Actions
// that the object or the upload may allow pass here, and where a policy decides, those
// on keys that are not known yet (""); only for anonymous requests the
// bucket must exist, before anything is held for a stranger. It describes
// the bucket if it was looked at, as for ActWriteObject it always is: an object
// published with PutOptions.Bucket or CopyOptions.Bucket of it goes into that
// bucket or nowhere. ErrAccess, ErrNoSuchBucket.
func (fs *FS) Authorize(ctx context.Context, act Action, name ObjectName) (BucketInfo, error) {
	look := func(fn func(r cluster.Reader) error) error {
		return fs.peek(ctx, func(r cluster.Reader) error {
			if err := fn(r); err != nil || act != ActWriteObject || !fs.kv.Limits().Distant {
				return err
			}
			return approach(r, name)
		})
	}
	n, err := fs.rights.Authorize(ctx, act, name.Bucket, name.Key, look)
	if n == nil {
		return BucketInfo{}, err
	}
	return bucketInfo(name.Bucket, n), err
}

// approach reads, in the round trip that an early answer takes anyway, what the
// transaction that follows it will read: it finds that in the engine's memory, and
// its commit compares it.
func approach(r cluster.Reader, name ObjectName) error {
	k, err := parseKey(name)
	if err != nil {
		return nil //nolint:nilerr // the operation says so, and how
	}
	_, err = keypath.LocateBoth(r, &k)
	return err
}

// AssumeRole begins a session of a role, whose trust policy must let the caller: a user
// or a role by itself, or the store's account, in which policies of the caller decide
// then. A web identity (iam.Assume.Provider) was verified by the door. ErrAccess (STS
// AssumeRole, AssumeRoleWithWebIdentity).
func (fs *FS) AssumeRole(ctx context.Context, q iam.Assume) (iam.Credentials, error) {
	return fs.rights.AssumeRole(ctx, q)
}

// Simulate returns what would become of requests of a user or role, by ARN or ID, or of
// Anonymous: each action on each resource, by the same judge that decides them, with what is
// stored now. Values are condition keys; nil: there are none. Nothing is done. For a user
// who is not there, ErrNoSuchUser (IAM SimulatePrincipalPolicy).
func (fs *FS) Simulate(ctx context.Context, who string, actions, resources []string, values policy.Values) (list []Simulated, err error) {
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		list, err = fs.rights.Simulate(ctx, r, rights.Question{Who: who, Actions: actions, Resources: resources, Values: values})
		return err
	})
	return list, err
}
