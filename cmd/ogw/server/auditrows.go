package server

import "ogw/cmd/ogw/audit"

// auditRows has a row for every operation of every door: what it is to the
// audit. Tests walk the doors' own lists, so that an operation without a row
// is noticed.
var auditRows = map[string]map[string]audit.Class{
	"admin": {
		"AddUser": audit.Admin, "RemoveUser": audit.Admin, "RotateKeys": audit.Admin,
		"RenameUser": audit.Admin, "AddKey": audit.Admin, "RemoveKey": audit.Admin,
		"AddRole": audit.Admin, "SetTrust": audit.Admin, "RevokeRole": audit.Admin, "RemoveRole": audit.Admin,
		"AddGroup": audit.Admin, "RemoveGroup": audit.Admin, "AddMember": audit.Admin, "RemoveMember": audit.Admin,
		"PutPolicy": audit.Admin, "RemovePolicy": audit.Admin, "AttachPolicy": audit.Admin, "DetachPolicy": audit.Admin,
		"ListRoles": audit.Data, "Role": audit.Data, "ListGroups": audit.Data, "ListPolicies": audit.Data, "Policy": audit.Data, "Simulate": audit.Data,
		"AddBucket": audit.Admin, "SetBucket": audit.Admin, "RemoveBucket": audit.Admin,
		"AddExport": audit.Admin, "RevokeExport": audit.Admin,
		"FreeLocks": audit.Admin, "ReleaseQuarantine": audit.Admin,
		"Mount": audit.Admin, "Umount": audit.Admin,
		"AddBackup": audit.Admin, "RemoveBackup": audit.Data, "UseBackup": audit.Data, "ReadBackup": audit.Data,
		"Purge": audit.Admin, "Check": audit.Admin, "Stop": audit.Admin,
		"Status": audit.Data, "Gateways": audit.Data, "Mounts": audit.Data, "Whereis": audit.Data,
		"ListUsers": audit.Data, "ListBuckets": audit.Data, "Bucket": audit.Data, "Usage": audit.Data,
		"ListExports": audit.Data, "ListLocks": audit.Data, "ListQuarantine": audit.Data,
		"Health": audit.Data, "Ready": audit.Data, "Profile": audit.Data,
		"Authenticate": audit.Data, // always a refusal
	},
	"s3": {
		"CreateBucket": audit.Admin, "DeleteBucket": audit.Admin, "PutBucketAcl": audit.Admin, "PutObjectAcl": audit.Admin,
		"PutBucketTagging": audit.Admin, "PutBucketCors": audit.Admin, "PutBucketRequestPayment": audit.Admin, "PutPublicAccessBlock": audit.Admin, "PutBucketPolicy": audit.Admin, "PutBucketOwnershipControls": audit.Admin, "DeleteBucketTagging": audit.Admin, "DeleteBucketCors": audit.Admin,
		"DeleteBucketEncryption": audit.Admin, "DeleteBucketLifecycle": audit.Admin, "DeleteBucketOwnershipControls": audit.Admin,
		"DeleteBucketPolicy": audit.Admin, "DeleteBucketReplication": audit.Admin, "DeleteBucketWebsite": audit.Admin,
		"DeletePublicAccessBlock":          audit.Admin,
		"GetBucketAccelerateConfiguration": audit.Data, "GetBucketCors": audit.Data, "GetBucketEncryption": audit.Data,
		"GetBucketLifecycleConfiguration": audit.Data, "GetBucketLogging": audit.Data, "GetBucketNotificationConfiguration": audit.Data,
		"GetBucketOwnershipControls": audit.Data, "GetBucketPolicy": audit.Data, "GetBucketPolicyStatus": audit.Data,
		"GetBucketReplication": audit.Data, "GetBucketRequestPayment": audit.Data, "GetBucketTagging": audit.Data,
		"GetBucketVersioning": audit.Data, "GetBucketWebsite": audit.Data, "GetPublicAccessBlock": audit.Data,
		"GetObjectLockConfiguration": audit.Data, "GetObjectLegalHold": audit.Data, "GetObjectRetention": audit.Data,
		"ListObjectVersions": audit.Data,
		"ListBuckets":        audit.Data, "ListObjects": audit.Data, "ListObjectsV2": audit.Data, "HeadBucket": audit.Data,
		"GetBucketAcl": audit.Data, "GetBucketLocation": audit.Data, "ListMultipartUploads": audit.Data,
		"PostObject": audit.Data, "DeleteObjects": audit.Data, "PreflightRequest": audit.Data,
		"GetObject": audit.Data, "GetObjectAcl": audit.Data, "GetObjectAttributes": audit.Data, "GetObjectTagging": audit.Data, "ListParts": audit.Data,
		"HeadObject": audit.Data, "RenameObject": audit.Data, "PutObject": audit.Data, "PutObjectTagging": audit.Data, "UploadPart": audit.Data,
		"CreateMultipartUpload": audit.Data, "CompleteMultipartUpload": audit.Data, "AbortMultipartUpload": audit.Data,
		"DeleteObject": audit.Data, "DeleteObjectTagging": audit.Data,
	},
	"iam": {
		"CreateUser": audit.Admin, "UpdateUser": audit.Admin, "DeleteUser": audit.Admin,
		"CreateAccessKey": audit.Admin, "UpdateAccessKey": audit.Admin, "DeleteAccessKey": audit.Admin,
		"CreateGroup": audit.Admin, "UpdateGroup": audit.Admin, "DeleteGroup": audit.Admin,
		"AddUserToGroup": audit.Admin, "RemoveUserFromGroup": audit.Admin,
		"PutUserPolicy": audit.Admin, "DeleteUserPolicy": audit.Admin, "PutGroupPolicy": audit.Admin, "DeleteGroupPolicy": audit.Admin,
		"AttachUserPolicy": audit.Admin, "DetachUserPolicy": audit.Admin, "AttachGroupPolicy": audit.Admin, "DetachGroupPolicy": audit.Admin,
		"PutUserPermissionsBoundary": audit.Admin, "DeleteUserPermissionsBoundary": audit.Admin,
		"CreatePolicy": audit.Admin, "DeletePolicy": audit.Admin, "CreatePolicyVersion": audit.Admin, "SetDefaultPolicyVersion": audit.Admin,
		"DeletePolicyVersion": audit.Admin,
		"CreateRole":          audit.Admin, "UpdateRole": audit.Admin, "UpdateRoleDescription": audit.Admin, "DeleteRole": audit.Admin,
		"UpdateAssumeRolePolicy": audit.Admin, "PutRolePolicy": audit.Admin, "DeleteRolePolicy": audit.Admin,
		"AttachRolePolicy": audit.Admin, "DetachRolePolicy": audit.Admin,
		"PutRolePermissionsBoundary": audit.Admin, "DeleteRolePermissionsBoundary": audit.Admin,
		"CreateOpenIDConnectProvider": audit.Admin, "DeleteOpenIDConnectProvider": audit.Admin, "AddClientIDToOpenIDConnectProvider": audit.Admin,
		"RemoveClientIDFromOpenIDConnectProvider": audit.Admin, "UpdateOpenIDConnectProviderThumbprint": audit.Admin,
		"AssumeRole": audit.Admin, "AssumeRoleWithWebIdentity": audit.Admin, "GetSessionToken": audit.Admin, "GetFederationToken": audit.Admin,
		"GetRole": audit.Data, "ListRoles": audit.Data, "GetRolePolicy": audit.Data, "ListRolePolicies": audit.Data,
		"ListAttachedRolePolicies": audit.Data, "ListInstanceProfilesForRole": audit.Data,
		"GetOpenIDConnectProvider": audit.Data, "ListOpenIDConnectProviders": audit.Data,
		"GetUser": audit.Data, "ListUsers": audit.Data, "ListAccessKeys": audit.Data, "GetGroup": audit.Data, "ListGroups": audit.Data,
		"ListGroupsForUser": audit.Data, "GetUserPolicy": audit.Data, "ListUserPolicies": audit.Data, "GetGroupPolicy": audit.Data,
		"ListGroupPolicies": audit.Data, "ListAttachedUserPolicies": audit.Data, "ListAttachedGroupPolicies": audit.Data,
		"GetPolicy": audit.Data, "ListPolicies": audit.Data, "GetPolicyVersion": audit.Data, "ListPolicyVersions": audit.Data,
		"ListEntitiesForPolicy": audit.Data, "SimulatePrincipalPolicy": audit.Data, "GetCallerIdentity": audit.Data,
	},
	"rest": {
		"GET": audit.Data, "HEAD": audit.Data, "PUT": audit.Data, "POST": audit.Data, "DELETE": audit.Data, "OPTIONS": audit.Data,
	},
	// Of files, the doors decide themselves which calls concern a bucket or an ACL.
	"nfs": {
		"CONNECT": audit.Data, "MNT": audit.Data, // connections: always refusals
		"GETATTR": audit.None, "LOOKUP": audit.None, "ACCESS": audit.None, "FSSTAT": audit.None, "FSINFO": audit.None,
		"PATHCONF": audit.None, "COMMIT": audit.None,
		"NLM_TEST": audit.None, "NLM_LOCK": audit.None, "NLM_CANCEL": audit.None, "NLM_UNLOCK": audit.None,
		"NLM_SHARE": audit.None, "NLM_UNSHARE": audit.None, "NLM_NM_LOCK": audit.None,
		"SETATTR": audit.Data, "READLINK": audit.Data, "READ": audit.Data, "WRITE": audit.Data, "CREATE": audit.Data,
		"MKDIR": audit.Data, "SYMLINK": audit.Data, "MKNOD": audit.Data, "REMOVE": audit.Data, "RMDIR": audit.Data,
		"RENAME": audit.Data, "LINK": audit.Data, "READDIR": audit.Data, "READDIRPLUS": audit.Data,
	},
	"fuse": {
		"Mount": audit.Admin, "Umount": audit.Admin,
		"lookup": audit.None, "getattr": audit.None, "access": audit.None, "getxattr": audit.None, "listxattr": audit.None,
		"lseek": audit.None, "getlk": audit.None, "setlk": audit.None, "setlkw": audit.None, "release": audit.None,
		"flush": audit.None, "fsync": audit.None, "fsyncdir": audit.None, "releasedir": audit.None, "statfs": audit.None,
		"statx": audit.None, "opendir": audit.None, "ioctl": audit.None,
		"setattr": audit.Data, "mknod": audit.Data, "mkdir": audit.Data, "unlink": audit.Data, "rmdir": audit.Data,
		"rename": audit.Data, "link": audit.Data, "symlink": audit.Data, "readlink": audit.Data, "setxattr": audit.Data,
		"removexattr": audit.Data, "create": audit.Data, "tmpfile": audit.Data, "open": audit.Data, "read": audit.Data,
		"write": audit.Data, "copyfilerange": audit.Data, "fallocate": audit.Data, "readdir": audit.Data, "readdirplus": audit.Data,
	},
}

// classOf returns the class of an operation. What has no row was not
// understood, and changed nothing.
func classOf(door, operation string) audit.Class {
	if c, ok := auditRows[door][operation]; ok {
		return c
	}
	return audit.Data
}
