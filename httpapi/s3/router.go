package s3

import (
	"net/http"
	"slices"
	"strings"
)

// operation is one operation of the S3 API.
type operation struct {
	name   string
	needs  permission
	handle func(*request) error // nil: not implemented
}

// methodOps are the operations of one method on one level.
type methodOps struct {
	base operation
	// sub are the sub-resources, the first one present in the query counts.
	sub []subOp
}

type subOp struct {
	query string
	op    operation
}

// The operations of this door. Everything else that S3 knows is refused by
// name (nouns below).
func serviceOps() map[string]methodOps {
	return map[string]methodOps{
		"GET": {base: operation{"ListBuckets", needOwnBuckets, (*request).listBuckets}},
	}
}

func bucketOps() map[string]methodOps {
	getNotSet, deleteNotSet := notSetOps()
	return map[string]methodOps{
		"GET": {
			base: operation{"ListObjects", needList, (*request).listObjects},
			sub: append([]subOp{
				{"acl", operation{"GetBucketAcl", needBucketACL, (*request).getBucketACL}},
				{"location", operation{"GetBucketLocation", needList, (*request).getBucketLocation}},
				{"uploads", operation{"ListMultipartUploads", needList, (*request).listUploads}},
				{"versions", operation{"ListObjectVersions", needList, (*request).listVersions}},
				{"tagging", operation{"GetBucketTagging", needConfig, (*request).getBucketTagging}},
				{"list-type", operation{"ListObjectsV2", needList, (*request).listObjectsV2}},
			}, getNotSet...),
		},
		"HEAD": {base: operation{"HeadBucket", needList, (*request).headBucket}},
		"PUT": {
			base: operation{"CreateBucket", needCreateBucket, (*request).createBucket},
			sub: []subOp{
				{"acl", operation{"PutBucketAcl", needSetBucketACL, (*request).putBucketACL}},
				{"tagging", operation{"PutBucketTagging", needConfig, (*request).putBucketTagging}},
			},
		},
		"POST": {
			base: operation{"PostObject", needForm, (*request).postObject},
			sub:  []subOp{{"delete", operation{"DeleteObjects", needDelete, (*request).deleteObjects}}},
		},
		"DELETE": {
			base: operation{"DeleteBucket", needDeleteBucket, (*request).deleteBucket},
			sub:  append([]subOp{{"tagging", operation{"DeleteBucketTagging", needConfig, (*request).deleteBucketTagging}}}, deleteNotSet...),
		},
		"OPTIONS": {base: operation{"PreflightRequest", needNothing, (*request).preflight}},
	}
}

func objectOps() map[string]methodOps {
	return map[string]methodOps{
		"GET": {
			base: operation{"GetObject", needGet, (*request).getObject},
			sub: []subOp{
				{"acl", operation{"GetObjectAcl", needObjectACL, (*request).getObjectACL}},
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
		"OPTIONS": {base: operation{"PreflightRequest", needNothing, (*request).preflight}},
	}
}

// nouns name the sub-resources of S3 that this door refuses. A name that
// begins with a verb stands for itself; others get one from the method.
var bucketNouns = map[string]string{
	"abac": "BucketAbac", "accelerate": "BucketAccelerateConfiguration", "acl": "BucketAcl", "analytics": "BucketAnalyticsConfiguration",
	"cors": "BucketCors", "delete": "DeleteObjects", "encryption": "BucketEncryption", "intelligent-tiering": "BucketIntelligentTieringConfiguration",
	"inventory": "BucketInventoryConfiguration", "lifecycle": "BucketLifecycleConfiguration", "location": "BucketLocation",
	"logging": "BucketLogging", "metadataConfiguration": "BucketMetadataConfiguration",
	"metadataInventoryTable": "UpdateBucketMetadataInventoryTableConfiguration", "metadataJournalTable": "UpdateBucketMetadataJournalTableConfiguration",
	"metadataTable": "BucketMetadataTableConfiguration", "metrics": "BucketMetricsConfiguration", "notification": "BucketNotificationConfiguration",
	"object-lock": "ObjectLockConfiguration", "ownershipControls": "BucketOwnershipControls", "policy": "BucketPolicy",
	"policyStatus": "BucketPolicyStatus", "publicAccessBlock": "PublicAccessBlock", "replication": "BucketReplication",
	"requestPayment": "BucketRequestPayment", "session": "CreateSession", "tagging": "BucketTagging", "uploads": "ListMultipartUploads",
	"versioning": "BucketVersioning", "versions": "ListObjectVersions", "website": "BucketWebsite",
}

var objectNouns = map[string]string{
	"acl": "ObjectAcl", "annotation": "ObjectAnnotation", "attributes": "ObjectAttributes", "encryption": "UpdateObjectEncryption",
	"legal-hold": "ObjectLegalHold", "renameObject": "RenameObject", "restore": "RestoreObject", "retention": "ObjectRetention",
	"select": "SelectObjectContent", "tagging": "ObjectTagging", "torrent": "ObjectTorrent", "uploads": "CreateMultipartUpload",
	"uploadId": "MultipartUpload", "partNumber": "UploadPart", "append": "AppendObject",
}

var nameVerbs = []string{"List", "Create", "Delete", "Update", "Rename", "Restore", "Select", "Upload", "Append"}

// parameters are the query parameters that modify operations and name none.
var parameters = map[string]bool{
	"prefix": true, "delimiter": true, "marker": true, "max-keys": true, "list-type": true, "start-after": true,
	"continuation-token": true, "fetch-owner": true, "encoding-type": true, "key-marker": true, "upload-id-marker": true,
	"max-uploads": true, "version-id-marker": true, "part-number-marker": true, "max-parts": true, "partNumber": true, "versionId": true,
	"max-buckets": true, "bucket-region": true,
	"AWSAccessKeyId": true, "Signature": true, "Expires": true, "content-md5": true, "content-type": true,
}

// router holds the operations of each level by method.
type router struct{ service, bucket, object map[string]methodOps }

func newRouter() *router { return &router{serviceOps(), bucketOps(), objectOps()} }

// Operations returns the names of all operations that are served.
func Operations() []string {
	var out []string
	r := newRouter()
	for _, level := range []map[string]methodOps{r.service, r.bucket, r.object} {
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

// route splits the path into bucket and key and finds the operations of its
// method. Keys are bytes: "a//b", "a/" and "a/../b" are what they are, and
// nothing is cleaned or redirected. "/bucket/" is the bucket.
func (q *request) route() (methodOps, error) {
	path, ok := strings.CutPrefix(q.r.URL.Path, "/")
	if !ok {
		return methodOps{}, newError(codeInvalidURI) // such as "*"
	}
	if q.hostBucket != "" {
		q.bucket, q.key = q.hostBucket, path
	} else {
		q.bucket, q.key, _ = strings.Cut(path, "/")
	}
	table := q.router.object
	switch {
	case q.bucket == "" && q.key == "":
		table = q.router.service
	case q.key == "":
		table = q.router.bucket
	}
	ops, ok := table[q.r.Method]
	if !ok {
		return ops, newError(codeMethodNotAllowed).with("Method", q.r.Method).with("ResourceType", q.level())
	}
	return ops, nil
}

func (q *request) level() string {
	switch {
	case q.key != "":
		return "OBJECT"
	case q.bucket != "":
		return "BUCKET"
	}
	return "SERVICE"
}

// choose picks the operation by the query.
func (q *request) choose(ops methodOps) (*operation, error) {
	for i := range ops.sub {
		if q.q.Has(ops.sub[i].query) {
			return &ops.sub[i].op, nil
		}
	}
	nouns := bucketNouns
	if q.key != "" {
		nouns = objectNouns
	}
	for name, values := range q.q {
		if noun, ok := nouns[name]; ok && !(name == "partNumber" && isRead(q.r.Method)) {
			return &operation{name: operationName(q.r.Method, noun), needs: needNothing}, nil
		}
		if parameters[name] || strings.HasPrefix(strings.ToLower(name), "x-") || strings.HasPrefix(name, "response-") {
			continue
		}
		// A parameter without a value can only be a sub-resource that this
		// version does not know.
		if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			return &operation{name: q.r.Method + " ?" + name, needs: needNothing}, nil
		}
	}
	if v := q.q.Get("versionId"); v != "" && v != "null" {
		return &ops.base, newError(codeNoSuchVersion).with("VersionId", v)
	}
	return &ops.base, nil
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func operationName(method, noun string) string {
	for _, v := range nameVerbs {
		if strings.HasPrefix(noun, v) {
			return noun
		}
	}
	switch method {
	case http.MethodPut, http.MethodPost:
		return "Put" + noun
	case http.MethodDelete:
		return "Delete" + noun
	}
	return "Get" + noun
}

// preflight: no bucket has a CORS configuration here, which S3 answers thus.
func (q *request) preflight() error {
	if q.r.Header.Get("Origin") == "" {
		return newError(codeBadRequest).withMessage("Insufficient information. Origin request header needed.")
	}
	switch method := q.r.Header.Get("Access-Control-Request-Method"); method {
	case http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead:
		return newError(codeAccessForbidden).with("Method", method).with("ResourceType", q.level())
	case "":
		method = "null"
		fallthrough
	default:
		return newError(codeBadRequest).withMessage("Invalid Access-Control-Request-Method: %s", method)
	}
}

// postToKey: a form is posted to the bucket.
func (q *request) postToKey() error {
	return newError(codeMethodNotAllowed).with("Method", q.r.Method).with("ResourceType", "OBJECT")
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
	for level, methods := range map[string]map[string]methodOps{"SERVICE": serviceOps(), "BUCKET": bucketOps(), "OBJECT": objectOps()} {
		for method, ops := range methods {
			all = append(all, Route{ops.base.name, level, method, ""})
			for _, sub := range ops.sub {
				all = append(all, Route{sub.op.name, level, method, sub.query})
			}
		}
	}
	return all
}
