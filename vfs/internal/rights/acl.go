package rights

import (
	"fmt"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Which ACLs a bucket takes, and what ownership controls make of who writes.

// TakesACL returns ErrAccess for an ACL that the bucket takes from nobody who comes
// through an object door, administrators included.
func (j *Judge) TakesACL(g record.Grants) error {
	if j.Subject == nil || j.Bucket == 0 || g == nil {
		return nil
	}
	if err := j.ownershipTakes(g); err != nil || !g.Public() {
		return err
	}
	b, err := j.bucketAttrs()
	if err == nil && accessBlock(b)&BlockPublicACLs != 0 {
		return fmt.Errorf("the bucket's public access block refuses ACLs that are public: %w", fserr.ErrAccess)
	}
	return err
}

// OwnerOfAll returns the bucket if its owner owns all objects in it.
func (j *Judge) OwnerOfAll() (*record.Inode, error) {
	if own, err := j.ownership(); err != nil || own != OwnershipEnforced {
		return nil, err
	}
	return j.bucketInode()
}

// Heir returns the bucket if its owner will own what is published with the ACL a;
// nil: who writes will. What a local user writes is the user's, as over POSIX.
func (j *Judge) Heir(a record.Grants) (*record.Inode, error) {
	own, err := j.ownership()
	if err != nil || own < OwnershipPreferred || j.Subject != nil && j.Subject.Local {
		return nil, err
	}
	if own == OwnershipPreferred {
		if len(a) == 0 {
			return nil, nil
		}
		if full, err := j.toBucketOwner(a); err != nil || !full {
			return nil, err
		}
	}
	return j.bucketInode()
}

// toBucketOwner reports whether an ACL says no more than that the bucket's owner, or
// that of the object, has full control: the canned ACL bucket-owner-full-control.
func (j *Judge) toBucketOwner(a record.Grants) (bool, error) {
	bucket, err := j.bucketInode()
	if err != nil {
		return false, err
	}
	for i := range a {
		switch g := &a[i]; {
		case g.Permission != record.PermFullControl:
			return false, nil
		case g.Grantee == record.GranteeOwner:
		case g.Grantee == record.GranteeUser:
			u, err := j.rules.Users.WithID(j.R, g.User)
			if err != nil || u.UID != bucket.UID {
				return false, err
			}
		default:
			return false, nil
		}
	}
	return len(a) > 0, nil
}

// ownershipTakes returns ErrACLsDisabled for an ACL that comes with an object to a
// bucket whose owner owns everything, unless it says just that.
func (j *Judge) ownershipTakes(a record.Grants) error {
	if own, err := j.ownership(); err != nil || own != OwnershipEnforced {
		return err
	}
	if full, err := j.toBucketOwner(a); err != nil || full {
		return err
	}
	return fmt.Errorf("%w: its owner owns everything in it", fserr.ErrACLsDisabled)
}

// SetsACL is TakesACL for an ACL that is set for itself, which such a bucket never
// takes.
func (j *Judge) SetsACL(a record.Grants) error {
	if own, err := j.ownership(); err != nil || own == OwnershipEnforced && j.Subject != nil {
		if err == nil {
			err = fmt.Errorf("%w: its owner owns everything in it", fserr.ErrACLsDisabled)
		}
		return err
	}
	return j.TakesACL(a)
}
