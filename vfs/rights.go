package vfs

import (
	"context"

	"ogw/vfs/internal/record"

	"ogw/cluster"
)

// This file and denials.go are the one place where rights at the object doors
// are decided: S3 grants give, POSIX modes that somebody chose deny. The model
// is docs/security.md, "Who may do what", whose tables a test holds against
// this code. The POSIX doors go by modes and ACLs alone (perm.go).
//
// Each operation evaluates in the snapshot or the transaction in which it acts.
// Authorize is the early answer, before a body is taken.

// Action is what somebody asks to do through an object door.
type Action uint8

// The actions. Those of a bucket come first.
const (
	ActListBuckets Action = iota // one's own
	ActCreateBucket
	ActDeleteBucket
	ActListObjects
	ActReadBucketACL
	ActWriteBucketACL
	ActConfigureBucket // see or change its configuration
	ActReadObject
	ActWriteObject // make, overwrite, tag, begin and go on with uploads
	ActDeleteObject
	ActReadObjectACL
	ActWriteObjectACL
	// ActOwnUpload is to see or to abort an upload, which its initiator may
	// without any grant.
	ActOwnUpload

	actions
)

var actionNames = [actions]string{"list buckets", "create bucket", "delete bucket", "list", "read bucket ACL", "write bucket ACL", "configure bucket",
	"read", "write", "delete", "read ACL", "write ACL", "see or abort upload"}

func (a Action) String() string { return actionNames[a] }

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
}

func (fs *FS) judge(ctx context.Context, r cluster.Reader, bucket Ino) judge {
	return judge{fs: fs, r: r, s: subjectOf(ctx), bucket: bucket}
}

// bucketJudge is judge for a bucket whose directory was read.
func (fs *FS) bucketJudge(ctx context.Context, r cluster.Reader, n *record.Inode) judge {
	j := fs.judge(ctx, r, n.Ino)
	j.owned = n
	return j
}

// free reports whether there is nothing to check.
func (j *judge) free() bool { return j.s.mayAll() }

func (j *judge) denied(act Action) error {
	return j.s.denied(act)
}

// grants returns nil if S3's grants, or ownership, give act on the bucket, or
// on the object n in it.
func (j *judge) grants(act Action, n *record.Inode) error {
	if j.free() || j.s.Local {
		return nil
	}
	want := needs[act]
	switch {
	case want.none, want.anyUser && !j.s.Anonymous:
		return nil
	case want.object != 0 && n != nil && (j.s.owns(n) || n.Grants.Allow(j.s.User, want.object)):
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
	g, err := bucketGrants(j.r, j.bucket)
	if err != nil {
		return err
	}
	if !g.Allow(j.s.User, want.bucket) {
		return j.denied(act)
	}
	return nil
}

// ownsBucket reports whether the subject owns the bucket.
func (j *judge) ownsBucket() (bool, error) {
	if j.bucket == 0 {
		return false, nil
	}
	if j.owned == nil {
		n, err := record.GetInode(j.r, j.bucket)
		if err != nil {
			return false, err
		}
		j.owned = n
	}
	return j.s.owns(j.owned), nil
}

// Authorize is the early answer to an action on a bucket, before a body is
// taken; the operation itself decides again, by what is stored then. Actions that
// the object or the upload may allow pass here; only for anonymous requests the
// bucket must exist, before anything is held for a stranger. It describes
// the bucket if it was looked at, as for ActWriteObject it always is: an object
// published with PutOptions.Bucket or CopyOptions.Bucket of it goes into that
// bucket or nowhere. ErrAccess, ErrNoSuchBucket.
func (fs *FS) Authorize(ctx context.Context, act Action, bucket string) (BucketInfo, error) {
	var info BucketInfo
	want, s := needs[act], subjectOf(ctx)
	switch {
	case want.anyUser && !s.mayAll() && s.Anonymous:
		return info, s.denied(act)
	case s.mayAll() && act != ActWriteObject, want.anyUser, !s.mayAll() && !s.Anonymous && (want.none || want.object != 0):
		return info, nil
	}
	err := fs.peek(ctx, func(r cluster.Reader) error {
		n, err := bucketInode(r, bucket)
		if err != nil {
			return err
		}
		info = bucketInfo(bucket, n)
		if want.none || want.object != 0 {
			return nil // that it exists is all that a stranger needs so far
		}
		j := fs.bucketJudge(ctx, r, n)
		return j.grants(act, nil)
	})
	return info, err
}
