package rights

// Action is what somebody asks to do through an object door.
type Action uint8

// The actions. Those of a bucket come first.
const (
	ActListBuckets Action = iota // one's own
	ActCreateBucket
	ActDeleteBucket
	ActListObjects
	ActReadBucketACL
	ActWriteBucketACL
	ActConfigureBucket // see or change its configuration
	ActReadObject
	ActWriteObject // make, overwrite, tag, begin and go on with uploads
	ActDeleteObject
	ActReadObjectACL
	ActWriteObjectACL
	// ActOwnUpload is to see or to abort an upload, which its initiator may
	// without any grant.
	ActOwnUpload

	actions
)

var actionNames = [actions]string{"list buckets", "create bucket", "delete bucket", "list", "read bucket ACL", "write bucket ACL", "configure bucket",
	"read", "write", "delete", "read ACL", "write ACL", "see or abort upload"}

func (a Action) String() string { return actionNames[a] }

// policyActions are what policies call the actions of requests that do not say it
// themselves (Call).
var policyActions = [actions]string{
	ActListBuckets:    "s3:ListAllMyBuckets",
	ActCreateBucket:   "s3:CreateBucket",
	ActDeleteBucket:   "s3:DeleteBucket",
	ActListObjects:    "s3:ListBucket",
	ActReadBucketACL:  "s3:GetBucketAcl",
	ActWriteBucketACL: "s3:PutBucketAcl",
	ActReadObject:     "s3:GetObject",
	ActWriteObject:    "s3:PutObject",
	ActDeleteObject:   "s3:DeleteObject",
	ActReadObjectACL:  "s3:GetObjectAcl",
	ActWriteObjectACL: "s3:PutObjectAcl",
	ActOwnUpload:      "s3:ListMultipartUploadParts",
}

// onObject reports whether an action is about an object.
func (a Action) onObject() bool { return a >= ActReadObject }

// PolicyAction is what policies call an action of requests that do not say it.
func PolicyAction(a Action) string { return policyActions[a] }
