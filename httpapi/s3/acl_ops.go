package s3

import (
	"net/http"

	"ogw/httpapi"
	"ogw/vfs"
)

// getBucketACL is GetBucketAcl.
func (q *request) getBucketACL() error {
	info, grants, err := q.fs.BucketGrants(q.ctx, q.name.Bucket)
	if err != nil {
		return err
	}
	q.sendACL(q.ownerOf(info.UID), grants)
	return nil
}

// putBucketACL is PutBucketAcl: canned, by grant headers, or as XML.
func (q *request) putBucketACL() error {
	info, err := q.fs.HeadBucket(q.r.Context(), q.name.Bucket) // who owns it is in what is sent
	if err != nil {
		return err
	}
	a, err := q.requestedACL(aclTarget{owner: q.ownerOf(info.UID)})
	if err != nil {
		return err
	}
	if err := q.fs.SetBucketGrants(q.ctx, q.name.Bucket, a); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// requestedACL reads the ACL from headers or else from the body.
func (q *request) requestedACL(t aclTarget) (vfs.Grants, error) {
	a, err := q.headerACL(q.r.Header, t)
	if err != nil || a != nil {
		return a, err
	}
	a, err = q.bodyACL(t.owner)
	if err == nil {
		httpapi.NoteTarget(q.ctx, "", grantsText(a))
	}
	return a, err
}

// getObjectACL is GetObjectAcl.
func (q *request) getObjectACL() error {
	info, grants, err := q.fs.ObjectGrants(q.ctx, vfs.ActReadObjectACL, q.name)
	if err != nil {
		return err
	}
	q.sendACL(q.ownerOf(info.UID), grants)
	return nil
}

// putObjectACL is PutObjectAcl.
func (q *request) putObjectACL() error {
	info, _, err := q.fs.ObjectGrants(q.ctx, vfs.ActWriteObjectACL, q.name)
	if err != nil {
		return err
	}
	bucket, err := q.fs.HeadBucket(q.r.Context(), q.name.Bucket) // who owns it may be granted to
	if err != nil {
		return err
	}
	a, err := q.requestedACL(aclTarget{q.ownerOf(info.UID), &bucket})
	if err != nil {
		return err
	}
	if err := q.fs.SetObjectGrants(q.ctx, q.name, a); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}
