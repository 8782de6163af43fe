package s3

import (
	"bytes"
	"crypto/md5"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"ogw/httpapi"
	"ogw/vfs/policy"
)

var codeMalformedPolicy = code{"MalformedPolicy", 400, "Policies must be valid JSON and the first byte must be '{'"}

// putBucketPolicy is PutBucketPolicy.
func (q *request) putBucketPolicy() error {
	text, err := q.readDocument(policy.MaxBucketBytes)
	if err != nil {
		return err
	}
	if err := q.fs.SetBucketPolicy(q.ctx, q.name.Bucket, text); err != nil {
		return policyError(err)
	}
	httpapi.NoteRights(q.ctx, "")
	httpapi.NoteText(q.ctx, "policy", oneLine(text))
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// oneLine takes what is no content from a JSON document.
func oneLine(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// policyError is what is wrong with a policy, in S3's terms.
func policyError(err error) error {
	var bad *policy.Error
	if !errors.As(err, &bad) {
		return err
	}
	e := &apiError{code: codeMalformedPolicy, cause: err}
	e.message = bad.Message
	if bad.Detail != "" {
		return e.with("Detail", bad.Detail)
	}
	return e
}

// readDocument reads a body of up to limit bytes that is no XML.
func (q *request) readDocument(limit int64) ([]byte, error) {
	p, err := q.openPayload()
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.size > limit {
		return nil, newError(codeMalformedPolicy).withMessage("Normalized policy document exceeds the maximum allowed size of %d bytes.", limit)
	}
	body := &checkedBody{src: p}
	if p.md5 != nil {
		body.md5 = md5.New()
	}
	text, err := io.ReadAll(io.LimitReader(body, p.size))
	if err == nil {
		err = body.finish(p)
	}
	if err == nil && len(text) == 0 {
		err = newError(codeMissingRequestBody)
	}
	return text, err
}

// bucketPolicy returns the policy of the bucket, and whether it is public.
func (q *request) bucketPolicy() ([]byte, bool, error) {
	text, public, err := q.fs.BucketPolicy(q.ctx, q.name.Bucket)
	if err == nil && text == nil {
		err = newError(codeNoSuchPolicy).with("BucketName", q.name.Bucket)
	}
	return text, public, err
}

// getBucketPolicy is GetBucketPolicy.
func (q *request) getBucketPolicy() error {
	text, _, err := q.bucketPolicy()
	if err != nil {
		return err
	}
	h := q.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", itoa(int64(len(text))))
	q.w.WriteHeader(http.StatusOK)
	_, err = q.w.Write(text)
	return err
}

// getBucketPolicyStatus is GetBucketPolicyStatus.
func (q *request) getBucketPolicyStatus() error {
	_, public, err := q.bucketPolicy()
	if err != nil {
		return err
	}
	var x xmlWriter
	x.start("PolicyStatus", xmlNamespace)
	x.bool("IsPublic", public)
	x.end("PolicyStatus")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// deleteBucketPolicy is DeleteBucketPolicy; to delete none is a success.
func (q *request) deleteBucketPolicy() error {
	if err := q.fs.SetBucketPolicy(q.ctx, q.name.Bucket, nil); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}
