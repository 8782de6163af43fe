package s3

import "ogw/vfs"

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

// router holds the operations of each level by method.
type router struct{ service, bucket, object map[string]*methodOps }

// permission is what an operation needs: an action, whose right vfs decides.
type permission int

const (
	needNothing   permission = -1 - iota // the operation refuses all
	needForm                             // needPut, decided when the fields of the form are known
	needPreflight                        // no signature, and no right
)

const (
	needOwnBuckets   = permission(vfs.ActListBuckets)
	needCreateBucket = permission(vfs.ActCreateBucket)
	needDeleteBucket = permission(vfs.ActDeleteBucket)
	needList         = permission(vfs.ActListObjects)
	needBucketACL    = permission(vfs.ActReadBucketACL)
	needSetBucketACL = permission(vfs.ActWriteBucketACL)
	needConfig       = permission(vfs.ActConfigureBucket)
	needGet          = permission(vfs.ActReadObject)
	needPut          = permission(vfs.ActWriteObject)
	needDelete       = permission(vfs.ActDeleteObject)
	needObjectACL    = permission(vfs.ActReadObjectACL)
	needSetObjectACL = permission(vfs.ActWriteObjectACL)
	needOwnUpload    = permission(vfs.ActOwnUpload)
)
