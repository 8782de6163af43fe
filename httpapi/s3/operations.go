package s3

import "slices"

// The operations of this door. Everything else that S3 knows is refused by
// name (nouns below).
func serviceOps() map[string]*methodOps {
	return map[string]*methodOps{
		"GET": {base: operation{"ListBuckets", needOwnBuckets, (*request).listBuckets}},
	}
}

func bucketOps() map[string]*methodOps {
	getNotSet, deleteNotSet := notSetOps()
	return map[string]*methodOps{
		"GET": {
			base: operation{"ListObjects", needList, (*request).listObjects},
			sub: append([]subOp{
				{"acl", operation{"GetBucketAcl", needBucketACL, (*request).getBucketACL}},
				{"location", operation{"GetBucketLocation", needList, (*request).getBucketLocation}},
				{"uploads", operation{"ListMultipartUploads", needList, (*request).listUploads}},
				{"versions", operation{"ListObjectVersions", needList, (*request).listVersions}},
				{"cors", operation{"GetBucketCors", needConfig, (*request).getBucketCORS}},
				{"ownershipControls", operation{"GetBucketOwnershipControls", needConfig, (*request).getOwnership}},
				{"policy", operation{"GetBucketPolicy", needConfig, (*request).getBucketPolicy}},
				{"policyStatus", operation{"GetBucketPolicyStatus", needConfig, (*request).getBucketPolicyStatus}},
				{"publicAccessBlock", operation{"GetPublicAccessBlock", needConfig, (*request).getAccessBlock}},
				{"requestPayment", operation{"GetBucketRequestPayment", needConfig, (*request).getRequestPayment}},
				{"tagging", operation{"GetBucketTagging", needConfig, (*request).getBucketTagging}},
				{"list-type", operation{"ListObjectsV2", needList, (*request).listObjectsV2}},
			}, getNotSet...),
		},
		"HEAD": {base: operation{"HeadBucket", needList, (*request).headBucket}},
		"PUT": {
			base: operation{"CreateBucket", needCreateBucket, (*request).createBucket},
			sub: []subOp{
				{"acl", operation{"PutBucketAcl", needSetBucketACL, (*request).putBucketACL}},
				{"cors", operation{"PutBucketCors", needConfig, (*request).putBucketCORS}},
				{"requestPayment", operation{"PutBucketRequestPayment", needConfig, (*request).putRequestPayment}},
				{"ownershipControls", operation{"PutBucketOwnershipControls", needConfig, (*request).putOwnership}},
				{"policy", operation{"PutBucketPolicy", needConfig, (*request).putBucketPolicy}},
				{"publicAccessBlock", operation{"PutPublicAccessBlock", needConfig, (*request).putAccessBlock}},
				{"tagging", operation{"PutBucketTagging", needConfig, (*request).putBucketTagging}},
			},
		},
		"POST": {
			base: operation{"PostObject", needForm, (*request).postObject},
			sub:  []subOp{{"delete", operation{"DeleteObjects", needDelete, (*request).deleteObjects}}},
		},
		"DELETE": {
			base: operation{"DeleteBucket", needDeleteBucket, (*request).deleteBucket},
			sub: append([]subOp{
				{"cors", operation{"DeleteBucketCors", needConfig, (*request).deleteBucketCORS}},
				{"ownershipControls", operation{"DeleteBucketOwnershipControls", needConfig, (*request).deleteOwnership}},
				{"policy", operation{"DeleteBucketPolicy", needConfig, (*request).deleteBucketPolicy}},
				{"publicAccessBlock", operation{"DeletePublicAccessBlock", needConfig, (*request).deleteAccessBlock}},
				{"tagging", operation{"DeleteBucketTagging", needConfig, (*request).deleteBucketTagging}},
			}, deleteNotSet...),
		},
		"OPTIONS": {base: operation{"PreflightRequest", needPreflight, (*request).preflight}},
	}
}

func objectOps() map[string]*methodOps {
	return map[string]*methodOps{
		"GET": {
			base: operation{"GetObject", needGet, (*request).getObject},
			sub: []subOp{
				{"acl", operation{"GetObjectAcl", needObjectACL, (*request).getObjectACL}},
				{"attributes", operation{"GetObjectAttributes", needGet, (*request).getObjectAttributes}},
				{"tagging", operation{"GetObjectTagging", needGet, (*request).getObjectTagging}},
				{"uploadId", operation{"ListParts", needOwnUpload, (*request).listParts}},
				{"legal-hold", operation{"GetObjectLegalHold", needGet, (*request).getObjectLock}},
				{"retention", operation{"GetObjectRetention", needGet, (*request).getObjectLock}},
			},
		},
		"HEAD": {base: operation{"HeadObject", needGet, (*request).headObject}},
		"PUT": {
			base: operation{"PutObject", needPut, (*request).putObject},
			sub: []subOp{
				{"acl", operation{"PutObjectAcl", needSetObjectACL, (*request).putObjectACL}},
				{"renameObject", operation{"RenameObject", needPut, (*request).renameObject}},
				{"tagging", operation{"PutObjectTagging", needPut, (*request).putObjectTagging}},
				{"uploadId", operation{"UploadPart", needPut, (*request).uploadPart}},
				{"partNumber", operation{"UploadPart", needPut, (*request).uploadPart}},
			},
		},
		"POST": {
			base: operation{"PostObject", needNothing, (*request).postToKey},
			sub: []subOp{
				{"uploads", operation{"CreateMultipartUpload", needPut, (*request).createUpload}},
				{"uploadId", operation{"CompleteMultipartUpload", needPut, (*request).completeUpload}},
			},
		},
		"DELETE": {
			base: operation{"DeleteObject", needDelete, (*request).deleteObject},
			sub: []subOp{
				{"tagging", operation{"DeleteObjectTagging", needPut, (*request).deleteObjectTagging}},
				{"uploadId", operation{"AbortMultipartUpload", needOwnUpload, (*request).abortUpload}},
			},
		},
		"OPTIONS": {base: operation{"PreflightRequest", needPreflight, (*request).preflight}},
	}
}

// partly lists what is not done of operations that are served. Objects have one version,
// "null".
var partly = map[string]string{
	"CreateBucket":            "no object lock",
	"PutObject":               noLocks,
	"PostObject":              noLocks,
	"CopyObject":              noLocks + ", no access points",
	"CreateMultipartUpload":   noLocks,
	"UploadPartCopy":          "no access points",
	"PutBucketAcl":            noGrantees,
	"PutObjectAcl":            noGrantees,
	"PutBucketRequestPayment": "nothing is charged",
	"ListObjectVersions":      "all versions are `null`",
}

const (
	noLocks    = "no encryption by the server, no object lock"
	noGrantees = "no `aws-exec-read`, no `log-delivery-write`, no grants by email address"
)

func newRouter() *router { return &router{serviceOps(), bucketOps(), objectOps()} }

// Operations returns the names of all operations that are served.
func Operations() []string {
	var out []string
	r := newRouter()
	for _, level := range []map[string]*methodOps{r.service, r.bucket, r.object} {
		for _, ops := range level {
			out = append(out, ops.base.name)
			for _, s := range ops.sub {
				out = append(out, s.op.name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Route is one operation of this door and how it is asked for.
type Route struct {
	Name   string
	Level  string // SERVICE, BUCKET or OBJECT
	Method string
	Query  string // sub-resource, "" for the base operation
}

// Routes returns the table of operations, for tests that must miss none.
func Routes() []Route {
	var all []Route
	for level, methods := range map[string]map[string]*methodOps{"SERVICE": serviceOps(), "BUCKET": bucketOps(), "OBJECT": objectOps()} {
		for method, ops := range methods {
			all = append(all, Route{ops.base.name, level, method, ""})
			for _, sub := range ops.sub {
				all = append(all, Route{sub.op.name, level, method, sub.query})
			}
		}
	}
	return all
}
