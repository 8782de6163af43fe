package s3

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"
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
		"GET": {base: operation{"ListBuckets", needUser, (*request).listBuckets}},
	}
}

func bucketOps() map[string]methodOps {
	return map[string]methodOps{
		"GET": {
			base: operation{"ListObjects", needRead, (*request).listObjects},
			sub: []subOp{
				{"acl", operation{"GetBucketAcl", needReadACP, (*request).getBucketACL}},
				{"location", operation{"GetBucketLocation", needRead, (*request).getBucketLocation}},
				{"uploads", operation{"ListMultipartUploads", needRead, (*request).listUploads}},
				{"list-type", operation{"ListObjectsV2", needRead, (*request).listObjectsV2}},
			},
		},
		"HEAD": {base: operation{"HeadBucket", needRead, (*request).headBucket}},
		"PUT": {
			base: operation{"CreateBucket", needUser, (*request).createBucket},
			sub:  []subOp{{"acl", operation{"PutBucketAcl", needWriteACP, (*request).putBucketACL}}},
		},
		"POST": {
			base: operation{"PostObject", needNothing, (*request).postObject},
			sub:  []subOp{{"delete", operation{"DeleteObjects", needWrite, (*request).deleteObjects}}},
		},
		"DELETE":  {base: operation{"DeleteBucket", needOwner, (*request).deleteBucket}},
		"OPTIONS": {base: operation{"PreflightRequest", needNothing, (*request).preflight}},
	}
}

func objectOps() map[string]methodOps {
	return map[string]methodOps{
		"GET": {
			base: operation{"GetObject", needObject, (*request).getObject},
			sub: []subOp{
				{"acl", operation{"GetObjectAcl", needObject, (*request).getObjectACL}},
				{"tagging", operation{"GetObjectTagging", needObject, (*request).getObjectTagging}},
				{"uploadId", operation{"ListParts", needWrite, (*request).listParts}},
			},
		},
		"HEAD": {base: operation{"HeadObject", needObject, (*request).headObject}},
		"PUT": {
			base: operation{"PutObject", needWrite, (*request).putObject},
			sub: []subOp{
				{"acl", operation{"PutObjectAcl", needObject, (*request).putObjectACL}},
				{"tagging", operation{"PutObjectTagging", needWrite, (*request).putObjectTagging}},
				{"uploadId", operation{"UploadPart", needWrite, (*request).uploadPart}},
				{"partNumber", operation{"UploadPart", needWrite, (*request).uploadPart}},
			},
		},
		"POST": {
			base: operation{"PostObject", needUser, (*request).postToKey},
			sub: []subOp{
				{"uploads", operation{"CreateMultipartUpload", needWrite, (*request).createUpload}},
				{"uploadId", operation{"CompleteMultipartUpload", needWrite, (*request).completeUpload}},
			},
		},
		"DELETE": {
			base: operation{"DeleteObject", needWrite, (*request).deleteObject},
			sub: []subOp{
				{"tagging", operation{"DeleteObjectTagging", needWrite, (*request).deleteObjectTagging}},
				{"uploadId", operation{"AbortMultipartUpload", needWrite, (*request).abortUpload}},
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
	"max-uploads": true, "part-number-marker": true, "max-parts": true, "partNumber": true, "versionId": true,
	"max-buckets": true, "bucket-region": true,
	"AWSAccessKeyId": true, "Signature": true, "Expires": true, "content-md5": true, "content-type": true,
}

// newRouter routes on the path "/bucket/key" that serve made of host and path.
func newRouter() *httprouter.Router {
	r := httprouter.New()
	// Keys are bytes: "a//b", "a/" and "a/../b" are what they are.
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleMethodNotAllowed = true
	r.HandleOPTIONS = false
	notAllowed := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		q := requestOf(r)
		q.fail(newError(codeMethodNotAllowed).with("Method", r.Method).with("ResourceType", q.level()))
	})
	r.MethodNotAllowed, r.NotFound = notAllowed, notAllowed
	bucket := bucketOps()
	add := func(path string, ops map[string]methodOps) {
		for method, o := range ops {
			r.Handle(method, path, func(_ http.ResponseWriter, r *http.Request, p httprouter.Params) {
				q, o := requestOf(r), o
				q.bucket = p.ByName("bucket")
				q.key = strings.TrimPrefix(p.ByName("key"), "/")
				if p.ByName("key") == "/" { // "/bucket/" is the bucket
					var ok bool
					if o, ok = bucket[r.Method]; !ok {
						notAllowed(nil, r)
						return
					}
				}
				if err := q.execute(o); err != nil {
					q.fail(err)
				}
			})
		}
	}
	add("/", serviceOps())
	add("/:bucket", bucket)
	add("/:bucket/*key", objectOps())
	return r
}

type requestKey struct{}

func requestOf(r *http.Request) *request { return r.Context().Value(requestKey{}).(*request) }

// routed returns the request that the router sees.
func (q *request) routed() *http.Request {
	path := q.r.URL.Path
	if q.hostBucket != "" {
		path = "/" + q.hostBucket + path
	}
	r := q.r.WithContext(context.WithValue(q.ctx, requestKey{}, q))
	r.URL = &url.URL{Path: path}
	return r
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
func (q *request) preflight() error { return newError(codeAccessForbidden) }

// postToKey: a form is posted to the bucket.
func (q *request) postToKey() error {
	return newError(codeMethodNotAllowed).with("Method", q.r.Method).with("ResourceType", "OBJECT")
}
