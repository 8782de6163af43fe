package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// began reports whether s began u. Records older than format 2 hold the uid
// alone.
func (s *Subject) began(u *record.Upload) bool {
	if u.By.User == "" {
		return u.UID == s.UID
	}
	return u.By.User == s.User
}

// upload returns ErrAccess if the subject must not do act with u: those who
// may are who began it, the bucket's owner and administrators. Who goes on with
// it needs the right to write as well.
func (j *judge) upload(u *record.Upload, act Action) error {
	if j.free() {
		return nil
	}
	if e, err := j.byPolicies(act, j.s.policyAction(act), nil); err != nil || e == policy.Allow {
		return err // as S3 has it, also with another's
	}
	if !j.s.began(u) {
		owner, err := j.ownsBucket()
		if err != nil {
			return err
		}
		if !owner {
			return fmt.Errorf("upload of another: %w", ErrAccess)
		}
	}
	return j.grants(act, nil)
}

// uploadFor reads an upload with which the subject may do act: ActOwnUpload or
// ActWriteObject. ErrNoSuchUpload, ErrNoSuchBucket, ErrAccess.
func (fs *FS) uploadFor(ctx context.Context, r cluster.Reader, name *keypath.UploadKey, act Action) (*record.Upload, error) {
	u, err := keypath.GetUpload(r, name)
	if err != nil {
		return nil, err
	}
	j := fs.judge(ctx, r, u.Bucket)
	j.key = name.Object.Below()
	return u, j.upload(u, act)
}

// seesUploads reports whether the subject sees the uploads of others: the owner, and
// whom the policy lets list them.
func (j *judge) seesUploads() (bool, error) {
	e, err := j.byPolicies(ActListObjects, j.s.policyAction(ActListObjects), nil)
	if err != nil || e == policy.Allow {
		return err == nil, err
	}
	return j.ownsBucket()
}
