package s3

import (
	"net/http"

	"ogw/vfs"
)

// getBucketACL is GetBucketAcl.
func (q *request) getBucketACL() error {
	if err := q.loadBucket(); err != nil {
		return err
	}
	q.sendACL(q.ownerOf(q.info.UID), q.grants)
	return nil
}

// putBucketACL is PutBucketAcl: canned, by grant headers, or as XML.
func (q *request) putBucketACL() error {
	if err := q.loadBucket(); err != nil {
		return err
	}
	a, err := q.requestedACL(q.ownerOf(q.info.UID))
	if err != nil {
		return err
	}
	if err := q.fs.SetBucketGrants(q.ctx, q.bucket, a); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// requestedACL reads the ACL from headers or else from the body.
func (q *request) requestedACL(o owner) (vfs.Grants, error) {
	a, err := q.headerACL(q.r.Header)
	if err != nil || a != nil {
		return a, err
	}
	return q.bodyACL(o)
}

// getObjectACL is GetObjectAcl.
func (q *request) getObjectACL() error {
	info, err := q.headForACL(vfs.PermReadACP)
	if err != nil {
		return err
	}
	a, err := q.objectACL(&info)
	if err != nil {
		return err
	}
	q.sendACL(q.ownerOf(info.UID), a)
	return nil
}

// putObjectACL is PutObjectAcl.
func (q *request) putObjectACL() error {
	info, err := q.headForACL(vfs.PermWriteACP)
	if err != nil {
		return err
	}
	a, err := q.requestedACL(q.ownerOf(info.UID))
	if err != nil {
		return err
	}
	if err := q.fs.SetObjectGrants(q.ctx, q.bucket, q.key, a); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// headForACL returns the object if the caller has permission to its ACL.
func (q *request) headForACL(permission vfs.Permission) (vfs.ObjectInfo, error) {
	info, err := q.fs.HeadObject(q.ctx, q.bucket, q.key, vfs.GetOptions{})
	if err != nil {
		return info, q.hideMissing(err)
	}
	return info, q.mayObject(&info, permission)
}

// objectACL returns the object's own ACL, else that of the bucket's grants
// that reach its objects.
func (q *request) objectACL(info *vfs.ObjectInfo) (vfs.Grants, error) {
	if len(info.Meta.Grants) > 0 {
		return info.Meta.Grants, nil
	}
	if err := q.loadBucket(); err != nil {
		return nil, err
	}
	return q.grants, nil
}
