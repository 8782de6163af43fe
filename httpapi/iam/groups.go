package iam

import (
	"slices"
	"strings"

	"ogw/vfs/iam"
	"ogw/vfs/users"
)

type groupXML struct {
	Path       string
	GroupName  string
	GroupID    string `xml:"GroupId"`
	Arn        string
	CreateDate string
}

func showGroup(g *iam.Group) groupXML {
	return groupXML{g.Path, g.Name, g.ID, iam.GroupARN(g.Path, g.Name), timeOf(g.Created)}
}

func groupName(g *iam.Group) string { return g.Name }

func createGroup(q *request) (any, error) {
	name, err := q.param("GroupName")
	if err != nil {
		return nil, err
	}
	g, err := q.fs.IAM().CreateGroup(q.ctx, name, q.form.Get("Path"))
	return struct{ Group groupXML }{showGroup(&g)}, err
}

func getGroup(q *request) (any, error) {
	name, err := q.param("GroupName")
	if err != nil {
		return nil, err
	}
	g, list, err := q.fs.IAM().Group(q.ctx, name)
	if err != nil {
		return nil, err
	}
	list, more, err := page(q, list, func(u *users.User) string { return u.Name })
	return struct {
		Group groupXML
		Users members[userXML]
		paged
	}{showGroup(&g), membersOf(list, showUser), more}, err
}

type groupsResult struct {
	Groups members[groupXML]
	paged
}

func (q *request) showGroups(list []iam.Group, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	prefix := q.form.Get("PathPrefix")
	list = slices.DeleteFunc(list, func(g iam.Group) bool { return !strings.HasPrefix(g.Path, prefix) })
	list, more, err := page(q, list, groupName)
	return groupsResult{membersOf(list, showGroup), more}, err
}

func listGroups(q *request) (any, error) { return q.showGroups(q.fs.IAM().Groups(q.ctx)) }

func listGroupsForUser(q *request) (any, error) {
	name, err := q.param("UserName")
	if err != nil {
		return nil, err
	}
	return q.showGroups(q.fs.IAM().GroupsOf(q.ctx, name))
}

func updateGroup(q *request) (any, error) {
	name, err := q.param("GroupName")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().RenameGroup(q.ctx, name, q.form.Get("NewGroupName"), q.form.Get("NewPath"))
}

func deleteGroup(q *request) (any, error) {
	name, err := q.param("GroupName")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().DeleteGroup(q.ctx, name)
}

func addUserToGroup(q *request) (any, error) {
	p, err := q.params("GroupName", "UserName")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().AddMember(q.ctx, p[0], p[1])
}

func removeUserFromGroup(q *request) (any, error) {
	p, err := q.params("GroupName", "UserName")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().RemoveMember(q.ctx, p[0], p[1])
}
