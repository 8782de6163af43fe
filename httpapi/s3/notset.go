package s3

import (
	"net/http"

	"ogw/vfs"
)

// What S3 answers where nothing is configured. Programs that manage buckets ask
// for all of it, whether they use it or not.
var (
	codeNoSuchPolicy       = code{"NoSuchBucketPolicy", 404, "The bucket policy does not exist"}
	codeNoSuchLifecycle    = code{"NoSuchLifecycleConfiguration", 404, "The lifecycle configuration does not exist"}
	codeNoSuchCORS         = code{"NoSuchCORSConfiguration", 404, "The CORS configuration does not exist"}
	codeNoSuchEncryption   = code{"ServerSideEncryptionConfigurationNotFoundError", 404, "The server side encryption configuration was not found"}
	codeNoSuchTagSet       = code{"NoSuchTagSet", 404, "The TagSet does not exist"}
	codeNoSuchObjectLock   = code{"ObjectLockConfigurationNotFoundError", 404, "Object Lock configuration does not exist for this bucket"}
	codeNoSuchReplication  = code{"ReplicationConfigurationNotFoundError", 404, "The replication configuration was not found"}
	codeNoSuchWebsite      = code{"NoSuchWebsiteConfiguration", 404, "The specified bucket does not have a website configuration"}
	codeNoSuchAccessBlock  = code{"NoSuchPublicAccessBlockConfiguration", 404, "The public access block configuration was not found"}
	codeBucketWithoutLocks = code{"InvalidRequest", 400, "Bucket is missing Object Lock Configuration"}
)

// notSet answers a GET of a configuration that no bucket has.
func notSet(c code) func(*request) error {
	return func(q *request) error { return newError(c).with("BucketName", q.name.Bucket) }
}

// emptyConfig answers a GET of a configuration that every bucket has, with nothing in
// it.
func emptyConfig(root string) func(*request) error {
	return func(q *request) error {
		var x xmlWriter
		x.start(root, xmlNamespace)
		x.end(root)
		x.send(q.w, q.r, http.StatusOK)
		return nil
	}
}

// nothingToDelete answers a DELETE of a configuration that no bucket has.
func nothingToDelete(q *request) error {
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// notSetOps are the operations on configurations of which there are none.
func notSetOps() (get, del []subOp) {
	for _, c := range []struct {
		query, noun string
		code        code
		deletable   bool
	}{
		{"encryption", "BucketEncryption", codeNoSuchEncryption, true},
		{"lifecycle", "BucketLifecycleConfiguration", codeNoSuchLifecycle, true},
		{"object-lock", "ObjectLockConfiguration", codeNoSuchObjectLock, false},
		{"replication", "BucketReplication", codeNoSuchReplication, true},
		{"website", "BucketWebsite", codeNoSuchWebsite, true},
	} {
		get = append(get, subOp{c.query, operation{"Get" + c.noun, needConfig, notSet(c.code)}})
		if c.deletable {
			noun := c.noun
			if c.query == "lifecycle" {
				noun = "BucketLifecycle"
			}
			del = append(del, subOp{c.query, operation{"Delete" + noun, needConfig, nothingToDelete}})
		}
	}
	for _, c := range []struct{ query, noun, root string }{
		{"accelerate", "BucketAccelerateConfiguration", "AccelerateConfiguration"},
		{"logging", "BucketLogging", "BucketLoggingStatus"},
		{"notification", "BucketNotificationConfiguration", "NotificationConfiguration"},
		{"versioning", "BucketVersioning", "VersioningConfiguration"},
	} {
		get = append(get, subOp{c.query, operation{"Get" + c.noun, needConfig, emptyConfig(c.root)}})
	}
	return get, del
}

// getObjectLock is GetObjectRetention and GetObjectLegalHold.
func (q *request) getObjectLock() error {
	if _, err := q.fs.HeadObject(q.ctx, q.name, vfs.GetOptions{}); err != nil {
		return err
	}
	return newError(codeBucketWithoutLocks)
}
