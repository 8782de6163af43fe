package iam

import (
	"context"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// Bounds of roles (IAM). Times are in seconds.
const (
	maxTrust       = 2048 // without white space
	maxRoleName    = 64
	minSession     = 900
	defaultSession = 3600
	minMaxSession  = 3600
	maxMaxSession  = 43200
	maxChained     = defaultSession // of who is in a session of a role already
)

// NewRole is a role to be made.
type NewRole struct {
	Name, Path, Description string
	Trust                   []byte // who may assume it
	MaxSession              int    // seconds; 0 is an hour
	Boundary                string // ARN of a managed policy, "" for none
}

// CreateRole makes a role; an empty path is "/". *policy.Error (IAM CreateRole).
func (d *Directory) CreateRole(ctx context.Context, n NewRole) (x Role, err error) {
	if n.MaxSession == 0 {
		n.MaxSession = defaultSession
	}
	path, err := validPath(n.Path)
	if err == nil {
		err = validName("roleName", n.Name, maxRoleName)
	}
	if err == nil {
		err = validRole(n.Description, n.MaxSession)
	}
	if err != nil {
		return x, err
	}
	ask := func(r cluster.Reader) (a Ask, err error) {
		a = Ask{Action: "iam:CreateRole", Resource: RoleARN(path, n.Name)}
		if n.Boundary != "" {
			a.Boundary, err = managedARN(r, n.Boundary)
		}
		return a, err
	}
	err = d.update(ctx, ask, func(t cluster.Txn, nowNS int64) error {
		x = Role{ID: record.NewID(record.RoleKind), Name: n.Name, Path: path, Description: n.Description, Created: nowNS, MaxSession: n.MaxSession}
		if err := takeName(t, record.RoleKind, "Role", n.Name, x.ID); err != nil {
			return err
		}
		if x.Trust, err = d.keptTrust(t, n.Trust); err != nil {
			return err
		}
		if x.UID, err = d.users.RoleUID(t, x.ID); err != nil {
			return err
		}
		if err := d.firstBoundary(t, x.ID, n.Boundary); err != nil {
			return err
		}
		return putRole(t, &x)
	})
	return x, err
}

// firstBoundary bounds an identity that holds nothing yet.
func (d *Directory) firstBoundary(t cluster.Txn, id, arn string) error {
	if arn == "" {
		return nil
	}
	m, err := managedNamed(t, arn)
	if err != nil {
		return err
	}
	if err := putPermissions(t, id, &record.Permissions{Boundary: m.ID}); err != nil {
		return err
	}
	return setBacklink(t, m.ID, id, linkBounds, true)
}

func validRole(description string, maxSession int) error {
	if len(description) > maxDescription {
		return fault(ValidationError, "1 validation error detected: Value at 'description' failed to satisfy constraint: Member must have length less than or equal to %d", maxDescription)
	}
	if maxSession < minMaxSession || maxSession > maxMaxSession {
		return fault(ValidationError, "1 validation error detected: Value '%d' at 'maxSessionDuration' failed to satisfy constraint: Member must have value between %d and %d", maxSession, minMaxSession, maxMaxSession)
	}
	return nil
}

// keptTrust returns a trust policy as it is kept: identities by ID.
func (d *Directory) keptTrust(r cluster.Reader, text []byte) ([]byte, error) {
	if weight(text) > maxTrust {
		return nil, fault(LimitExceeded, "Cannot exceed quota for ACLSizePerRole: %d", maxTrust)
	}
	if _, err := compileTrust(text); err != nil {
		return nil, err
	}
	kept, err := policy.Rewrite(text, func(name string) (string, error) { return d.trustee(r, name) })
	if err == nil {
		_, err = compileTrust(kept)
	}
	return kept, err
}

func putRole(t cluster.Txn, x *Role) error { return t.Set(record.RoleKey(x.ID), x.Encode()) }

// RoleOfUID returns the role that a uid is of, for callers that show an owner; ErrNotExist.
func (d *Directory) RoleOfUID(ctx context.Context, uid uint32) (x Role, err error) {
	err = d.store.View(ctx, func(r cluster.Reader) error {
		id, err := r.Get(record.UIDKey(uid))
		if err != nil {
			return err
		}
		x, err = roleByID(r, string(id))
		return err
	})
	return x, err
}

// aboutRole is an act on a role.
func (d *Directory) aboutRole(action, name string) func(cluster.Reader) (Ask, error) {
	return d.aboutHolder("iam:"+action, Holder{InRole, name}, "")
}

// shown has the trust policy name identities as they are called now.
func (d *Directory) shown(r cluster.Reader, x *Role) (err error) {
	x.Trust, err = policy.Rewrite(x.Trust, func(id string) (string, error) { return d.Shown(r, id) })
	return err
}

// Role returns a role (IAM GetRole).
func (d *Directory) Role(ctx context.Context, name string) (x Role, err error) {
	err = d.view(ctx, d.aboutRole("GetRole", name), func(r cluster.Reader) (err error) {
		if x, err = roleNamed(r, name); err != nil {
			return err
		}
		return d.shown(r, &x)
	})
	return x, err
}

// Roles returns all roles in order of their names (IAM ListRoles).
func (d *Directory) Roles(ctx context.Context) (list []Role, err error) {
	err = d.view(ctx, about("iam:ListRoles", RoleARN("/", "*")), func(r cluster.Reader) error {
		list = nil
		from, to := record.Table(record.TabRole)
		err := r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			x, err := record.DecodeRole(string(k[1:]), v)
			list = append(list, x)
			return err
		})
		for i := range list {
			if err == nil {
				err = d.shown(r, &list[i])
			}
		}
		return err
	})
	slices.SortFunc(list, func(a, b Role) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

func (d *Directory) changeRole(ctx context.Context, action, name string, fn func(t cluster.Txn, x *Role) error) error {
	return d.update(ctx, d.aboutRole(action, name), func(t cluster.Txn, _ int64) error {
		x, err := roleNamed(t, name)
		if err != nil {
			return err
		}
		if err := fn(t, &x); err != nil {
			return err
		}
		return putRole(t, &x)
	})
}

// UpdateRole changes the description of a role, and its longest session in seconds; nil
// leaves either (IAM UpdateRole, UpdateRoleDescription).
func (d *Directory) UpdateRole(ctx context.Context, name string, description *string, maxSession *int) error {
	return d.changeRole(ctx, "UpdateRole", name, func(_ cluster.Txn, x *Role) error {
		if description != nil {
			x.Description = *description
		}
		if maxSession != nil {
			x.MaxSession = *maxSession
		}
		return validRole(x.Description, x.MaxSession)
	})
}

// SetTrust replaces who may assume a role. *policy.Error (IAM UpdateAssumeRolePolicy).
func (d *Directory) SetTrust(ctx context.Context, name string, text []byte) error {
	return d.changeRole(ctx, "UpdateAssumeRolePolicy", name, func(t cluster.Txn, x *Role) (err error) {
		x.Trust, err = d.keptTrust(t, text)
		return err
	})
}

// DeleteRole removes a role that holds no policies; its sessions end. Its uid stays
// taken: files may still name it (IAM DeleteRole).
func (d *Directory) DeleteRole(ctx context.Context, name string) error {
	return d.update(ctx, d.aboutRole("DeleteRole", name), func(t cluster.Txn, _ int64) error {
		x, err := roleNamed(t, name)
		if err != nil {
			return err
		}
		p, err := record.GetPermissions(t, x.ID)
		switch {
		case err != nil:
			return err
		case len(p.Inline) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must delete policies first.")
		case len(p.Attached) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must detach all policies first.")
		}
		return d.dropRole(t, &x)
	})
}

// dropRole removes a role with what it holds.
func (d *Directory) dropRole(t cluster.Txn, x *Role) error {
	if err := d.forget(t, users.ID(x.ID)); err != nil {
		return err
	}
	if err := t.Delete(record.IAMNameKey(record.RoleKind, x.Name)); err != nil {
		return err
	}
	return t.Delete(record.RoleKey(x.ID))
}
