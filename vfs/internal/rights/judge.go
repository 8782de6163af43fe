package rights

import (
	"context"
	"time"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// need is who has the right to an action, beside the bucket's owner and
// administrators.
type need struct {
	anyUser bool              // every user
	bucket  record.Permission // who has this grant on the bucket
	object  record.Permission // who has this grant on the object, and the object's owner
	none    bool              // no grant is asked for here: the operation decides
}

var needs = [actions]need{
	ActListBuckets:     {anyUser: true},
	ActCreateBucket:    {anyUser: true},
	ActDeleteBucket:    {},
	ActListObjects:     {bucket: record.PermRead},
	ActReadBucketACL:   {bucket: record.PermReadACP},
	ActWriteBucketACL:  {bucket: record.PermWriteACP},
	ActConfigureBucket: {},
	ActReadObject:      {object: record.PermRead},
	ActWriteObject:     {bucket: record.PermWrite},
	ActDeleteObject:    {bucket: record.PermWrite},
	ActReadObjectACL:   {object: record.PermReadACP},
	ActWriteObjectACL:  {object: record.PermWriteACP},
	ActOwnUpload:       {none: true},
}

// Rules are what rights are decided by, beside what the snapshot holds.
type Rules struct {
	Users *users.Registry
	IAM   *iam.Directory
	Now   func() time.Time
	// FileMode and DirMode are the modes of what doors without modes make: they
	// say nothing of who may do what.
	FileMode, DirMode uint32

	policies policyCache
}

// Judge decides for one subject in one snapshot. One without a subject, as of an
// administrator, allows everything.
type Judge struct {
	R       cluster.Reader
	Subject *Subject
	// Bucket is the directory whose grants count; 0: there is none.
	Bucket record.Ino
	Key    string // within the bucket, that is asked for; "" for none yet
	List   *List  // of a list

	rules *Rules
	owned *record.Inode // the bucket's inode, once read
	// unpolicied reports whether the bucket has no policy, owns nothing that others write, and
	// that its owner pays.
	unpolicied bool
	attrs      record.BucketAttrs // of the bucket, once read
	attrsRead  bool
	name       string   // of the bucket as it is asked for; "": its inode's
	linked     string   // where FollowLink came to, as a key
	held       *iam.Set // policies of the subject, once read
	heldRead   bool
}

// On returns the judge of the caller, for a bucket's directory; 0 for none.
func (u *Rules) On(ctx context.Context, r cluster.Reader, bucket record.Ino) Judge {
	return Judge{rules: u, R: r, Subject: SubjectOf(ctx), Bucket: bucket}
}

// OnBucket is On for a bucket whose directory was read.
func (u *Rules) OnBucket(ctx context.Context, r cluster.Reader, n *record.Inode) Judge {
	j := u.On(ctx, r, n.Ino)
	j.owned, j.unpolicied = n, !n.Has(record.FlagPolicy|record.FlagOwnership)
	return j
}

// Bucket finds a bucket and its judge for who has a right to act on it.
// ErrNoSuchBucket, ErrAccess.
func (u *Rules) Bucket(ctx context.Context, r cluster.Reader, name string, act Action) (j Judge, n *record.Inode, err error) {
	if n, err = keypath.BucketInode(r, name); err != nil {
		return j, nil, err
	}
	j = u.OnBucket(ctx, r, n)
	err = j.Grants(act, nil)
	return j, n, err // j after it: what it read is kept
}

// OnName is On for the name of a bucket that need not be there.
func (u *Rules) OnName(ctx context.Context, r cluster.Reader, name string) *Judge {
	j := u.On(ctx, r, 0)
	j.name = name
	return &j
}

// OnKey is On for a key that was located.
func (u *Rules) OnKey(ctx context.Context, r cluster.Reader, k *keypath.Key, at *keypath.Place) Judge {
	j := u.On(ctx, r, 0)
	j.In(at.Bucket(k))
	j.Key = k.Below()
	if j.Bucket == 0 {
		j.name = k.BucketName()
	}
	return j
}

// In makes the bucket that a step leads to the judge's.
func (j *Judge) In(bucket keypath.Step) {
	j.Bucket, j.unpolicied = bucket.Ino, bucket.DirBits&record.DirPolicy == 0
}

// Free reports whether there is nothing to check.
func (j *Judge) Free() bool { return MayAll(j.Subject) }

func (j *Judge) denied(act Action) error {
	return j.Subject.denied(act)
}

// Grants returns nil if act on the bucket, or on the object n in it, is given: by
// its policy, S3's grants, or ownership. What a policy denies nothing gives.
func (j *Judge) Grants(act Action, n *record.Inode) error {
	if j.Free() || j.Subject.Local {
		return nil
	}
	return j.grantsAs(act, j.Subject.policyAction(act), n)
}

// grantsAs is Grants for an action that policies call name.
func (j *Judge) grantsAs(act Action, name string, n *record.Inode) error {
	if e, err := j.byPolicies(act, name, n); err != nil || e == policy.Allow {
		return err
	}
	return j.gives(act, n)
}

// gives is Grants without policies.
func (j *Judge) gives(act Action, n *record.Inode) error {
	want := needs[act]
	if want.object != 0 && n != nil {
		if given, err := j.objectGives(n, want.object); err != nil || given {
			return err
		}
	}
	switch {
	case want.none, want.anyUser && !Anonymous(j.Subject):
		return nil
	case j.Bucket == 0 || want.anyUser:
		return j.denied(act)
	}
	owner, err := j.ownsBucket()
	if err != nil || owner {
		return err
	}
	if want.bucket == 0 {
		return j.denied(act)
	}
	given, err := j.bucketGives(want.bucket)
	if err == nil && !given {
		return j.denied(act)
	}
	return err
}

// accessBlock reads what no ACL may do in a bucket.
func accessBlock(b record.BucketAttrs) AccessBlock {
	return ReadAccessBlock(b.Get(record.ConfigPrefix + AccessBlockConfig))
}

// bucketAttrs reads the attributes of the bucket, once.
func (j *Judge) bucketAttrs() (b record.BucketAttrs, err error) {
	if !j.attrsRead {
		if b, err = record.GetBucketAttrs(j.R, j.Bucket); err != nil {
			return b, err
		}
		j.attrs, j.attrsRead = b, true
	}
	return j.attrs, nil
}

// objectGives reports whether the owner of the object n, in its ACL, or ownership
// itself, gives want to the subject. Who is named needs no look at the bucket.
func (j *Judge) objectGives(n *record.Inode, want record.Permission) (bool, error) {
	if own, err := j.ownership(); err != nil || own == OwnershipEnforced {
		return false, err
	}
	switch {
	case Owns(j.Subject, n), n.Grants.AllowUser(j.Subject.User, want):
		return true, nil
	case !n.Grants.Allow(j.Subject.User, want):
		return false, nil
	case j.Bucket == 0:
		return true, nil
	}
	b, err := j.bucketAttrs()
	return accessBlock(b)&IgnorePublicACLs == 0, err
}

// bucketGives reports whether the bucket's ACL gives want to the subject.
func (j *Judge) bucketGives(want record.Permission) (bool, error) {
	b, err := j.bucketAttrs()
	if err != nil {
		return false, err
	}
	if own, err := j.ownership(); err != nil || own == OwnershipEnforced {
		return false, err
	}
	g, err := record.DecodeGrants(b.Get(record.GrantsAttr))
	if err != nil {
		return false, err
	}
	if accessBlock(b)&IgnorePublicACLs != 0 {
		return g.AllowUser(j.Subject.User, want), nil
	}
	return g.Allow(j.Subject.User, want), nil
}

// ownership of the judge's bucket. Where the entry of the bucket's directory says
// that nothing is set, nothing is read.
func (j *Judge) ownership() (Ownership, error) {
	if j.unpolicied || j.Bucket == 0 {
		return OwnershipUnset, nil
	}
	b, err := j.bucketAttrs()
	return readOwnership(b.Get(record.OwnershipAttr)), err
}

// StoredOwnership is what was set for the bucket.
func (j *Judge) StoredOwnership() (Ownership, error) {
	b, err := j.bucketAttrs()
	return readOwnership(b.Get(record.OwnershipAttr)), err
}

// ownsBucket reports whether the subject owns the bucket.
func (j *Judge) ownsBucket() (bool, error) {
	if j.Bucket == 0 {
		return false, nil
	}
	n, err := j.bucketInode()
	if err != nil {
		return false, err
	}
	return Owns(j.Subject, n), nil
}

// Authorize is the early answer to an action on a bucket, or on a key in it, in one
// snapshot, which view makes, perhaps twice. Actions that the object or the upload may
// allow pass here, and where a policy decides, those on keys that are not known yet
// (""); only for anonymous requests the bucket must exist, before anything is held for
// a stranger. It returns the bucket's inode if it was looked at, as for ActWriteObject
// it always is. ErrAccess, ErrNoSuchBucket.
func (u *Rules) Authorize(ctx context.Context, act Action, bucket, key string, view func(fn func(r cluster.Reader) error) error) (*record.Inode, error) {
	want, s := needs[act], SubjectOf(ctx)
	switch {
	case want.anyUser && !MayAll(s) && Anonymous(s):
		return nil, s.denied(act)
	case MayAll(s) && act != ActWriteObject && act != ActConfigureBucket, !MayAll(s) && !Anonymous(s) && (want.none || want.object != 0):
		return nil, nil
	}
	return u.authorizeIn(ctx, act, bucket, key, view)
}

// authorizeIn is Authorize where that needs a look at the store.
func (u *Rules) authorizeIn(ctx context.Context, act Action, bucket, key string, view func(fn func(r cluster.Reader) error) error) (found *record.Inode, err error) {
	want := needs[act]
	err = view(func(r cluster.Reader) error {
		found = nil
		if want.anyUser {
			return u.OnName(ctx, r, bucket).Grants(act, nil)
		}
		n, err := keypath.BucketInode(r, bucket)
		if err != nil {
			return err
		}
		found = n
		if want.none || want.object != 0 {
			return nil // that it exists is all that a stranger needs so far
		}
		j := u.OnBucket(ctx, r, n)
		if j.Key = key; key == "" && act.onObject() {
			if by, err := j.ByKeys(); err != nil || by {
				return err
			}
		}
		return j.Grants(act, nil)
	})
	return found, err
}
