package iam

import (
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/policy"
)

// Principal returns the ID of whom a policy names: a user, a role, or a session of a
// role, which is the role's ID, a colon and the session's name. fserr.ErrNoSuchUser.
func (d *Directory) Principal(r cluster.Reader, name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, sessionARN); ok {
		role, session, _ := strings.Cut(rest, "/")
		x, err := roleNamed(r, role)
		return x.ID + ":" + session, notThere(err)
	}
	if path, role := nameOfARN(roleARN, storeARN(name)); path != "" {
		x, err := roleNamed(r, role)
		if err == nil && path != x.Path {
			err = fserr.ErrNoSuchUser
		}
		return x.ID, notThere(err)
	}
	if id, _, _ := strings.Cut(name, ":"); IsRole(id) {
		_, err := roleByID(r, id)
		return name, notThere(err)
	}
	u, err := d.users.Principal(r, name)
	return string(u.ID), err
}

// storeARN is an ARN with the store's account where it has none.
func storeARN(arn string) string {
	if rest, ok := strings.CutPrefix(arn, "arn:aws:iam:::"); ok {
		return "arn:aws:iam::" + Account + ":" + rest
	}
	return arn
}

// notThere reports what is missing as the lack of a user.
func notThere(err error) error {
	if missing(err) {
		return fserr.ErrNoSuchUser
	}
	return err
}

// trustee is Principal for the trust policy of a role, to which the store's account
// is all users and roles of the store.
func (d *Directory) trustee(r cluster.Reader, name string) (string, error) {
	if name == Account || name == rootARN {
		return Account, nil
	}
	id, err := d.Principal(r, name)
	if noSuchUser(err) {
		err = &policy.Error{Message: "Invalid principal in policy: \"AWS\":\"" + name + "\"", Detail: name}
	}
	return id, err
}

// Shown returns the ARN of whom a policy names by ID, the ID itself of who was removed.
func (d *Directory) Shown(r cluster.Reader, id string) (string, error) {
	if id == Account {
		return rootARN, nil
	}
	role, session, _ := strings.Cut(id, ":")
	if !IsRole(role) {
		return d.users.Shown(r, id)
	}
	x, err := roleByID(r, role)
	switch {
	case missing(err):
		return id, nil
	case session != "":
		return SessionARN(x.Name, session), err
	}
	return RoleARN(x.Path, x.Name), err
}
