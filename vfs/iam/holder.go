package iam

import (
	"context"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// HolderKind is what can hold policies.
type HolderKind int

// The kinds of holders.
const (
	User HolderKind = iota
	InGroup
	InRole
)

// String is the kind as actions of IAM name it.
func (k HolderKind) String() string { return [...]string{"User", "Group", "Role"}[k] }

// Holder is a user, group or role, by name.
type Holder struct {
	Kind HolderKind
	Name string
}

// arn is the ARN of a holder as far as its name says: at the path "/", of a user without
// the account.
func (h Holder) arn() string {
	switch h.Kind {
	case InGroup:
		return GroupARN("/", h.Name)
	case InRole:
		return RoleARN("/", h.Name)
	}
	return users.NewARN(h.Name)
}

// found is a holder with its ID.
type found struct {
	id, arn string
	admin   bool
}

// find looks a holder up.
func (d *Directory) find(r cluster.Reader, h Holder) (found, error) {
	switch h.Kind {
	case InGroup:
		g, err := groupNamed(r, h.Name)
		return found{id: g.ID, arn: GroupARN(g.Path, g.Name)}, err
	case InRole:
		x, err := roleNamed(r, h.Name)
		return found{id: x.ID, arn: RoleARN(x.Path, x.Name)}, err
	}
	u, err := d.users.Named(r, h.Name)
	if noSuchUser(err) {
		err = NoUser(h.Name)
	}
	return found{string(u.ID), userARN(&u), u.Admin}, err
}

// aboutHolder is an act on a holder, and on the managed policy that it names, if any.
func (d *Directory) aboutHolder(action string, h Holder, policy string) func(cluster.Reader) (Ask, error) {
	return func(r cluster.Reader) (a Ask, err error) {
		f, err := d.find(r, h)
		if missing(err) {
			f, err = found{arn: h.arn()}, nil
		}
		a = Ask{Action: action, Resource: f.arn, Named: h.arn(), Admin: f.admin}
		if policy != "" && err == nil {
			a.PolicyARN, err = managedARN(r, policy)
		}
		return a, err
	}
}

// permissions reads what a holder has.
func (d *Directory) permissions(r cluster.Reader, h Holder) (found, record.Permissions, error) {
	f, err := d.find(r, h)
	if err != nil {
		return f, record.Permissions{}, err
	}
	p, err := record.GetPermissions(r, f.id)
	return f, p, err
}

// change changes what a holder has; policy names the managed policy that it is about,
// if any.
func (d *Directory) change(ctx context.Context, verb string, h Holder, policy string, fn func(t cluster.Txn, f *found, p *record.Permissions) error) error {
	return d.update(ctx, d.aboutHolder(actionOf(verb, h), h, policy), func(t cluster.Txn, _ int64) error {
		f, p, err := d.permissions(t, h)
		if err != nil {
			return err
		}
		if err := fn(t, &f, &p); err != nil {
			return err
		}
		return putPermissions(t, f.id, &p)
	})
}

// actionOf puts the kind of holder into a verb: "Put%Policy" is iam:PutUserPolicy.
func actionOf(verb string, h Holder) string {
	return "iam:" + strings.Replace(verb, "%", h.Kind.String(), 1)
}
