package s3

import (
	"net/http"
	"slices"
	"strings"
)

// nouns name the sub-resources of S3 that this door refuses, all of them: reads ignore
// what is not here. A name that begins with a verb stands for itself; others get one
// from the method.
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

// namedAlone are operations that this door refuses and that nothing but their name,
// as SDKs send it, distinguishes from others.
var namedAlone = []string{"ListDirectoryBuckets", "WriteGetObjectResponse"}

// route splits the path into bucket and key and finds the operations of its
// method. Keys are bytes: "a//b", "a/" and "a/../b" are what they are, and
// nothing is cleaned or redirected. "/bucket/" is the bucket.
func (q *request) route() (*methodOps, error) {
	path, ok := strings.CutPrefix(q.r.URL.Path, "/")
	if !ok {
		return nil, newError(codeInvalidURI) // such as "*"
	}
	if q.hostBucket != "" {
		q.name.Bucket, q.name.Key = q.hostBucket, path
	} else {
		q.name.Bucket, q.name.Key, _ = strings.Cut(path, "/")
	}
	table := q.router.object
	switch {
	case q.name.Bucket == "" && q.name.Key == "":
		table = q.router.service
	case q.name.Key == "":
		table = q.router.bucket
	}
	if id := q.q.Get("x-id"); slices.Contains(namedAlone, id) {
		return &methodOps{base: operation{name: id, needs: needNothing}}, nil
	}
	ops, ok := table[q.r.Method]
	if !ok {
		return ops, newError(codeMethodNotAllowed).with("Method", q.r.Method).with("ResourceType", q.level())
	}
	return ops, nil
}

// choose picks the operation by the query.
func (q *request) choose(ops *methodOps) (*operation, error) {
	if ops.base.needs == needPreflight {
		return &ops.base, nil // its query is that of the request to come
	}
	for i := range ops.sub {
		if q.q.Has(ops.sub[i].query) {
			return &ops.sub[i].op, q.checkVersion()
		}
	}
	nouns := bucketNouns
	if q.name.Key != "" {
		nouns = objectNouns
	}
	for name, values := range q.q {
		if noun, ok := nouns[name]; ok && !(name == "partNumber" && isRead(q.r.Method)) {
			return &operation{name: operationName(q.r.Method, noun), needs: needNothing}, nil
		}
		if parameters[name] || strings.HasPrefix(strings.ToLower(name), "x-") || strings.HasPrefix(name, "response-") {
			continue
		}
		// A parameter without a value is a sub-resource of the other level, or one that
		// this version does not know, which must not turn into a change. Reads ignore what
		// nobody knows, as S3 does: clients add such things to pass by caches.
		if isRead(q.r.Method) && bucketNouns[name] == "" && objectNouns[name] == "" {
			continue
		}
		if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			return &operation{name: q.r.Method + " ?" + name, needs: needNothing}, nil
		}
	}
	return &ops.base, q.checkVersion()
}

// checkVersion: objects have one version, null.
func (q *request) checkVersion() error {
	if v := q.q.Get("versionId"); v != "" && v != "null" {
		return newError(codeNoSuchVersion).with("VersionId", v)
	}
	return nil
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
