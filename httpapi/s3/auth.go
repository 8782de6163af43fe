package s3

import (
	"errors"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/iam"
)

// noteUser adds the caller to the log.
func (q *request) noteUser() {
	if u := q.id.user; u != nil {
		httpapi.NoteUser(q.ctx, u.Name, string(u.ID), u.UID)
	}
}

// authenticate finds out who the caller is. A form is signed in its body and
// anonymous so far.
func (q *request) authenticate() error {
	sig, err := q.verify.Parse(q.r, q.q, q.hostBucket)
	if err != nil {
		return err
	}
	if sig == nil {
		q.become(identity{})
		return nil
	}
	if err := q.identify(sig); err != nil {
		return err
	}
	q.sig = sig
	q.obeyStated()
	return nil
}

// identify looks up the user of sig and checks the signature, unless too many
// were wrong.
func (q *request) identify(sig *sigv4.Signature) error {
	httpapi.NoteKey(q.ctx, sig.AccessKey)
	try, err := q.cfg.Guesses.Try(fair.Subscriber(q.r.RemoteAddr), "s3", sig.AccessKey)
	if err != nil {
		return err
	}
	user, secret, session, err := q.fs.IAM().Credential(q.ctx, sig.AccessKey, sig.Token)
	if errors.Is(err, vfs.ErrNoSuchUser) {
		try.Wrong()
		return newError(codeInvalidAccessKeyID).with("AWSAccessKeyId", sig.AccessKey)
	}
	if errors.Is(err, iam.ErrBadToken) {
		try.Wrong()
	}
	if err != nil {
		return err
	}
	err = q.verify.Verify(sig, secret)
	if errors.Is(err, sigv4.ErrMismatch) {
		try.Wrong()
	}
	if err != nil {
		return err
	}
	try.Right()
	q.keys.claim = sig
	q.become(identity{user, session})
	return nil
}

// obeyStated makes headers of what the signature is for, so that a presigned URL
// says what it is good for. In Version 4 values of checksums in the query stay out:
// JavaScript presigns that of nothing.
func (q *request) obeyStated() {
	for name, values := range q.sig.Stated {
		if q.sig.Scheme == sigv4.PresignedV4 && strings.HasPrefix(name, checksumPrefix) && !notChecksum(name) {
			continue
		}
		switch name {
		case "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Signedheaders", "X-Amz-Signature",
			"X-Amz-Security-Token",
			"X-Amz-Content-Sha256", // is in the signature's Payload
			// Says how a client computes checksums; the one signed is what counts.
			"X-Amz-Sdk-Checksum-Algorithm":
			continue
		}
		q.r.Header[name] = values
	}
}

// authorize is the early answer to what the operation needs, before a body is
// taken; vfs decides again where it acts.
func (q *request) authorize() error {
	if err := q.checkExpectedOwner(); err != nil {
		return err
	}
	switch q.op.needs {
	case needNothing, needPreflight:
		return nil
	case needForm:
		return q.may(needGet) // so far the bucket must exist
	}
	return q.may(q.op.needs)
}

// may asks for a right to the bucket, and keeps what it learns of that.
func (q *request) may(p permission) (err error) {
	q.info, err = q.fs.Authorize(q.ctx, vfs.Action(p), vfs.ObjectName{Bucket: q.name.Bucket, Key: q.earlyKey()})
	if errors.Is(err, vfs.ErrAccess) && q.keys.takesTags() { // by which a policy can go, and which are not read yet
		q.info, err = q.fs.Authorize(q.ctx, vfs.Action(p), vfs.ObjectName{Bucket: q.name.Bucket})
	}
	return err
}

// earlyKey is the key that the early answer is about: "" where a policy can go by what
// is in the body.
func (q *request) earlyKey() string {
	if q.op.name == "PutObjectTagging" {
		return ""
	}
	return q.name.Key
}

// checkExpectedOwner refuses requests that expect another owner of the bucket.
func (q *request) checkExpectedOwner() error {
	want := httpapi.Field(q.r.Header, "X-Amz-Expected-Bucket-Owner")
	if want == "" || q.name.Bucket == "" || q.op.needs == needCreateBucket {
		return nil
	}
	return q.bucketIsOf(q.name.Bucket, want)
}

// bucketIsOf refuses a bucket of which somebody else than want is the owner.
func (q *request) bucketIsOf(bucket, want string) error {
	info, err := q.fs.HeadBucket(q.r.Context(), bucket) // for the door itself, not for the caller
	if err != nil {
		return err
	}
	if !q.ownedBy(info.UID, want) {
		return newError(codeAccessDenied)
	}
	return nil
}
