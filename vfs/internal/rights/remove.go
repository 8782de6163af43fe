package rights

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// Remove returns ErrAccess or ErrPerm if the subject must not delete n under a
// key (nil: there is nothing).
func (j *Judge) Remove(k *keypath.Key, at *keypath.Place, n *record.Inode) error {
	if j.Free() {
		return nil
	}
	if err := j.Reach(k, at); err != nil {
		return err
	}
	act := ActDeleteObject
	if n != nil && n.Ino == j.Bucket {
		act = ActDeleteBucket
	}
	if j.Bucket == 0 && n == nil {
		return nil // no bucket, and nothing to delete
	}
	if err := j.Grants(act, nil); err != nil || n == nil {
		return err
	}
	if k.Dir {
		used, err := record.AnyKey(j.R, record.DentryPrefix(n.Ino))
		if err != nil {
			return err
		}
		if used { // it stays, without its content and its mark
			return j.Mode(n, perm.AccessWrite)
		}
	}
	return j.Entry(at.Deepest(), n)
}

// RemoveEach is Remove for keys of one directory, of which nothing was read yet. The
// denials stand at the places of the keys that the subject must not delete. Where no
// policy distinguishes keys, one answer is that of all.
func (j *Judge) RemoveEach(keys []*keypath.Key, at *keypath.Place) (denials []error, err error) {
	by, err := j.ByKeys()
	if err != nil {
		return nil, err
	}
	denials = make([]error, len(keys))
	for i, k := range keys {
		if i > 0 && !by {
			denials[i] = denials[0]
			continue
		}
		if by {
			j.Key = k.Below()
		}
		if denials[i] = j.Remove(k, at, nil); denials[i] != nil && !IsDenial(denials[i]) {
			return nil, denials[i]
		}
	}
	return denials, nil
}

// RemoveAny returns ErrNoSuchBucket, or ErrAccess if no key of a bucket may be deleted.
func (u *Rules) RemoveAny(ctx context.Context, r cluster.Reader, bucket string) error {
	n, err := keypath.BucketInode(r, bucket)
	if err != nil {
		return err
	}
	j := u.OnBucket(ctx, r, n)
	if by, err := j.ByKeys(); by || err != nil {
		return err
	}
	return j.Grants(ActDeleteObject, nil)
}

// IsDenial reports whether err is that of a key that must not be deleted, which leaves
// the other keys of a transaction.
func IsDenial(err error) bool {
	return errors.Is(err, fserr.ErrAccess) || errors.Is(err, fserr.ErrPerm)
}

// HeldFlags returns the flags of a directory that forbid something. Its inode is only
// read if its entry says that there are any.
func HeldFlags(r cluster.Reader, d keypath.Step) (perm.FileFlags, error) {
	if d.DirBits&record.DirFlags == 0 {
		return 0, nil
	}
	n, err := record.GetInode(r, d.Ino)
	if err != nil {
		return 0, err
	}
	return perm.FlagsOf(n) & perm.HeldFlags, nil
}
