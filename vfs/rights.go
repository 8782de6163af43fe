package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// This file and denials.go are the one place where rights at the object doors
// are decided: S3 grants give, POSIX modes that somebody chose deny. The model
// is docs/security.md, "Who may do what", whose tables a test holds against
// this code. The POSIX doors go by modes and ACLs alone (package perm).
//
// Each operation evaluates in the snapshot or the transaction in which it acts.
// Authorize is the early answer, before a body is taken.

// need is who has the right to an action, beside the bucket's owner and
// administrators.
type need struct {
	anyUser bool       // every user
	bucket  Permission // who has this grant on the bucket
	object  Permission // who has this grant on the object, and the object's owner
	none    bool       // no grant is asked for here: the operation decides
}

var needs = [actions]need{
	ActListBuckets:     {anyUser: true},
	ActCreateBucket:    {anyUser: true},
	ActDeleteBucket:    {},
	ActListObjects:     {bucket: PermRead},
	ActReadBucketACL:   {bucket: PermReadACP},
	ActWriteBucketACL:  {bucket: PermWriteACP},
	ActConfigureBucket: {},
	ActReadObject:      {object: PermRead},
	ActWriteObject:     {bucket: PermWrite},
	ActDeleteObject:    {bucket: PermWrite},
	ActReadObjectACL:   {object: PermReadACP},
	ActWriteObjectACL:  {object: PermWriteACP},
	ActOwnUpload:       {none: true},
}

// judge decides for one subject in one snapshot. The zero judge, like one for
// an administrator, allows everything.
type judge struct {
	fs *FS
	r  cluster.Reader
	s  *Subject
	// bucket is the directory whose grants count; 0: there is none.
	bucket Ino
	owned  *record.Inode // the bucket's inode, once read
	// unpolicied tells that the bucket has no policy, and owns nothing that others write.
	unpolicied bool
	attrs      record.Bucket // of the bucket, once read
	name       string        // of the bucket as it is asked for; "": its inode's
	key        string        // within the bucket, that is asked for; "" for none yet
	linked     string        // where followLink came to, as a key
	list       *ListOptions  // of a list
	held       *iam.Set      // policies of the subject, once read
	heldRead   bool
}

func (fs *FS) judge(ctx context.Context, r cluster.Reader, bucket Ino) judge {
	return judge{fs: fs, r: r, s: subjectOf(ctx), bucket: bucket}
}

// bucketJudge is judge for a bucket whose directory was read.
func (fs *FS) bucketJudge(ctx context.Context, r cluster.Reader, n *record.Inode) judge {
	j := fs.judge(ctx, r, n.Ino)
	j.owned, j.unpolicied = n, !n.Has(record.FlagPolicy|record.FlagOwnership)
	return j
}

// namedJudge is judge for the name of a bucket that need not be there.
func (fs *FS) namedJudge(ctx context.Context, r cluster.Reader, name string) *judge {
	j := fs.judge(ctx, r, 0)
	j.name = name
	return &j
}

// free reports whether there is nothing to check.
func (j *judge) free() bool { return j.s.mayAll() }

func (j *judge) denied(act Action) error {
	return j.s.denied(act)
}

// grants returns nil if act on the bucket, or on the object n in it, is given: by
// its policy, S3's grants, or ownership. What a policy denies nothing gives.
func (j *judge) grants(act Action, n *record.Inode) error {
	if j.free() || j.s.Local {
		return nil
	}
	return j.grantsAs(act, j.s.policyAction(act), n)
}

// grantsAs is grants for an action that policies call name.
func (j *judge) grantsAs(act Action, name string, n *record.Inode) error {
	if e, err := j.byPolicies(act, name, n); err != nil || e == policy.Allow {
		return err
	}
	return j.gives(act, n)
}

// gives is grants without policies.
func (j *judge) gives(act Action, n *record.Inode) error {
	want := needs[act]
	if want.object != 0 && n != nil {
		if given, err := j.objectGives(n, want.object); err != nil || given {
			return err
		}
	}
	switch {
	case want.none, want.anyUser && !j.s.anonymous():
		return nil
	case j.bucket == 0 || want.anyUser:
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
func accessBlock(b record.Bucket) AccessBlock {
	return readAccessBlock(b[record.ConfigPrefix+AccessBlockConfig])
}

// bucketAttrs reads the attributes of the bucket, once.
func (j *judge) bucketAttrs() (b record.Bucket, err error) {
	if j.attrs == nil {
		if b, err = record.GetBucket(j.r, j.bucket); err != nil {
			return nil, err
		}
		j.attrs = b
	}
	return j.attrs, nil
}

// objectGives reports whether the owner of the object n, in its ACL, or ownership
// itself, gives want to the subject. Who is named needs no look at the bucket.
func (j *judge) objectGives(n *record.Inode, want Permission) (bool, error) {
	if own, err := j.ownership(); err != nil || own == OwnershipEnforced {
		return false, err
	}
	switch {
	case j.s.owns(n), n.Grants.AllowUser(j.s.User, want):
		return true, nil
	case !n.Grants.Allow(j.s.User, want):
		return false, nil
	case j.bucket == 0:
		return true, nil
	}
	b, err := j.bucketAttrs()
	return accessBlock(b)&IgnorePublicACLs == 0, err
}

// bucketGives reports whether the bucket's ACL gives want to the subject.
func (j *judge) bucketGives(want Permission) (bool, error) {
	b, err := j.bucketAttrs()
	if err != nil {
		return false, err
	}
	if own, err := j.ownership(); err != nil || own == OwnershipEnforced {
		return false, err
	}
	g, err := record.DecodeGrants(b[record.GrantsAttr])
	if err != nil {
		return false, err
	}
	if accessBlock(b)&IgnorePublicACLs != 0 {
		return g.AllowUser(j.s.User, want), nil
	}
	return g.Allow(j.s.User, want), nil
}

// ownership of the judge's bucket. Where the entry of the bucket's directory tells
// that nothing is set, nothing is read.
func (j *judge) ownership() (Ownership, error) {
	if j.unpolicied || j.bucket == 0 {
		return OwnershipUnset, nil
	}
	b, err := j.bucketAttrs()
	return readOwnership(b[record.OwnershipAttr]), err
}

// ownsBucket reports whether the subject owns the bucket.
func (j *judge) ownsBucket() (bool, error) {
	if j.bucket == 0 {
		return false, nil
	}
	n, err := j.bucketInode()
	if err != nil {
		return false, err
	}
	return j.s.owns(n), nil
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
	var info BucketInfo
	want, s := needs[act], subjectOf(ctx)
	switch {
	case want.anyUser && !s.mayAll() && s.anonymous():
		return info, s.denied(act)
	case s.mayAll() && act != ActWriteObject && act != ActConfigureBucket, !s.mayAll() && !s.anonymous() && (want.none || want.object != 0):
		return info, nil
	}
	err := fs.peek(ctx, func(r cluster.Reader) error {
		if want.anyUser {
			return fs.namedJudge(ctx, r, name.Bucket).grants(act, nil)
		}
		n, err := keypath.BucketInode(r, name.Bucket)
		if err != nil {
			return err
		}
		info = bucketInfo(name.Bucket, n)
		if want.none || want.object != 0 {
			return nil // that it exists is all that a stranger needs so far
		}
		j := fs.bucketJudge(ctx, r, n)
		if j.key = name.Key; name.Key == "" && act.onObject() {
			if by, err := j.byKeys(); err != nil || by {
				return err
			}
		}
		return j.grants(act, nil)
	})
	return info, err
}
