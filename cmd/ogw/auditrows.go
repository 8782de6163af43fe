package main

import "ogw/cmd/ogw/audit"

// auditRows has a row for every operation of every door: what it is to the
// audit. Tests walk the doors' own lists, so that an operation without a row
// is noticed.
var auditRows = map[string]map[string]audit.Class{
	"admin": {
		"AddUser": audit.Admin, "RemoveUser": audit.Admin, "RotateKeys": audit.Admin,
		"RenameUser": audit.Admin, "AddKey": audit.Admin, "RemoveKey": audit.Admin,
		"AddBucket": audit.Admin, "SetBucket": audit.Admin, "RemoveBucket": audit.Admin,
		"AddExport": audit.Admin, "RevokeExport": audit.Admin,
		"FreeLocks": audit.Admin, "ReleaseQuarantine": audit.Admin,
		"Mount": audit.Admin, "Umount": audit.Admin,
		"Purge": audit.Admin, "Check": audit.Admin, "Stop": audit.Admin,
		"Status": audit.Data, "Gateways": audit.Data, "Mounts": audit.Data, "Whereis": audit.Data,
		"ListUsers": audit.Data, "ListBuckets": audit.Data, "Bucket": audit.Data, "Usage": audit.Data,
		"ListExports": audit.Data, "ListLocks": audit.Data, "ListQuarantine": audit.Data,
		"Health": audit.Data, "Ready": audit.Data, "Profile": audit.Data,
		"Authenticate": audit.Data, // always a refusal
	},
	"s3": {
		"CreateBucket": audit.Admin, "DeleteBucket": audit.Admin, "PutBucketAcl": audit.Admin, "PutObjectAcl": audit.Admin,
		"ListBuckets": audit.Data, "ListObjects": audit.Data, "ListObjectsV2": audit.Data, "HeadBucket": audit.Data,
		"GetBucketAcl": audit.Data, "GetBucketLocation": audit.Data, "ListMultipartUploads": audit.Data,
		"PostObject": audit.Data, "DeleteObjects": audit.Data, "PreflightRequest": audit.Data,
		"GetObject": audit.Data, "GetObjectAcl": audit.Data, "GetObjectTagging": audit.Data, "ListParts": audit.Data,
		"HeadObject": audit.Data, "PutObject": audit.Data, "PutObjectTagging": audit.Data, "UploadPart": audit.Data,
		"CreateMultipartUpload": audit.Data, "CompleteMultipartUpload": audit.Data, "AbortMultipartUpload": audit.Data,
		"DeleteObject": audit.Data, "DeleteObjectTagging": audit.Data,
	},
	"rest": {
		"GET": audit.Data, "HEAD": audit.Data, "PUT": audit.Data, "POST": audit.Data, "DELETE": audit.Data, "OPTIONS": audit.Data,
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
