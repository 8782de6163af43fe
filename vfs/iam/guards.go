package iam

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// What the registry of users asks before it acts (users.Guarded).

// May returns a function for users.Guarded: whether the caller may do something to the
// user of a name. A user who is not there yet is named as it will be.
func (d *Directory) May(action, user string) func(ctx context.Context, r cluster.Reader) error {
	about := d.aboutHolder(action, Holder{User, user}, "")
	return func(ctx context.Context, r cluster.Reader) error { return d.allowed(ctx, r, about) }
}

// MayRename is May for a user who gets another name, with which come the rights that
// policies give to that name: it must be allowed for both (IAM UpdateUser).
func (d *Directory) MayRename(user, to string) func(ctx context.Context, r cluster.Reader) error {
	const action = "iam:UpdateUser"
	may := d.May(action, user)
	return func(ctx context.Context, r cluster.Reader) error {
		if err := may(ctx, r); err != nil {
			return err
		}
		u, err := d.users.Named(r, user)
		if err != nil {
			return err
		}
		u.Name = to
		return d.may(ctx, r, Ask{Action: action, Resource: userARN(&u), Named: users.NewARN(to)})
	}
}

// MayDelete is May for the removal of a user, who must have neither keys nor policies
// nor groups left (IAM DeleteUser).
func (d *Directory) MayDelete(user string) func(ctx context.Context, r cluster.Reader) error {
	may := d.May("iam:DeleteUser", user)
	return func(ctx context.Context, r cluster.Reader) error {
		if err := may(ctx, r); err != nil {
			return err
		}
		u, err := d.users.Named(r, user)
		if noSuchUser(err) {
			return NoUser(user)
		}
		if err != nil {
			return err
		}
		p, err := record.GetPermissions(r, string(u.ID))
		switch {
		case err != nil:
			return err
		case len(u.Keys) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must delete access keys first.")
		case len(p.Inline) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must delete policies first.")
		case len(p.Attached) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must detach all policies first.")
		case len(p.Groups) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must remove users from group first.")
		}
		return nil
	}
}
