package rights

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// What the operations on objects ask their judge.

// Reach returns ErrAccess if the subject must not come to the key: a directory
// on the way denies, or the key lies outside of buckets, where only
// administrators and local users are.
func (j *Judge) Reach(k *keypath.Key, at *keypath.Place) error {
	if j.Free() {
		return nil
	}
	if k.Bucket == "" && !j.Subject.Local && (len(k.Names) == 1 && !k.Dir || !naming.ValidBucket(k.Names[0])) {
		return fmt.Errorf("%w: only administrators use paths outside of buckets", fserr.ErrAccess)
	}
	return j.way(at.Trail)
}

// Hide turns a missing key into ErrAccess for who may not list the bucket: they
// must not learn which keys exist. missing is nil where that it is missing is no error,
// but would be answered otherwise than an object that they may not read.
func (j *Judge) Hide(missing error) error {
	if j.Bucket == 0 {
		return missing
	}
	if err := j.Grants(ActListObjects, nil); err != nil {
		return err
	}
	return missing
}

// Object returns the inode of an object on which the subject may do act.
// ErrNoSuchKey, ErrNoSuchBucket, ErrAccess.
func (u *Rules) Object(ctx context.Context, r cluster.Reader, k *keypath.Key, act Action) (*record.Inode, error) {
	_, n, err := u.JudgedObject(ctx, r, k, act)
	return n, err
}

// JudgedObject is Object with its judge.
func (u *Rules) JudgedObject(ctx context.Context, r cluster.Reader, k *keypath.Key, act Action) (j Judge, n *record.Inode, err error) {
	at, err := keypath.Locate(r, k)
	if err != nil {
		return j, nil, err
	}
	j = u.OnKey(ctx, r, k, &at)
	if err := j.Reach(k, &at); err != nil {
		return j, nil, err
	}
	n, err = j.ObjectInode(k, &at)
	if errors.Is(err, fserr.ErrNoSuchKey) {
		return j, nil, j.Hide(err)
	}
	if err != nil {
		return j, nil, err
	}
	if err := j.Grants(act, n); err != nil {
		return j, nil, err
	}
	err = j.onObject(act, n)
	return j, n, err // j after it: what it read is kept
}

// onObject returns ErrAccess if act on an object that was found, and granted under its
// key, is denied where a link led, or by its mode.
func (j *Judge) onObject(act Action, n *record.Inode) error {
	if err := j.grantsLinked(act, n); err != nil {
		return err
	}
	switch act {
	case ActReadObject:
		return j.Mode(n, perm.AccessRead)
	case ActWriteObject:
		return j.Mode(n, perm.AccessWrite)
	}
	return nil
}

// Write returns ErrAccess if the subject must not publish under a key where old
// is (nil: nothing), ErrNoSuchBucket if the bucket is another than it was when
// the request began. bucket is that one, 0 if there was none; m is what the object
// is to carry, nil if nobody says.
func (j *Judge) Write(k *keypath.Key, bucket record.Ino, m *record.ObjectMeta, at *keypath.Place, old *record.Inode) error {
	if bucket != 0 && j.Bucket != bucket {
		return fmt.Errorf("bucket of key %q was replaced: %w", k.Key, fserr.ErrNoSuchBucket)
	}
	if j.Free() {
		return nil
	}
	if err := j.Reach(k, at); err != nil {
		return err
	}
	act := ActWriteObject
	switch {
	case j.Bucket == 0:
		act = ActCreateBucket
	case old != nil && old.Ino == j.Bucket:
		act = ActDeleteBucket // the bucket's own content: its owner's
	}
	if err := j.Grants(act, nil); err != nil {
		return err
	}
	if act == ActCreateBucket && j.Key != "" { // policies may allow the one and not the other
		if _, err := j.byPolicies(ActWriteObject, j.Subject.policyAction(ActWriteObject), nil); err != nil {
			return err
		}
	}
	if err := j.Describes(act, m); err != nil {
		return err
	}
	switch {
	case old == nil:
		return j.Entry(at.Deepest(), nil)
	case k.Dir, old.IsRegular() && old.Nlink <= 1:
		return j.Mode(old, perm.AccessWrite)
	}
	if err := j.Mode(old, perm.AccessWrite); err != nil {
		return err
	}
	return j.Entry(at.Deepest(), old)
}

// What a request can ask for beside its action.
const (
	policyPutACL  = "s3:PutObjectAcl"
	policyPutTags = "s3:PutObjectTagging"
	policyGetTags = "s3:GetObjectTagging"
)

// Describes returns ErrAccess if a publication brings an ACL or tags, which policies
// know as actions of their own.
func (j *Judge) Describes(act Action, m *record.ObjectMeta) error {
	if m == nil || act != ActWriteObject || j.Free() || j.Subject.Local {
		return nil
	}
	if by, err := j.ByKeys(); err != nil || !by {
		return err
	}
	if len(m.Grants) > 0 {
		if err := j.grantsAs(act, policyPutACL, nil); err != nil {
			return err
		}
	}
	if m.Tags() != "" {
		return j.grantsAs(act, policyPutTags, nil)
	}
	return nil
}

// ReadsTags returns ErrAccess if the tags of n, which there are, may not be read by whoever reads n,
// since policies know that as an action of its own.
func (j *Judge) ReadsTags(n *record.Inode) error {
	if n.Object.Tags() == "" || j.Free() || j.Subject.Local {
		return nil
	}
	if by, err := j.ByKeys(); err != nil || !by {
		return err
	}
	return j.grantsAs(ActReadObject, policyGetTags, n)
}

// grantsLinked asks for an object that a symbolic link led to under its own key: a
// policy that opens, or closes, a prefix does so for what is there.
func (j *Judge) grantsLinked(act Action, n *record.Inode) error {
	if j.linked == "" || j.Free() {
		return nil
	}
	if by, err := j.ByKeys(); err != nil || !by {
		return err
	}
	asked := j.Key
	j.Key = j.linked
	err := j.Grants(act, n)
	j.Key = asked
	return err
}
