package rights

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// Began reports whether s began u. Records older than format 2 hold the uid
// alone.
func Began(s *Subject, u *record.Upload) bool {
	if u.By.User == "" {
		return u.UID == s.UID
	}
	return u.By.User == s.User
}

// upload returns ErrAccess if the subject must not do act with u: those who
// may are who began it, the bucket's owner and administrators. Who goes on with
// it needs the right to write as well.
func (j *Judge) upload(u *record.Upload, act Action) error {
	if j.Free() {
		return nil
	}
	if e, err := j.byPolicies(act, j.Subject.policyAction(act), nil); err != nil || e == policy.Allow {
		return err // as S3 has it, also with another's
	}
	if !Began(j.Subject, u) {
		owner, err := j.ownsBucket()
		if err != nil {
			return err
		}
		if !owner {
			return fmt.Errorf("upload of another: %w", fserr.ErrAccess)
		}
	}
	return j.Grants(act, nil)
}

// Upload reads an upload with which the subject may do act: ActOwnUpload or
// ActWriteObject. ErrNoSuchUpload, ErrNoSuchBucket, ErrAccess.
func (u *Rules) Upload(ctx context.Context, r cluster.Reader, name *keypath.UploadKey, act Action) (*record.Upload, error) {
	up, err := keypath.GetUpload(r, name)
	if err != nil {
		return nil, err
	}
	j := u.On(ctx, r, up.Bucket)
	j.Key = name.Object.Below()
	return up, j.upload(up, act)
}

// Completed reads what became of an upload that was completed, for who could complete it.
// ErrNoSuchUpload, ErrNoSuchBucket, ErrAccess.
func (u *Rules) Completed(ctx context.Context, r cluster.Reader, name *keypath.UploadKey) (*record.Completed, error) {
	c, bucket, err := keypath.GetCompleted(r, name)
	if err != nil {
		return nil, err
	}
	j := u.On(ctx, r, bucket)
	j.Key = name.Object.Below()
	return c, j.upload(&record.Upload{UID: c.UID, By: record.Initiator{User: c.User}}, ActWriteObject)
}

// SeesUploads reports whether the subject sees the uploads of others: the owner, and
// whom the policy lets list them.
func (j *Judge) SeesUploads() (bool, error) {
	e, err := j.byPolicies(ActListObjects, j.Subject.policyAction(ActListObjects), nil)
	if err != nil || e == policy.Allow {
		return err == nil, err
	}
	return j.ownsBucket()
}
