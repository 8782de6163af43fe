package iam

import (
	"slices"
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
		"PutUserPermissionsBoundary": inUser(putBoundary), "DeleteUserPermissionsBoundary": inUser(deleteBoundary),

		"CreateRole": createRole, "GetRole": inRole(getRole), "ListRoles": listRoles, "UpdateRole": inRole(updateRole),
		"UpdateRoleDescription": inRole(updateRoleDescription), "DeleteRole": inRole(deleteRole), "UpdateAssumeRolePolicy": inRole(updateTrust),
		"PutRolePolicy": inRole(putInline), "GetRolePolicy": inRole(getInline), "ListRolePolicies": inRole(listInline), "DeleteRolePolicy": inRole(deleteInline),
		"AttachRolePolicy": inRole(attach), "DetachRolePolicy": inRole(detach), "ListAttachedRolePolicies": inRole(listAttached),
		"PutRolePermissionsBoundary": inRole(putBoundary), "DeleteRolePermissionsBoundary": inRole(deleteBoundary),
		"ListInstanceProfilesForRole": inRole(listInstanceProfiles),

		"CreateOpenIDConnectProvider": createProvider, "GetOpenIDConnectProvider": ofProvider(getProvider), "ListOpenIDConnectProviders": listProviders,
		"DeleteOpenIDConnectProvider": ofProvider(deleteProvider), "AddClientIDToOpenIDConnectProvider": ofProvider(addAudience),
		"RemoveClientIDFromOpenIDConnectProvider": ofProvider(removeAudience), "UpdateOpenIDConnectProviderThumbprint": ofProvider(setThumbprints),

		"CreatePolicy": createPolicy, "GetPolicy": getPolicy, "ListPolicies": listPolicies, "DeletePolicy": deletePolicy,
		"CreatePolicyVersion": createPolicyVersion, "GetPolicyVersion": getPolicyVersion, "ListPolicyVersions": listPolicyVersions,
		"SetDefaultPolicyVersion": setDefaultPolicyVersion, "DeletePolicyVersion": deletePolicyVersion,
		"ListEntitiesForPolicy": listEntitiesForPolicy, "SimulatePrincipalPolicy": simulatePrincipal,
	},
	"sts": {
		"GetCallerIdentity": getCallerIdentity, "AssumeRole": assumeRole, "AssumeRoleWithWebIdentity": assumeRoleWeb,
		"GetSessionToken": getSessionToken, "GetFederationToken": getFederationToken,
	},
}

// partly lists what is not done of operations that are served.
var partly = map[string]string{
	"CreateUser":                  "path `/` only, no tags; the boundary is set by PutUserPermissionsBoundary",
	"UpdateUser":                  "path `/` only",
	"UpdateAccessKey":             "`Active` only",
	"CreateRole":                  "no tags",
	"CreateOpenIDConnectProvider": "no tags",
	"ListInstanceProfilesForRole": "there are none",
	"SimulatePrincipalPolicy":     "by what is stored, buckets' policies and ACLs included",
	"AssumeRole":                  "no MFA, tags, source identity",
	"AssumeRoleWithWebIdentity":   "OpenID Connect tokens",
	"GetFederationToken":          "no tags; buckets' policies name the user, not the federated one",
	"GetSessionToken":             "no MFA",
}

// refused are operations that are known and not there: of machines, of other kinds of
// identity providers, and of what is not kept.
var refused = map[string][]string{
	"iam": {
		"AddRoleToInstanceProfile", "CreateInstanceProfile", "DeleteInstanceProfile", "GetInstanceProfile", "ListInstanceProfiles",
		"RemoveRoleFromInstanceProfile", "TagInstanceProfile", "UntagInstanceProfile", "ListInstanceProfileTags",
		"CreateSAMLProvider", "DeleteSAMLProvider", "GetSAMLProvider", "ListSAMLProviders", "UpdateSAMLProvider",
		"CreateServiceLinkedRole", "DeleteServiceLinkedRole", "CreateLoginProfile", "DeleteLoginProfile", "GetLoginProfile", "UpdateLoginProfile",
		"TagUser", "UntagUser", "ListUserTags", "TagRole", "UntagRole", "ListRoleTags", "TagPolicy", "UntagPolicy", "ListPolicyTags",
		"TagOpenIDConnectProvider", "UntagOpenIDConnectProvider", "ListOpenIDConnectProviderTags",
		"CreateVirtualMFADevice", "EnableMFADevice", "DeactivateMFADevice", "ListMFADevices", "ListVirtualMFADevices",
		"GetAccountAuthorizationDetails", "GetAccountSummary", "ListAccountAliases", "SimulateCustomPolicy",
	},
	"sts": {"AssumeRoleWithSAML", "AssumeRoot", "DecodeAuthorizationMessage", "GetAccessKeyInfo"},
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
