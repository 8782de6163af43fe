package users

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Policies name users by ARNs, in which an account is a number of twelve digits.
// Here each user is an account of its own, and the uid is its number: it is one
// user's for good, as far as anything of a user is for good but the ID.

const (
	arnPrefix     = "arn:aws:iam::"
	accountDigits = 12
)

// AccountNumber is the number of the account of the user who has a uid.
func AccountNumber(uid uint32) string { return fmt.Sprintf("%0*d", accountDigits, uid) }

// IsAccountNumber reports whether s has the form of the number of an account.
func IsAccountNumber(s string) bool {
	return len(s) == accountDigits && strings.Trim(s, "0123456789") == ""
}

// ARN is the ARN of a user, who is looked for by the name of now.
func ARN(uid uint32, name string) string {
	return arnPrefix + AccountNumber(uid) + ":user/" + name
}

// NewARN is the ARN that policies go by for a user who is not there yet, whose
// account is not known.
func NewARN(name string) string { return arnPrefix + ":user/" + name }

// Principal returns the user whom a policy names: by ID, by the number of the
// account, or by an ARN, which may leave the account out. fserr.ErrNoSuchUser.
func (g *Registry) Principal(r cluster.Reader, name string) (User, error) {
	rest, isARN := strings.CutPrefix(name, arnPrefix)
	account, whose, _ := strings.Cut(rest, ":")
	switch {
	case record.LooksLikeUserID(name):
		return g.byID(r, ID(name))
	case !isARN:
		return g.byAccount(r, name)
	case whose == "root":
		return g.byAccount(r, account)
	}
	userName, ok := strings.CutPrefix(whose, "user/")
	if !ok {
		return User{}, noUser(nil, "principal %q", name)
	}
	u, err := g.byName(r, userName)
	if err == nil && account != "" && account != AccountNumber(u.UID) {
		return User{}, noUser(nil, "user %q of account %q", userName, account)
	}
	return u, err
}

func (g *Registry) byAccount(r cluster.Reader, account string) (User, error) {
	uid, err := strconv.ParseUint(account, 10, 32)
	if err != nil || len(account) != accountDigits {
		return User{}, noUser(nil, "account %q", account)
	}
	id, err := r.Get(record.UIDKey(uint32(uid)))
	if err != nil || id == nil {
		return User{}, noUser(err, "account %s", account)
	}
	return g.byID(r, ID(id))
}

// Shown returns the ARN of the user with an ID, the ID itself if that user was
// removed.
func (g *Registry) Shown(r cluster.Reader, id string) (string, error) {
	u, err := g.byID(r, ID(id))
	if errors.Is(err, fserr.ErrNoSuchUser) {
		return id, nil
	}
	return ARN(u.UID, u.Name), err
}
