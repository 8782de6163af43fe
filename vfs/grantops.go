package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
)

// BucketGrants describes a bucket and returns what its owner granted;
// ErrNoSuchBucket, ErrAccess.
func (fs *FS) BucketGrants(ctx context.Context, name string) (BucketInfo, Grants, error) {
	var info BucketInfo
	var g Grants
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := keypath.BucketInode(r, name)
		if err != nil {
			return err
		}
		j := fs.bucketJudge(ctx, r, n)
		if err := j.grants(ActReadBucketACL, nil); err != nil {
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
		n, err := keypath.BucketInode(t, name)
		if err != nil {
			return err
		}
		j := fs.bucketJudge(ctx, t, n)
		if err := j.grants(ActWriteBucketACL, nil); err != nil {
			return err
		}
		if err := j.setsACL(g); err != nil {
			return err
		}
		if err := o.setBucketAttr(t, n, record.GrantsAttr, record.EncodeGrants(g)); err != nil {
			return err
		}
		return o.lastWord(t, &j, n)
	})
}

// lastWord takes a mode that somebody chose out of account, where who grants
// now could have chosen another one (chmod).
func (o *op) lastWord(t cluster.Txn, j *judge, n *record.Inode) error {
	if n.Has(record.FlagUnchosen) || j.s == nil || !j.free() && !j.s.owns(n) {
		return nil
	}
	n.Unchoose()
	if err := tellEntry(t, n); err != nil {
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
		j, n, err := fs.judgedObject(ctx, r, &k, act)
		if err != nil {
			return err
		}
		info, g = plainInfo(name.Key, n), n.Grants
		owner, err := j.ownerOfAll()
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
	return fs.changeObject(ctx, ActWriteObjectACL, name, func(j *judge, n *record.Inode) error {
		if err := j.setsACL(g); err != nil {
			return err
		}
		n.SetGrants(g)
		s := subjectOf(ctx)
		if s != nil && n.IsRegular() && (s.mayAll() || s.owns(n)) {
			n.Unchoose()
		}
		return nil
	})
}
