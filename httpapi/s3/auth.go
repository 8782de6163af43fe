package s3

import (
	"errors"
	"net/http"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// identity is who asks; the zero value is anonymous.
type identity struct{ user *vfs.User }

func (i identity) anonymous() bool { return i.user == nil }
func (i identity) admin() bool     { return i.user != nil && i.user.Admin }

func (i identity) name() string {
	if i.user == nil {
		return ""
	}
	return i.user.Name
}

// id is who the grants of ACLs are for.
func (i identity) id() vfs.UserID {
	if i.user == nil {
		return ""
	}
	return i.user.ID
}

// noteUser tells the log who asks.
func (q *request) noteUser() {
	if u := q.id.user; u != nil {
		httpapi.NoteUser(q.ctx, u.Name, string(u.ID), u.UID)
	}
}

// cred owns what the identity makes. Permissions are this door's to check.
func (i identity) cred() *vfs.Cred {
	if i.user == nil {
		return &vfs.Cred{UID: vfs.NobodyUID, GID: vfs.NobodyUID, Trusted: true}
	}
	return &vfs.Cred{UID: i.user.UID, GID: i.user.GID, Trusted: true}
}

// authenticate finds out who asks. A form is signed in its body and
// anonymous so far.
func (q *request) authenticate() error {
	sig, err := q.verify.Parse(q.r, q.q, q.hostBucket)
	if err != nil {
		return err
	}
	if sig == nil {
		return nil
	}
	if err := q.identify(sig); err != nil {
		return err
	}
	q.sig = sig
	if sig.Scheme == sigv4.PresignedV4 || sig.Scheme == sigv4.PresignedV2 {
		q.hoistQuery()
	}
	return nil
}

// identify looks up the user of sig and checks the signature.
func (q *request) identify(sig *sigv4.Signature) error {
	user, key, err := q.fs.UserByKey(q.ctx, sig.AccessKey)
	if errors.Is(err, vfs.ErrNoSuchUser) {
		return newError(codeInvalidAccessKeyID).with("AWSAccessKeyId", sig.AccessKey)
	}
	if err != nil {
		return err
	}
	if err := q.verify.Verify(sig, key.Secret); err != nil {
		return err
	}
	q.id = identity{&user}
	return nil
}

// hoistQuery makes headers of the x-amz- parameters of a presigned URL, where
// clients put them. Checksums stay out: JavaScript presigns that of nothing.
func (q *request) hoistQuery() {
	for name, values := range q.q {
		lower := strings.ToLower(name)
		if !strings.HasPrefix(lower, "x-amz-") || strings.HasPrefix(lower, "x-amz-checksum-") && lower != "x-amz-checksum-mode" {
			continue
		}
		switch lower {
		case "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders", "x-amz-signature",
			"x-amz-content-sha256", "x-amz-sdk-checksum-algorithm":
			continue
		}
		if q.r.Header.Get(name) == "" {
			q.r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// permission is what an operation needs.
type permission int

const (
	needNothing  permission = iota // the operation checks for itself, or refuses all
	needUser                       // any user, not anonymous
	needRead                       // READ on the bucket
	needWrite                      // WRITE on the bucket
	needReadACP                    // READ_ACP on the bucket
	needWriteACP                   // WRITE_ACP on the bucket
	needOwner                      // owner of the bucket
	needObject                     // decided when the object is known
	needForm                       // decided when the fields of the form are known
)

// authorize checks what the operation needs of the bucket.
func (q *request) authorize() error {
	if want := q.r.Header.Get("X-Amz-Expected-Bucket-Owner"); want != "" && q.bucket != "" && q.op.needs != needUser {
		if err := q.loadBucket(); err != nil {
			return err
		}
		if o := q.ownerOf(q.info.UID); !o.is(want) {
			return newError(codeAccessDenied)
		}
	}
	switch q.op.needs {
	case needNothing:
		return nil
	case needObject, needForm:
		if q.id.anonymous() {
			return q.loadBucket() // it must exist before anything is held for a stranger
		}
		return nil
	case needUser:
		if q.id.anonymous() {
			return newError(codeAccessDenied)
		}
		return nil
	case needRead:
		return q.mayBucket(vfs.PermRead)
	case needWrite:
		return q.mayBucket(vfs.PermWrite)
	case needReadACP:
		return q.mayBucket(vfs.PermReadACP)
	case needWriteACP:
		return q.mayBucket(vfs.PermWriteACP)
	}
	return q.mayBucket(0)
}

// loadBucket looks up the bucket and its ACL, once.
func (q *request) loadBucket() error {
	if q.granted {
		return nil
	}
	info, grants, err := q.fs.BucketGrants(q.ctx, q.bucket)
	if err != nil {
		return err
	}
	q.info, q.grants, q.granted = &info, grants, true
	return nil
}

// mayBucket checks a permission on the bucket; none is the owner's alone.
func (q *request) mayBucket(permission vfs.Permission) error {
	if q.id.admin() {
		return nil
	}
	if err := q.loadBucket(); err != nil {
		return err
	}
	if q.ownsBucket() || permission != 0 && q.grants.Allow(q.id.id(), permission) {
		return nil
	}
	return newError(codeAccessDenied)
}

func (q *request) ownsBucket() bool {
	return !q.id.anonymous() && q.info.UID == q.id.user.UID
}

// mayObject checks a permission on an object: owner of object or bucket,
// else the object's ACL, else the bucket's.
func (q *request) mayObject(info *vfs.ObjectInfo, permission vfs.Permission) error {
	if q.id.admin() || !q.id.anonymous() && info.UID == q.id.user.UID {
		return nil
	}
	if err := q.loadBucket(); err != nil {
		return err
	}
	if q.ownsBucket() {
		return nil
	}
	a, err := q.objectACL(info)
	if err != nil {
		return err
	}
	if a.Allow(q.id.id(), permission) {
		return nil
	}
	return newError(codeAccessDenied)
}

// hideMissing turns a missing key into AccessDenied for those who may not
// list the bucket, as S3 does: they must not learn which keys exist.
func (q *request) hideMissing(err error) error {
	if !errors.Is(err, vfs.ErrNoSuchKey) && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	if denied := q.mayBucket(vfs.PermRead); denied != nil {
		return denied
	}
	return err
}
