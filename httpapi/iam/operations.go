package iam

import (
	"net/http"
	"slices"

	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// operations are those of each service.
var operations = map[string]map[string]handler{
	"iam": {
		"CreateUser": createUser, "GetUser": getUser, "ListUsers": listUsers, "UpdateUser": updateUser, "DeleteUser": deleteUser,
		"CreateAccessKey": createAccessKey, "ListAccessKeys": listAccessKeys, "UpdateAccessKey": updateAccessKey, "DeleteAccessKey": deleteAccessKey,

		"CreateGroup": createGroup, "GetGroup": getGroup, "ListGroups": listGroups, "UpdateGroup": updateGroup, "DeleteGroup": deleteGroup,
		"AddUserToGroup": addUserToGroup, "RemoveUserFromGroup": removeUserFromGroup, "ListGroupsForUser": listGroupsForUser,

		"PutUserPolicy": inUser(putInline), "GetUserPolicy": inUser(getInline), "ListUserPolicies": inUser(listInline), "DeleteUserPolicy": inUser(deleteInline),
		"PutGroupPolicy": inGroup(putInline), "GetGroupPolicy": inGroup(getInline), "ListGroupPolicies": inGroup(listInline), "DeleteGroupPolicy": inGroup(deleteInline),

		"AttachUserPolicy": inUser(attach), "DetachUserPolicy": inUser(detach), "ListAttachedUserPolicies": inUser(listAttached),
		"AttachGroupPolicy": inGroup(attach), "DetachGroupPolicy": inGroup(detach), "ListAttachedGroupPolicies": inGroup(listAttached),
		"PutUserPermissionsBoundary": putBoundary, "DeleteUserPermissionsBoundary": deleteBoundary,

		"CreatePolicy": createPolicy, "GetPolicy": getPolicy, "ListPolicies": listPolicies, "DeletePolicy": deletePolicy,
		"CreatePolicyVersion": createPolicyVersion, "GetPolicyVersion": getPolicyVersion, "ListPolicyVersions": listPolicyVersions,
		"SetDefaultPolicyVersion": setDefaultPolicyVersion, "DeletePolicyVersion": deletePolicyVersion,
		"ListEntitiesForPolicy": listEntitiesForPolicy,
	},
	"sts": {"GetCallerIdentity": getCallerIdentity},
}

// Operations returns the names of all operations that are served.
func Operations() (names []string) {
	for _, ops := range operations {
		for name := range ops {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// param returns a parameter that must be there.
func (q *request) param(name string) (string, error) {
	v := q.form.Get(name)
	if v == "" {
		lower := string(name[0]|0x20) + name[1:]
		return "", newError(string(iam.ValidationError), http.StatusBadRequest, "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", lower)
	}
	return v, nil
}

// params returns several that must be there.
func (q *request) params(names ...string) ([]string, error) {
	list := make([]string, len(names))
	for i, name := range names {
		v, err := q.param(name)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

// userName is the user that a request is about: who asks, unless it says another.
func (q *request) userName() string {
	if name := q.form.Get("UserName"); name != "" {
		return name
	}
	return q.user.Name
}

type callerXML struct {
	Arn     string
	UserID  string `xml:"UserId"`
	Account string
}

func getCallerIdentity(q *request) (any, error) {
	return callerXML{users.ARN(q.user.UID, q.user.Name), string(q.user.ID), users.AccountNumber(q.user.UID)}, nil
}
