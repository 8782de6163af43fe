package iam

import (
	"context"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// Attach has a holder go by a managed policy, which is named by its ARN or name
// (IAM AttachUserPolicy, AttachGroupPolicy, AttachRolePolicy).
func (d *Directory) Attach(ctx context.Context, h Holder, arn string) error {
	return d.change(ctx, "Attach%Policy", h, arn, func(t cluster.Txn, f *found, p *record.Permissions) error {
		m, err := managedNamed(t, arn)
		if err != nil {
			return err
		}
		return hold(t, &p.Attached, m.ID, f.id, quota{"PoliciesPer" + h.Kind.String(), maxHeldPolicies})
	})
}

// Detach takes a managed policy from a holder (IAM DetachUserPolicy,
// DetachGroupPolicy).
func (d *Directory) Detach(ctx context.Context, h Holder, arn string) error {
	return d.change(ctx, "Detach%Policy", h, arn, func(t cluster.Txn, f *found, p *record.Permissions) error {
		m, err := managedNamed(t, arn)
		if err != nil {
			return err
		}
		if held, err := release(t, &p.Attached, m.ID, f.id); held || err != nil {
			return err
		}
		return fault(NoSuchEntity, "Policy %s was not found.", PolicyARN(m.Path, m.Name))
	})
}

// Attached returns the managed policies of a holder in order of their names (IAM
// ListAttachedUserPolicies, ListAttachedGroupPolicies).
func (d *Directory) Attached(ctx context.Context, h Holder) (list []Managed, err error) {
	err = d.view(ctx, d.aboutHolder(actionOf("ListAttached%Policies", h), h, ""), func(r cluster.Reader) error {
		list = nil
		_, p, err := d.permissions(r, h)
		if err != nil {
			return err
		}
		for _, id := range p.Attached {
			m, err := managedByID(r, id)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Managed) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// SetBoundary bounds what a user or role may do by a managed policy (IAM
// PutUserPermissionsBoundary, PutRolePermissionsBoundary).
func (d *Directory) SetBoundary(ctx context.Context, h Holder, arn string) error {
	return d.change(ctx, "Put%PermissionsBoundary", h, arn, func(t cluster.Txn, f *found, p *record.Permissions) error {
		m, err := managedNamed(t, arn)
		if err != nil {
			return err
		}
		if p.Boundary != "" {
			if err := setBacklink(t, p.Boundary, f.id, linkBounds, false); err != nil {
				return err
			}
		}
		p.Boundary = m.ID
		return setBacklink(t, m.ID, f.id, linkBounds, true)
	})
}

// DeleteBoundary lifts the boundary of a user or role (IAM
// DeleteUserPermissionsBoundary, DeleteRolePermissionsBoundary).
func (d *Directory) DeleteBoundary(ctx context.Context, h Holder) error {
	return d.change(ctx, "Delete%PermissionsBoundary", h, "", func(t cluster.Txn, f *found, p *record.Permissions) error {
		if p.Boundary == "" {
			return fault(NoSuchEntity, "%s %s does not have a permissions boundary set.", h.Kind, h.Name)
		}
		id := p.Boundary
		p.Boundary = ""
		return setBacklink(t, id, f.id, linkBounds, false)
	})
}

// Boundary returns the policy that bounds a user or role, false if none does.
func (d *Directory) Boundary(ctx context.Context, h Holder) (m Managed, is bool, err error) {
	err = d.view(ctx, d.aboutHolder(actionOf("Get%", h), h, ""), func(r cluster.Reader) error {
		_, p, err := d.permissions(r, h)
		if is = p.Boundary != ""; err != nil || !is {
			return err
		}
		m, err = managedByID(r, p.Boundary)
		return err
	})
	return m, is, err
}

// Entity is a user, group or role that a managed policy is attached to, or bounds.
type Entity struct {
	Holder
	ID     string
	Bounds bool
}

// Entities returns those of a policy, users first, in order of their names (IAM
// ListEntitiesForPolicy).
func (d *Directory) Entities(ctx context.Context, arn string) (list []Entity, err error) {
	err = d.view(ctx, d.aboutManaged("iam:ListEntitiesForPolicy", arn), func(r cluster.Reader) error {
		list = nil
		m, err := managedNamed(r, arn)
		if err != nil {
			return err
		}
		links, err := backlinks(r, m.ID)
		if err != nil {
			return err
		}
		for _, l := range links {
			e, err := d.entity(r, l.from)
			if err != nil {
				return err
			}
			for _, bounds := range []bool{false, true} {
				if e.Bounds = bounds; l.flags&(linkHolds<<b2i(bounds)) != 0 {
					list = append(list, e)
				}
			}
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b Entity) int {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, err
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *Directory) entity(r cluster.Reader, id string) (Entity, error) {
	switch {
	case strings.HasPrefix(id, record.GroupKind):
		g, err := groupByID(r, id)
		return Entity{Holder: Holder{InGroup, g.Name}, ID: id}, err
	case IsRole(id):
		x, err := roleByID(r, id)
		return Entity{Holder: Holder{InRole, x.Name}, ID: id}, err
	}
	u, err := d.users.WithID(r, users.ID(id))
	return Entity{Holder: Holder{User, u.Name}, ID: id}, err
}
