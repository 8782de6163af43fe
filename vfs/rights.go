package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
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
	if want.object != 0 && n != nil {
		if given, err := j.objectGives(n, want.object); err != nil || given {
			return err
		}
	}
	switch {
	case want.none, want.anyUser && !j.s.Anonymous:
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
	return readAccessBlock(b[configPrefix+AccessBlockConfig])
}

// objectGives reports whether the owner of the object n, in its ACL, or ownership
// itself, gives want to the subject. Who is named needs no look at the bucket.
func (j *judge) objectGives(n *record.Inode, want Permission) (bool, error) {
	switch {
	case j.s.owns(n), n.Grants.AllowUser(j.s.User, want):
		return true, nil
	case !n.Grants.Allow(j.s.User, want):
		return false, nil
	case j.bucket == 0:
		return true, nil
	}
	b, err := record.GetBucket(j.r, j.bucket)
	return accessBlock(b)&IgnorePublicACLs == 0, err
}

// bucketGives reports whether the bucket's ACL gives want to the subject.
func (j *judge) bucketGives(want Permission) (bool, error) {
	b, err := record.GetBucket(j.r, j.bucket)
	if err != nil {
		return false, err
	}
	g, err := record.DecodeGrants(b[attrGrants])
	if err != nil {
		return false, err
	}
	if accessBlock(b)&IgnorePublicACLs != 0 {
		return g.AllowUser(j.s.User, want), nil
	}
	return g.Allow(j.s.User, want), nil
}

// takesACL returns ErrAccess for an ACL that the bucket takes from nobody who comes
// through an object door, administrators included.
func (j *judge) takesACL(g Grants) error {
	if j.s == nil || j.bucket == 0 || !g.Public() {
		return nil
	}
	b, err := record.GetBucket(j.r, j.bucket)
	if err == nil && accessBlock(b)&BlockPublicACLs != 0 {
		return fmt.Errorf("the bucket's public access block refuses ACLs that are public: %w", ErrAccess)
	}
	return err
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
	case s.mayAll() && act != ActWriteObject && act != ActConfigureBucket, want.anyUser, !s.mayAll() && !s.Anonymous && (want.none || want.object != 0):
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
