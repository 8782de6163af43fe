package vfs

import (
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
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
func (fs *FS) uploadFor(ctx context.Context, r cluster.Reader, name *uploadName, act Action) (*record.Upload, error) {
	u, err := getUpload(r, name)
	if err != nil {
		return nil, err
	}
	j := fs.judge(ctx, r, u.Bucket)
	return u, j.upload(u, act)
}
