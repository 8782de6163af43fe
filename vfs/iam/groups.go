package iam

import (
	"context"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// maxGroups bounds the groups of one user (IAM).
const maxGroups = 10

// CreateGroup makes a group; an empty path is "/" (IAM CreateGroup).
func (d *Directory) CreateGroup(ctx context.Context, name, path string) (Group, error) {
	var g Group
	path, err := validPath(path)
	if err == nil {
		err = validName("groupName", name, maxName)
	}
	if err != nil {
		return g, err
	}
	err = d.update(ctx, about("iam:CreateGroup", GroupARN(path, name)), func(t cluster.Txn, nowNS int64) error {
		g = Group{ID: record.NewID(record.GroupKind), Name: name, Path: path, Created: nowNS}
		if err := takeName(t, record.GroupKind, "Group", name, g.ID); err != nil {
			return err
		}
		return t.Set(record.GroupKey(g.ID), g.Encode())
	})
	return g, err
}

// aboutGroup is an act on a group.
func (d *Directory) aboutGroup(action, name string) func(cluster.Reader) (Ask, error) {
	return d.aboutHolder(action, Holder{InGroup, name}, "")
}

// Group returns a group and its users in order of their names (IAM GetGroup).
func (d *Directory) Group(ctx context.Context, name string) (g Group, members []users.User, err error) {
	err = d.view(ctx, d.aboutGroup("iam:GetGroup", name), func(r cluster.Reader) (err error) {
		if g, err = groupNamed(r, name); err != nil {
			return err
		}
		members, err = d.members(r, g.ID)
		return err
	})
	return g, members, err
}

func (d *Directory) members(r cluster.Reader, group string) ([]users.User, error) {
	links, err := backlinks(r, group)
	if err != nil {
		return nil, err
	}
	var list []users.User
	for _, l := range links {
		u, err := d.users.WithID(r, users.ID(l.from))
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b users.User) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Groups returns all groups in order of their names (IAM ListGroups).
func (d *Directory) Groups(ctx context.Context) (list []Group, err error) {
	err = d.view(ctx, about("iam:ListGroups", GroupARN("/", "*")), func(r cluster.Reader) error {
		list = nil
		from, to := record.Table(record.TabGroup)
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			g, err := record.DecodeGroup(string(k[1:]), v)
			list = append(list, g)
			return err
		})
	})
	slices.SortFunc(list, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// RenameGroup gives a group another name or path, "" leaves either. The act must be allowed
// for what the group was and for what it becomes (IAM UpdateGroup).
func (d *Directory) RenameGroup(ctx context.Context, name, to, path string) error {
	if to == "" {
		to = name
	}
	if err := validName("newGroupName", to, maxName); err != nil {
		return err
	}
	checked, err := validPath(path)
	if err != nil {
		return err
	}
	const action = "iam:UpdateGroup"
	return d.update(ctx, d.aboutGroup(action, name), func(t cluster.Txn, _ int64) error {
		g, err := groupNamed(t, name)
		if err != nil {
			return err
		}
		if g.Name = to; path != "" {
			g.Path = checked
		}
		if err := d.may(ctx, t, Ask{Action: action, Resource: GroupARN(g.Path, to), Named: GroupARN(checked, to)}); err != nil {
			return err
		}
		if err := t.Delete(record.IAMNameKey(record.GroupKind, name)); err != nil {
			return err
		}
		if err := takeName(t, record.GroupKind, "Group", to, g.ID); err != nil {
			return err
		}
		return t.Set(record.GroupKey(g.ID), g.Encode())
	})
}

// DeleteGroup removes a group that has neither users nor policies (IAM DeleteGroup).
func (d *Directory) DeleteGroup(ctx context.Context, name string) error {
	return d.update(ctx, d.aboutGroup("iam:DeleteGroup", name), func(t cluster.Txn, _ int64) error {
		g, err := groupNamed(t, name)
		if err != nil {
			return err
		}
		p, err := record.GetPermissions(t, g.ID)
		if err != nil {
			return err
		}
		links, err := backlinks(t, g.ID)
		switch {
		case err != nil:
			return err
		case len(links) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must remove users from group first.")
		case len(p.Inline) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must delete policies first.")
		case len(p.Attached) > 0:
			return fault(DeleteConflict, "Cannot delete entity, must detach all policies first.")
		}
		if err := t.Delete(record.IAMNameKey(record.GroupKind, name)); err != nil {
			return err
		}
		return t.Delete(record.GroupKey(g.ID))
	})
}

// AddMember puts a user into a group; who is in it stays (IAM AddUserToGroup).
func (d *Directory) AddMember(ctx context.Context, group, user string) error {
	return d.member(ctx, "iam:AddUserToGroup", group, user, func(t cluster.Txn, g *Group, id string, p *record.Permissions) error {
		return hold(t, &p.Groups, g.ID, id, quota{"GroupsPerUser", maxGroups})
	})
}

// RemoveMember takes a user out of a group (IAM RemoveUserFromGroup).
func (d *Directory) RemoveMember(ctx context.Context, group, user string) error {
	return d.member(ctx, "iam:RemoveUserFromGroup", group, user, func(t cluster.Txn, g *Group, id string, p *record.Permissions) error {
		if held, err := release(t, &p.Groups, g.ID, id); held || err != nil {
			return err
		}
		return fault(NoSuchEntity, "The user with name %s cannot be found in the group %s.", user, group)
	})
}

func (d *Directory) member(ctx context.Context, action, group, user string, change func(cluster.Txn, *Group, string, *record.Permissions) error) error {
	// It is about the group, and about the user if only administrators may change that.
	about := func(r cluster.Reader) (Ask, error) {
		a, err := d.aboutGroup(action, group)(r)
		if err != nil {
			return a, err
		}
		h, err := d.find(r, Holder{User, user})
		if missing(err) {
			return a, nil // which is refused below
		}
		a.Admin = h.admin
		return a, err
	}
	return d.update(ctx, about, func(t cluster.Txn, _ int64) error {
		g, err := groupNamed(t, group)
		if err != nil {
			return err
		}
		h, err := d.find(t, Holder{User, user})
		if err != nil {
			return err
		}
		p, err := record.GetPermissions(t, h.id)
		if err != nil {
			return err
		}
		if err := change(t, &g, h.id, &p); err != nil {
			return err
		}
		return putPermissions(t, h.id, &p)
	})
}

// GroupsOf returns the groups of a user in order of their names (IAM
// ListGroupsForUser).
func (d *Directory) GroupsOf(ctx context.Context, user string) (list []Group, err error) {
	h := Holder{User, user}
	err = d.view(ctx, d.aboutHolder("iam:ListGroupsForUser", h, ""), func(r cluster.Reader) error {
		list = nil
		_, p, err := d.permissions(r, h)
		if err != nil {
			return err
		}
		for _, id := range p.Groups {
			g, err := groupByID(r, id)
			if err != nil {
				return err
			}
			list = append(list, g)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}
