package iam

import (
	"slices"
	"strings"

	"ogw/vfs/iam"
)

// Policies that users, groups and roles hold, in the same form for all.

func inUser(fn func(*request, iam.Holder) (any, error)) handler {
	return in(iam.User, "UserName", fn)
}

func inGroup(fn func(*request, iam.Holder) (any, error)) handler {
	return in(iam.InGroup, "GroupName", fn)
}

func inRole(fn func(*request, iam.Holder) (any, error)) handler {
	return in(iam.InRole, "RoleName", fn)
}

func in(kind iam.HolderKind, parameter string, fn func(*request, iam.Holder) (any, error)) handler {
	return func(q *request) (any, error) {
		name, err := q.param(parameter)
		if err != nil {
			return nil, err
		}
		return fn(q, iam.Holder{Kind: kind, Name: name})
	}
}

func putInline(q *request, h iam.Holder) (any, error) {
	p, err := q.params("PolicyName", "PolicyDocument")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().PutInline(q.ctx, h, p[0], []byte(p[1]))
}

// inlineXML names its holder by one of three elements.
type inlineXML struct {
	UserName       string `xml:",omitempty"`
	GroupName      string `xml:",omitempty"`
	RoleName       string `xml:",omitempty"`
	PolicyName     string
	PolicyDocument string
}

func getInline(q *request, h iam.Holder) (any, error) {
	name, err := q.param("PolicyName")
	if err != nil {
		return nil, err
	}
	text, err := q.fs.IAM().Inline(q.ctx, h, name)
	shown := inlineXML{PolicyName: name, PolicyDocument: escape(text)}
	switch h.Kind {
	case iam.User:
		shown.UserName = h.Name
	case iam.InGroup:
		shown.GroupName = h.Name
	case iam.InRole:
		shown.RoleName = h.Name
	}
	return shown, err
}

func listInline(q *request, h iam.Holder) (any, error) {
	names, err := q.fs.IAM().InlineNames(q.ctx, h)
	if err != nil {
		return nil, err
	}
	names, more, err := page(q, names, func(s *string) string { return *s })
	return struct {
		PolicyNames members[string]
		paged
	}{members[string]{names}, more}, err
}

func deleteInline(q *request, h iam.Holder) (any, error) {
	name, err := q.param("PolicyName")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().DeleteInline(q.ctx, h, name)
}

func attach(q *request, h iam.Holder) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().Attach(q.ctx, h, arn)
}

func detach(q *request, h iam.Holder) (any, error) {
	arn, err := q.policyARN("PolicyArn")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().Detach(q.ctx, h, arn)
}

type attachedXML struct {
	PolicyName string
	PolicyArn  string
}

func listAttached(q *request, h iam.Holder) (any, error) {
	list, err := q.fs.IAM().Attached(q.ctx, h)
	if err != nil {
		return nil, err
	}
	prefix := q.form.Get("PathPrefix")
	list = slices.DeleteFunc(list, func(m iam.Managed) bool { return !strings.HasPrefix(m.Path, prefix) })
	list, more, err := page(q, list, func(m *iam.Managed) string { return m.Name })
	return struct {
		AttachedPolicies members[attachedXML]
		paged
	}{membersOf(list, func(m *iam.Managed) attachedXML { return attachedXML{m.Name, iam.PolicyARN(m.Path, m.Name)} }), more}, err
}

func putBoundary(q *request, h iam.Holder) (any, error) {
	arn, err := q.policyARN("PermissionsBoundary")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().SetBoundary(q.ctx, h, arn)
}

func deleteBoundary(q *request, h iam.Holder) (any, error) {
	return nil, q.fs.IAM().DeleteBoundary(q.ctx, h)
}
