package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Grants are the rights to a bucket or an object that its owner gave to
// others: the access control list of the object doors. POSIX ACLs are another
// thing (acl.go). None means private. A list that is stored or returned is
// never changed in place.
type Grants = record.Grants

// Grant gives a grantee one permission.
type Grant = record.Grant

// UserID identifies a user for good: it is never given twice, whatever
// becomes of the name. The ID "" is nobody: anonymous requests have it.
type UserID = record.UserID

// Grantee is the kind of who gets a permission.
type Grantee = record.Grantee

const (
	GranteeUser          = record.GranteeUser          // one user
	GranteeEverybody     = record.GranteeEverybody     // anonymous requests too
	GranteeAuthenticated = record.GranteeAuthenticated // every user
	// GranteeOwner is whoever owns the thing, who has all rights without that. An
	// entry shows that the list says of the owner what was asked for; one without
	// permissions that it is nothing. Without any, the owner has full control.
	GranteeOwner = record.GranteeOwner
)

// Permission is a set of rights to a bucket or an object; a Grant holds one,
// or PermFullControl.
type Permission = record.Permission

const (
	PermRead     = record.PermRead     // a bucket: list; an object: read
	PermWrite    = record.PermWrite    // a bucket: make, overwrite and delete objects
	PermReadACP  = record.PermReadACP  // read the grants
	PermWriteACP = record.PermWriteACP // change the grants

	// PermFullControl is every permission.
	PermFullControl = record.PermFullControl
)

// MaxGrants bounds one list (S3's own limit), beside an entry without permissions.
const MaxGrants = record.MaxGrants

// BucketGrants describes a bucket and returns what its owner granted;
// ErrNoSuchBucket, ErrAccess.
func (fs *FS) BucketGrants(ctx context.Context, name string) (BucketInfo, Grants, error) {
	var info BucketInfo
	var g Grants
	err := fs.view(ctx, func(r cluster.Reader) error {
		n, err := bucketInode(r, name)
		if err != nil {
			return err
		}
		j := fs.bucketJudge(ctx, r, n)
		if err := j.grants(ActReadBucketACL, nil); err != nil {
			return err
		}
		info = bucketInfo(name, n)
		g, err = bucketGrants(r, n.Ino)
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
		n, err := bucketInode(t, name)
		if err != nil {
			return err
		}
		j := fs.bucketJudge(ctx, t, n)
		if err := j.grants(ActWriteBucketACL, nil); err != nil {
			return err
		}
		if err := j.takesACL(g); err != nil {
			return err
		}
		if err := o.setBucketAttr(t, n, attrGrants, record.EncodeGrants(g)); err != nil {
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
func (fs *FS) ObjectGrants(ctx context.Context, act Action, bucket, key string) (ObjectInfo, Grants, error) {
	k, err := parseKey(bucket, key)
	if err != nil {
		return ObjectInfo{}, nil, err
	}
	var n *record.Inode
	err = fs.peek(ctx, func(r cluster.Reader) (err error) {
		n, err = fs.objectFor(ctx, r, &k, act)
		return err
	})
	if err != nil {
		return ObjectInfo{}, nil, err
	}
	return plainInfo(key, n), n.Grants, nil
}

// SetObjectGrants replaces what the owner of an object granted, without
// touching content and ETag; ErrNoSuchKey, ErrAccess. The mode of the file
// denies nothing at the object doors until the next chmod.
func (fs *FS) SetObjectGrants(ctx context.Context, bucket, key string, g Grants) error {
	if err := record.ValidateGrants(g); err != nil {
		return err
	}
	return fs.changeObject(ctx, ActWriteObjectACL, bucket, key, func(j *judge, n *record.Inode) error {
		if err := j.takesACL(g); err != nil {
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
