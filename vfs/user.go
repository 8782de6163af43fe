package vfs

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
)

// User is an identity of the S3 and REST doors.
type User struct {
	// ID is given by the store, once; owners of uploads, grants and logs hold
	// it. "" in a user that is yet to be added.
	ID UserID
	// Name is what people and clients say; it may change, and be another's
	// after that.
	Name string
	// UID owns what the user writes. It is one user's, for good: files stay
	// when users go.
	UID   uint32
	GID   uint32
	Admin bool // may do everything, and owns what has no owner
	// Founder is the user that came with the store. What an operator makes
	// without saying for whom is that user's.
	Founder bool
	Keys    []AccessKey
	Created int64 // Unix nanoseconds; 0 for users of stores of format 1
	// removed is when the user was removed, 0 if not: the record stays, so
	// that ID and uid do.
	removed int64
	// locked are the secrets, as sealed, of those Keys that this process
	// cannot open; Secret is "" there.
	locked map[string]string
	// later are fields that a later program wrote, kept as they are.
	later []byte
}

// AccessKey is one pair of credentials of a user.
type AccessKey struct {
	ID string
	// Secret is "" in a key that is sealed with a cluster key which this
	// process has not: nobody may be let in by it.
	Secret  string
	Created int64 // Unix nanoseconds
}

const (
	maxUserNameBytes  = 255
	maxAccessKeyBytes = 255
	// maxUserKeys bounds the access keys of one user, so that a change of
	// them all fits one transaction of any engine.
	maxUserKeys = 32

	// FirstUID is where uids of users begin that nobody chose: above those
	// that systems give to people and services.
	FirstUID = 10000
	// endUID is behind the last that is given without being asked for: some
	// clients take uids for signed numbers.
	endUID = 1 << 31
	// endFloor is behind the last uid that the floor of freeUID may rise to: one
	// file of a huge uid in a store of format 1 leaves 2^30 to be given.
	endFloor = 1 << 30
	// NobodyUID owns what anonymous requests make (Linux's overflow uid). No
	// user has it.
	NobodyUID = 65534
	// noUID is "leave as it is" to chown.
	noUID = 1<<32 - 1
)

const (
	// userIDPrefix begins every user ID, as those of IAM.
	userIDPrefix = "AIDA"
	// userIDRandom characters of five random bits follow: 85 bits, so that no
	// two are ever the same.
	userIDRandom   = 17
	userIDAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

func newUserID() UserID {
	var b [userIDRandom]byte
	rand.Read(b[:])
	for i := range b {
		b[i] = userIDAlphabet[b[i]%byte(len(userIDAlphabet))]
	}
	return UserID(userIDPrefix + string(b[:]))
}

// looksLikeUserID reports whether s has the form of an ID. Names must not:
// doors take either.
func looksLikeUserID(s string) bool {
	random, ok := strings.CutPrefix(s, userIDPrefix)
	return ok && len(random) == userIDRandom && strings.Trim(random, userIDAlphabet) == ""
}

func (u *User) validate() error {
	if err := validUserName(u.Name); err != nil {
		return err
	}
	if len(u.Keys) > maxUserKeys {
		return fmt.Errorf("user %q with %d access keys, at most %d are allowed: %w", u.Name, len(u.Keys), maxUserKeys, ErrInvalid)
	}
	for i, k := range u.Keys {
		if k.ID == "" || len(k.ID) > maxAccessKeyBytes || len(k.Secret) > maxAccessKeyBytes {
			return fmt.Errorf("access key %q of user %q: ID and secret have 1 to %d bytes: %w", k.ID, u.Name, maxAccessKeyBytes, ErrInvalid)
		}
		if k.Secret == "" && u.locked[k.ID] == "" {
			return fmt.Errorf("access key %q of user %q has no secret: %w", k.ID, u.Name, ErrInvalid)
		}
		if slices.ContainsFunc(u.Keys[:i], func(o AccessKey) bool { return o.ID == k.ID }) {
			return fmt.Errorf("access key %q twice: %w", k.ID, ErrUserExists)
		}
	}
	return nil
}

func validUserName(name string) error {
	if name == "" || len(name) > maxUserNameBytes {
		return fmt.Errorf("user name of %d bytes, 1 to %d are allowed: %w", len(name), maxUserNameBytes, ErrInvalid)
	}
	if looksLikeUserID(name) {
		return fmt.Errorf("user name %q has the form of a user's ID: %w", name, ErrInvalid)
	}
	return nil
}

func (u *User) hasKey(id string) bool {
	return slices.ContainsFunc(u.Keys, func(k AccessKey) bool { return k.ID == id })
}
