package s3

import (
	"errors"
	"strconv"

	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// owner is a user as S3's XML shows one: by the ID, which stays, and the name,
// which may change.
type owner struct {
	id   string
	name string
}

// is reports whether a client that says s means o. Names are taken where they
// are compared at once, for people who type them.
func (o owner) is(s string) bool { return s != "" && (s == o.id || s == o.name) }

func (i identity) owner() owner { return owner{string(i.id()), i.name()} }

// ownerOf returns the user or role with that uid. An owner that is neither (a local
// account that wrote through a mount, or one that was removed) is shown by
// number.
func (q *request) ownerOf(uid uint32) owner {
	if q.id.user != nil && q.id.user.UID == uid {
		return q.id.owner()
	}
	u, err := q.fs.Users().ByUID(q.ctx, uid)
	if err == nil {
		return owner{string(u.ID), u.Name}
	}
	x, err := q.fs.IAM().RoleOfUID(q.ctx, uid)
	if err != nil {
		number := "uid:" + strconv.FormatUint(uint64(uid), 10)
		return owner{number, number}
	}
	return owner{x.ID, x.Name}
}

// ownedBy reports whether want names who owns what has that uid: by ID, by name, or, as
// Amazon's clients do, by the number of the account. A name that has the form of such a
// number means the account.
func (q *request) ownedBy(uid uint32, want string) bool {
	o := q.ownerOf(uid)
	if !users.IsAccountNumber(want) {
		return o.is(want)
	}
	if iam.IsRole(o.id) {
		return want == iam.Account
	}
	return want == users.AccountNumber(uid)
}

// granteeOf returns the user of a grant. One that was removed has no name.
func (q *request) granteeOf(id vfs.UserID) owner {
	u, err := q.fs.Users().ByID(q.ctx, id)
	if err != nil {
		return owner{id: string(id)}
	}
	return owner{string(id), u.Name}
}

// userNamed finds a user by ID, or else by the name of now.
func (q *request) userNamed(s string) (users.User, error) {
	u, err := q.fs.Users().ByID(q.ctx, vfs.UserID(s))
	if errors.Is(err, vfs.ErrNoSuchUser) {
		u, err = q.fs.Users().ByName(q.ctx, s)
	}
	return u, err
}

// owner writes an Owner or Initiator element.
func (x *xmlWriter) owner(element string, o owner) {
	x.open(element)
	x.str("ID", o.id)
	x.str("DisplayName", o.name)
	x.end(element)
}
