package iam

import (
	"context"
	"errors"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// Ask is what somebody wants to do to an identity, a group or a policy.
type Ask struct {
	Action   string // such as "iam:CreateGroup"
	Resource string // ARN
	// Named is the ARN that whom it is refused is shown: it says no more than the name
	// that was given, so that what is there looks like what is not. "": Resource.
	Named string
	// Admin reports whether it is about an administrator, to whom policies do not
	// apply: only administrators may do that.
	Admin bool
	// PolicyARN is the managed policy that is attached or detached, "" if none is
	// (condition key iam:PolicyARN).
	PolicyARN string
	// Boundary is the policy that bounds who is made, "" if none does (condition
	// key iam:PermissionsBoundary).
	Boundary string
}

// Judge returns an error unless the caller, as the context says, may do it. It
// reads from r alone.
type Judge func(ctx context.Context, r cluster.Reader, a Ask) error

// Directory is the groups, roles, policies and sessions of one namespace. It is safe for concurrent
// use.
type Directory struct {
	store users.Store
	users *users.Registry
	may   Judge
	cache cache
	// tokens are those of sessions, whose time goes by now.
	tokens sealer
	now    func() time.Time
}

// Config of a Directory.
type Config struct {
	Store users.Store
	Users *users.Registry
	May   Judge
	// Secret returns a secret of the store's own.
	Secret func(ctx context.Context, name string) ([]byte, error)
	Now    func() time.Time
}

// New returns the directory of a store, and has what users hold removed with them.
func New(c Config) *Directory {
	d := &Directory{store: c.Store, users: c.Users, may: c.May, tokens: sealer{secret: c.Secret}, now: c.Now}
	c.Users.OnRemove(d.forget)
	return d
}

// view runs fn on one snapshot if the act is allowed in it.
func (d *Directory) view(ctx context.Context, ask func(r cluster.Reader) (Ask, error), fn func(r cluster.Reader) error) error {
	return d.store.View(ctx, func(r cluster.Reader) error {
		if err := d.allowed(ctx, r, ask); err != nil {
			return err
		}
		return fn(r)
	})
}

// update runs fn in a transaction in which the act is allowed, and moves the
// revision.
func (d *Directory) update(ctx context.Context, ask func(r cluster.Reader) (Ask, error), fn func(t cluster.Txn, nowNS int64) error) error {
	return d.store.Update(ctx, func(t cluster.Txn, nowNS int64) error {
		if err := d.allowed(ctx, t, ask); err != nil {
			return err
		}
		if err := fn(t, nowNS); err != nil {
			return err
		}
		return t.Set(record.RevisionKey(), record.NewRevision())
	})
}

// allowed judges what is asked. What is not there is judged by the name that was given: the
// act, which looks for it again, reports it as missing to those who may know.
func (d *Directory) allowed(ctx context.Context, r cluster.Reader, ask func(r cluster.Reader) (Ask, error)) error {
	a, err := ask(r)
	if err != nil {
		return err
	}
	return d.may(ctx, r, a)
}

// about is an act whose resource is known without a look at the store.
func about(action, resource string) func(cluster.Reader) (Ask, error) {
	return func(cluster.Reader) (Ask, error) { return Ask{Action: action, Resource: resource}, nil }
}

func noSuchUser(err error) bool { return errors.Is(err, fserr.ErrNoSuchUser) }

// missing reports whether an error is that what was named is not there.
func missing(err error) bool { return errors.Is(err, fserr.ErrNotExist) }

// NoUser is the error for the name of a user that nobody has.
func NoUser(name string) error {
	return fault(NoSuchEntity, "The user with name %s cannot be found.", name)
}

// forget removes what a user holds who is removed.
func (d *Directory) forget(t cluster.Txn, id users.ID) error {
	p, err := record.GetPermissions(t, string(id))
	if err != nil || p.Empty() {
		return err
	}
	for _, to := range append(append(p.Groups, p.Attached...), p.Boundary) {
		if to == "" {
			continue
		}
		if err := t.Delete(record.BacklinkKey(to, string(id))); err != nil {
			return err
		}
	}
	if err := t.Delete(record.PermissionsKey(string(id))); err != nil {
		return err
	}
	return t.Set(record.RevisionKey(), record.NewRevision())
}
