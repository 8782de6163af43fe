package iam

import (
	"slices"
	"strings"

	"ogw/vfs/iam"
)

type roleXML struct {
	Path        string
	RoleName    string
	RoleID      string `xml:"RoleId"`
	Arn         string
	CreateDate  string
	Trust       string       `xml:"AssumeRolePolicyDocument"`
	Description string       `xml:",omitempty"`
	MaxSession  int          `xml:"MaxSessionDuration"`
	Boundary    *boundaryXML `xml:"PermissionsBoundary,omitempty"`
}

type roleResult struct{ Role roleXML }

func showRole(x *iam.Role) roleXML {
	return roleXML{Path: x.Path, RoleName: x.Name, RoleID: x.ID, Arn: iam.RoleARN(x.Path, x.Name), CreateDate: timeOf(x.Created),
		Trust: escape(x.Trust), Description: x.Description, MaxSession: x.MaxSession}
}

func createRole(q *request) (any, error) {
	p, err := q.params("RoleName", "AssumeRolePolicyDocument")
	if err != nil {
		return nil, err
	}
	if err := q.noTags(); err != nil {
		return nil, err
	}
	most, err := q.number("MaxSessionDuration")
	if err != nil {
		return nil, err
	}
	n := iam.NewRole{Name: p[0], Trust: []byte(p[1]), Path: q.form.Get("Path"), Description: q.form.Get("Description"), MaxSession: most,
		Boundary: q.form.Get("PermissionsBoundary")}
	x, err := q.fs.IAM().CreateRole(q.ctx, n)
	if err != nil {
		return nil, err
	}
	x.Trust = n.Trust // as it was sent
	return roleResult{showRole(&x)}, nil
}

func getRole(q *request, h iam.Holder) (any, error) {
	x, err := q.fs.IAM().Role(q.ctx, h.Name)
	if err != nil {
		return nil, err
	}
	shown := showRole(&x)
	m, is, err := q.fs.IAM().Boundary(q.ctx, h)
	if is {
		shown.Boundary = showBoundary(&m)
	}
	return roleResult{shown}, err
}

func listRoles(q *request) (any, error) {
	list, err := q.fs.IAM().Roles(q.ctx)
	if err != nil {
		return nil, err
	}
	prefix := q.form.Get("PathPrefix")
	list = slices.DeleteFunc(list, func(x iam.Role) bool { return !strings.HasPrefix(x.Path, prefix) })
	list, more, err := page(q, list, func(x *iam.Role) string { return x.Name })
	return struct {
		Roles members[roleXML]
		paged
	}{membersOf(list, showRole), more}, err
}

func updateRole(q *request, h iam.Holder) (any, error) {
	most, err := q.number("MaxSessionDuration")
	if err != nil {
		return nil, err
	}
	var description *string
	if q.form.Has("Description") {
		v := q.form.Get("Description")
		description = &v
	}
	var longest *int
	if most != 0 {
		longest = &most
	}
	return struct{}{}, q.fs.IAM().UpdateRole(q.ctx, h.Name, description, longest)
}

func updateRoleDescription(q *request, h iam.Holder) (any, error) {
	description := q.form.Get("Description")
	if err := q.fs.IAM().UpdateRole(q.ctx, h.Name, &description, nil); err != nil {
		return nil, err
	}
	return getRole(q, h)
}

func updateTrust(q *request, h iam.Holder) (any, error) {
	text, err := q.param("PolicyDocument")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().SetTrust(q.ctx, h.Name, []byte(text))
}

func deleteRole(q *request, h iam.Holder) (any, error) {
	return nil, q.fs.IAM().DeleteRole(q.ctx, h.Name)
}

// listInstanceProfiles lists none: tools ask before they delete a role.
func listInstanceProfiles(q *request, h iam.Holder) (any, error) {
	if _, err := q.fs.IAM().Role(q.ctx, h.Name); err != nil {
		return nil, err
	}
	return struct {
		InstanceProfiles members[string]
		paged
	}{}, nil
}
