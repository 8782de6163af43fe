package users

import (
	"fmt"
	"slices"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// User is an identity of the S3 and REST doors.
type User = record.User

// AccessKey is one pair of credentials of a user.
type AccessKey = record.AccessKey

// ID identifies a user for good: it is never given twice, whatever becomes of
// the name.
type ID = record.UserID

// FirstUID is where uids of users begin that nobody chose.
const FirstUID = record.FirstUID

const (
	maxNameBytes      = 255
	maxAccessKeyBytes = 255
	// MaxKeys bounds the access keys of one user, so that a change of
	// them all fits one transaction of any engine.
	MaxKeys = 32

	// endUID is after the last uid that is given without being asked for: some
	// clients take uids for signed numbers.
	endUID = 1 << 31
	// noUID is "leave as it is" to chown.
	noUID = 1<<32 - 1
)

func validate(u *User) error {
	if err := validName(u.Name); err != nil {
		return err
	}
	if len(u.Keys) > MaxKeys {
		return fmt.Errorf("user %q with %d access keys, at most %d are allowed: %w", u.Name, len(u.Keys), MaxKeys, fserr.ErrInvalid)
	}
	for i, k := range u.Keys {
		if k.ID == "" || len(k.ID) > maxAccessKeyBytes || len(k.Secret) > maxAccessKeyBytes {
			return fmt.Errorf("access key %q of user %q: ID and secret have 1 to %d bytes: %w", k.ID, u.Name, maxAccessKeyBytes, fserr.ErrInvalid)
		}
		if k.Secret == "" && u.SealedSecret(k.ID) == "" {
			return fmt.Errorf("access key %q of user %q has no secret: %w", k.ID, u.Name, fserr.ErrInvalid)
		}
		if slices.ContainsFunc(u.Keys[:i], func(o AccessKey) bool { return o.ID == k.ID }) {
			return fmt.Errorf("access key %q twice: %w", k.ID, fserr.ErrUserExists)
		}
	}
	return nil
}

func validName(name string) error {
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("user name of %d bytes, 1 to %d are allowed: %w", len(name), maxNameBytes, fserr.ErrInvalid)
	}
	if record.LooksLikeUserID(name) {
		return fmt.Errorf("user name %q has the form of a user's ID: %w", name, fserr.ErrInvalid)
	}
	return nil
}
