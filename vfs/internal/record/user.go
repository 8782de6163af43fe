package record

import (
	"crypto/rand"
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
	// sealed are the secrets, as stored, of those Keys that this process
	// cannot open; Secret is "" there.
	sealed map[string]string
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

// Uids of users.
const (
	// FirstUID is where uids of users begin that nobody chose: above those
	// that systems give to people and services.
	FirstUID = 10000
	// NobodyUID owns what anonymous requests make (Linux's overflow uid). No
	// user has it.
	NobodyUID = 65534
	// EndUIDFloor is after the last uid that CounterUID may ask to begin at: one
	// file of a huge uid in a store of format 1 leaves 2^30 to be given.
	EndUIDFloor = 1 << 30
)

// HasKey reports whether u has the access key of an ID.
func (u *User) HasKey(id string) bool {
	return slices.ContainsFunc(u.Keys, func(k AccessKey) bool { return k.ID == id })
}

// SealedSecret returns the secret of an access key as it is stored, if this
// process cannot open it, else "".
func (u *User) SealedSecret(key string) string { return u.sealed[key] }

// Locked are the IDs of the access keys whose secrets cannot be opened.
func (u *User) Locked() (ids []string) {
	for _, k := range u.Keys {
		if u.sealed[k.ID] != "" {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// Remove makes u the record of a user who was removed: ID, name, uid and gid stay.
func (u *User) Remove(nowNS int64) {
	u.Keys, u.Admin, u.Founder, u.removed = nil, false, false, nowNS
}

// Removed reports whether the user was removed.
func (u *User) Removed() bool { return u.removed != 0 }

const (
	// userIDPrefix begins every user ID, as those of IAM.
	userIDPrefix = "AIDA"
	// userIDRandom characters of five random bits follow: 85 bits, so that no
	// two are ever the same.
	userIDRandom   = 17
	userIDAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// NewUserID returns an ID that no user has.
func NewUserID() UserID { return UserID(userIDPrefix + randomID()) }

// randomID is what follows the letters of the kind.
func randomID() string {
	var b [userIDRandom]byte
	rand.Read(b[:])
	for i := range b {
		b[i] = userIDAlphabet[b[i]%byte(len(userIDAlphabet))]
	}
	return string(b[:])
}

// LooksLikeUserID reports whether s has the form of an ID. Names must not:
// doors take either.
func LooksLikeUserID(s string) bool {
	random, ok := strings.CutPrefix(s, userIDPrefix)
	return ok && len(random) == userIDRandom && strings.Trim(random, userIDAlphabet) == ""
}
