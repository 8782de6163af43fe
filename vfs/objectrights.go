package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// What the operations on objects ask their judge.

// keyJudge is judge for a key that was located.
func (fs *FS) keyJudge(ctx context.Context, r cluster.Reader, k *keypath.Key, at *keypath.Place) judge {
	bucket := at.Bucket(k)
	j := fs.judge(ctx, r, bucket.Ino)
	j.unpolicied = bucket.Tells&record.TellsPolicy == 0
	j.key = k.Below()
	if j.bucket == 0 {
		j.name = k.BucketName()
	}
	return j
}

// reach returns ErrAccess if the subject must not come to the key: a directory
// on the way denies, or the key lies outside of buckets, where only
// administrators and local users are.
func (j *judge) reach(k *keypath.Key, at *keypath.Place) error {
	if j.free() {
		return nil
	}
	if k.Bucket == "" && !j.s.Local && (len(k.Names) == 1 && !k.Dir || !ValidBucketName(k.Names[0])) {
		return fmt.Errorf("%w: only administrators use paths outside of buckets", ErrAccess)
	}
	return j.way(at.Trail)
}

// hide turns a missing key into ErrAccess for who may not list the bucket: they
// must not learn which keys exist.
func (j *judge) hide(missing error) error {
	if j.bucket == 0 {
		return missing
	}
	if err := j.grants(ActListObjects, nil); err != nil {
		return err
	}
	return missing
}

// objectFor returns the inode of an object on which the subject may do act.
// ErrNoSuchKey, ErrNoSuchBucket, ErrAccess.
func (fs *FS) objectFor(ctx context.Context, r cluster.Reader, k *keypath.Key, act Action) (*record.Inode, error) {
	_, n, err := fs.judgedObject(ctx, r, k, act)
	return n, err
}

// judgedObject is objectFor with its judge.
func (fs *FS) judgedObject(ctx context.Context, r cluster.Reader, k *keypath.Key, act Action) (j judge, n *record.Inode, err error) {
	at, err := keypath.Locate(r, k)
	if err != nil {
		return j, nil, err
	}
	j = fs.keyJudge(ctx, r, k, &at)
	if err := j.reach(k, &at); err != nil {
		return j, nil, err
	}
	n, err = j.objectInode(k, &at)
	if errors.Is(err, ErrNoSuchKey) {
		return j, nil, j.hide(err)
	}
	if err != nil {
		return j, nil, err
	}
	if err := j.grants(act, n); err != nil {
		return j, nil, err
	}
	if err := j.grantsLinked(act, n); err != nil {
		return j, nil, err
	}
	switch act {
	case ActReadObject:
		err = j.mode(n, AccessRead)
	case ActWriteObject:
		err = j.mode(n, AccessWrite)
	}
	return j, n, err
}

// write returns ErrAccess if the subject must not publish under a key where old
// is (nil: nothing), ErrNoSuchBucket if the bucket is another than it was when
// the request began.
func (j *judge) write(p *publication, at *keypath.Place, old *record.Inode) error {
	if p.bucket != 0 && j.bucket != p.bucket {
		return fmt.Errorf("bucket of key %q was replaced: %w", p.key.Key, ErrNoSuchBucket)
	}
	if p.meta != nil {
		if err := j.takesACL(p.meta.Grants); err != nil {
			return err
		}
	}
	if j.free() {
		return nil
	}
	if err := j.reach(p.key, at); err != nil {
		return err
	}
	act := ActWriteObject
	switch {
	case j.bucket == 0:
		act = ActCreateBucket
	case old != nil && old.Ino == j.bucket:
		act = ActDeleteBucket // the bucket's own content: its owner's
	}
	if err := j.grants(act, nil); err != nil {
		return err
	}
	if act == ActCreateBucket && j.key != "" { // policies may allow the one and not the other
		if _, err := j.byPolicies(ActWriteObject, j.s.policyAction(ActWriteObject), nil); err != nil {
			return err
		}
	}
	if err := j.describes(act, p.meta); err != nil {
		return err
	}
	switch {
	case old == nil:
		return j.entry(at.Deepest(), nil)
	case p.key.Dir, old.IsRegular() && old.Nlink <= 1:
		return j.mode(old, AccessWrite)
	}
	if err := j.mode(old, AccessWrite); err != nil {
		return err
	}
	return j.entry(at.Deepest(), old)
}

// What a request can ask for beside its action.
const (
	policyPutACL  = "s3:PutObjectAcl"
	policyPutTags = "s3:PutObjectTagging"
)

// describes returns ErrAccess if a publication brings an ACL or tags, which policies
// know as actions of their own.
func (j *judge) describes(act Action, m *ObjectMeta) error {
	if m == nil || act != ActWriteObject || j.free() || j.s.Local {
		return nil
	}
	if by, err := j.byKeys(); err != nil || !by {
		return err
	}
	if len(m.Grants) > 0 {
		if err := j.grantsAs(act, policyPutACL, nil); err != nil {
			return err
		}
	}
	if m.Headers[taggingHeader] != "" {
		return j.grantsAs(act, policyPutTags, nil)
	}
	return nil
}

// grantsLinked asks for an object that a symbolic link led to under its own key: a
// policy that opens, or closes, a prefix does so for what is there.
func (j *judge) grantsLinked(act Action, n *record.Inode) error {
	if j.linked == "" || j.free() {
		return nil
	}
	if by, err := j.byKeys(); err != nil || !by {
		return err
	}
	asked := j.key
	j.key = j.linked
	err := j.grants(act, n)
	j.key = asked
	return err
}

// remove returns ErrAccess or ErrPerm if the subject must not delete n under a
// key (nil: there is nothing).
func (j *judge) remove(k *keypath.Key, at *keypath.Place, n *record.Inode) error {
	if j.free() {
		return nil
	}
	if err := j.reach(k, at); err != nil {
		return err
	}
	act := ActDeleteObject
	if n != nil && n.Ino == j.bucket {
		act = ActDeleteBucket
	}
	if j.bucket == 0 && n == nil {
		return nil // no bucket, and nothing to delete
	}
	if err := j.grants(act, nil); err != nil || n == nil {
		return err
	}
	if k.Dir {
		empty, err := isEmpty(j.r, n.Ino)
		if err != nil {
			return err
		}
		if !empty { // it stays, without its content and its mark
			return j.mode(n, AccessWrite)
		}
	}
	return j.entry(at.Deepest(), n)
}

// flagsOf returns the flags of a directory that forbid something. It is only read
// if its entry tells that there are any.
func flagsOf(r cluster.Reader, d keypath.Step) (FileFlags, error) {
	if d.Tells&record.TellsFlags == 0 {
		return 0, nil
	}
	n, err := record.GetInode(r, d.Ino)
	if err != nil {
		return 0, err
	}
	return perm.FlagsOf(n) & perm.HeldFlags, nil
}

// flags is checkTarget's part that goes by FileFlags.
func (j *judge) flags(p *publication, at *keypath.Place, old *record.Inode) error {
	d, err := flagsOf(j.r, at.Deepest())
	switch {
	case err != nil:
		return err
	case old == nil && p.remove:
		return nil
	case old == nil:
		return d.CheckWritable()
	case p.remove, !p.key.Dir && (!old.IsRegular() || old.Nlink > 1):
		return d.CheckTake(perm.FlagsOf(old))
	}
	return perm.FlagsOf(old).CheckFree()
}
