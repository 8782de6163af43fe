package iam

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ogw/vfs/iam"
)

// policyARN returns a parameter that is the ARN of a managed policy.
func (q *request) policyARN(name string) (string, error) {
	arn, err := q.param(name)
	if err == nil && !strings.HasPrefix(arn, "arn:") {
		err = newError(string(iam.ValidationError), http.StatusBadRequest, "Invalid ARN:  Could not be parsed!")
	}
	return arn, err
}

type policyXML struct {
	PolicyName     string
	PolicyID       string `xml:"PolicyId"`
	Arn            string
	Path           string
	DefaultVersion string `xml:"DefaultVersionId"`
	Attached       int    `xml:"AttachmentCount"`
	Bounds         int    `xml:"PermissionsBoundaryUsageCount"`
	IsAttachable   bool
	Description    string `xml:",omitempty"`
	CreateDate     string
	UpdateDate     string
}

func showPolicy(p *iam.Listed) policyXML {
	return policyXML{p.Name, p.ID, iam.PolicyARN(p.Path, p.Name), p.Path, iam.VersionID(p.Default), p.Attached, p.Bounds, true, "",
		timeOf(p.Created), timeOf(p.Updated)}
}

func createPolicy(q *request) (any, error) {
	p, err := q.params("PolicyName", "PolicyDocument")
	if err != nil {
		return nil, err
	}
	m, err := q.fs.IAM().CreatePolicy(q.ctx, iam.NewPolicy{Name: p[0], Path: q.form.Get("Path"), Description: q.form.Get("Description"), Text: []byte(p[1])})
	return struct{ Policy policyXML }{showPolicy(&iam.Listed{Managed: m})}, err
}

func getPolicy(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	m, use, err := q.fs.IAM().Policy(q.ctx, "iam:GetPolicy", arn)
	shown := showPolicy(&iam.Listed{Managed: m, Use: use})
	shown.Description = m.Description // which lists do not show
	return struct{ Policy policyXML }{shown}, err
}

// listPolicies lists those of the store. There are none of AWS.
func listPolicies(q *request) (any, error) {
	list, err := q.fs.IAM().Policies(q.ctx)
	if err != nil {
		return nil, err
	}
	prefix, attached := q.form.Get("PathPrefix"), q.form.Get("OnlyAttached") == "true"
	usage := q.form.Get("PolicyUsageFilter")
	list = slices.DeleteFunc(list, func(p iam.Listed) bool {
		return q.form.Get("Scope") == "AWS" || !strings.HasPrefix(p.Path, prefix) || attached && p.Attached == 0 ||
			usage == "PermissionsPolicy" && p.Attached == 0 || usage == "PermissionsBoundary" && p.Bounds == 0
	})
	list, more, err := page(q, list, func(p *iam.Listed) string { return p.Name })
	return struct {
		Policies members[policyXML]
		paged
	}{membersOf(list, showPolicy), more}, err
}

func deletePolicy(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().DeletePolicy(q.ctx, arn)
}

type versionXML struct {
	Document         string `xml:",omitempty"`
	VersionID        string `xml:"VersionId"`
	IsDefaultVersion bool
	CreateDate       string
}

func createPolicyVersion(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	text, err := q.param("PolicyDocument")
	if err != nil {
		return nil, err
	}
	inForce := q.form.Get("SetAsDefault") == "true"
	v, err := q.fs.IAM().CreateVersion(q.ctx, arn, []byte(text), inForce)
	return struct{ PolicyVersion versionXML }{versionXML{"", iam.VersionID(v.Number), inForce, timeOf(v.Created)}}, err
}

func getPolicyVersion(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	id, err := q.param("VersionId")
	if err != nil {
		return nil, err
	}
	m, _, err := q.fs.IAM().Policy(q.ctx, "iam:GetPolicyVersion", arn)
	if err != nil {
		return nil, err
	}
	v, err := iam.VersionOf(&m, id)
	if err != nil {
		return nil, err
	}
	return struct{ PolicyVersion versionXML }{versionXML{escape(v.Text), id, v.Number == m.Default, timeOf(v.Created)}}, nil
}

// listPolicyVersions lists all five at the most on one page, the newest first.
func listPolicyVersions(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	m, _, err := q.fs.IAM().Policy(q.ctx, "iam:ListPolicyVersions", arn)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.Versions, func(a, b iam.Version) int { return cmp.Compare(b.Number, a.Number) })
	return struct {
		Versions members[versionXML]
		paged
	}{membersOf(m.Versions, func(v *iam.Version) versionXML {
		return versionXML{"", iam.VersionID(v.Number), v.Number == m.Default, timeOf(v.Created)}
	}), paged{}}, nil
}

func setDefaultPolicyVersion(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	id, err := q.param("VersionId")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().SetDefault(q.ctx, arn, id)
}

func deletePolicyVersion(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	id, err := q.param("VersionId")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().DeleteVersion(q.ctx, arn, id)
}

type (
	policyUserXML struct {
		UserName string
		UserID   string `xml:"UserId"`
	}
	policyGroupXML struct {
		GroupName string
		GroupID   string `xml:"GroupId"`
	}
	policyRoleXML struct {
		RoleName string
		RoleID   string `xml:"RoleId"`
	}
	entitiesXML struct {
		Groups members[policyGroupXML] `xml:"PolicyGroups"`
		Users  members[policyUserXML]  `xml:"PolicyUsers"`
		Roles  members[policyRoleXML]  `xml:"PolicyRoles"`
		paged
	}
)

func listEntitiesForPolicy(q *request) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	list, err := q.fs.IAM().Entities(q.ctx, arn)
	if err != nil {
		return nil, err
	}
	filter, usage := q.form.Get("EntityFilter"), q.form.Get("PolicyUsageFilter")
	list = slices.DeleteFunc(list, func(e iam.Entity) bool {
		return filter != "" && filter != e.Kind.String() || usage == "PermissionsPolicy" && e.Bounds || usage == "PermissionsBoundary" && !e.Bounds
	})
	key := func(e *iam.Entity) string { return e.Kind.String() + " " + e.Name + " " + strconv.FormatBool(e.Bounds) }
	slices.SortFunc(list, func(a, b iam.Entity) int { return cmp.Compare(key(&a), key(&b)) })
	list, more, err := page(q, list, key)
	shown := entitiesXML{paged: more}
	for _, e := range list {
		switch e.Kind {
		case iam.User:
			shown.Users.Member = append(shown.Users.Member, policyUserXML{e.Name, e.ID})
		case iam.InGroup:
			shown.Groups.Member = append(shown.Groups.Member, policyGroupXML{e.Name, e.ID})
		case iam.InRole:
			shown.Roles.Member = append(shown.Roles.Member, policyRoleXML{e.Name, e.ID})
		}
	}
	return shown, err
}
