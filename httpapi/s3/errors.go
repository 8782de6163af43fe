package s3

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
	"ogw/vfs/iam"
)

// errorCodes maps every sentinel that can reach this door. The first match
// counts. ownMessage reports whether the error's own text is shown.
var errorCodes = []struct {
	err        error
	code       code
	ownMessage bool
}{
	{vfs.ErrNoSuchBucket, codeNoSuchBucket, false},
	{vfs.ErrBucketExists, codeBucketAlreadyExists, false},
	{vfs.ErrBucketOwned, codeBucketOwned, false},
	{vfs.ErrBucketNotEmpty, codeBucketNotEmpty, false},
	{vfs.ErrBadBucketName, codeInvalidBucketName, false},
	{vfs.ErrACLsDisabled, codeNoACLs, false},
	{vfs.ErrACLGrants, codeACLGrants, false},
	{vfs.ErrWriteOffset, codeWriteOffset, false},
	{vfs.ErrAppendMeta, codeAppendMeta, false},
	{vfs.ErrDone, codeOperationAborted, false},
	{vfs.ErrReservedName, codeInvalidBucketName, true},
	{vfs.ErrNoSuchKey, codeNoSuchKey, false},
	{vfs.ErrKeyTooLong, codeKeyTooLong, false},
	{vfs.ErrNoSuchUpload, codeNoSuchUpload, false},
	{vfs.ErrBadPart, codeInvalidPart, false},
	{vfs.ErrPartOrder, codeInvalidPartOrder, false},
	{vfs.ErrPartTooSmall, codeEntityTooSmall, false},
	{vfs.ErrBadPartNumber, codeInvalidArgument, true},
	{vfs.ErrObjectTooLarge, codeEntityTooLarge, false},
	{vfs.ErrPrecondition, codePreconditionFailed, false},
	{vfs.ErrNotModified, codeNotModified, false},
	{vfs.ErrBadRange, codeInvalidRange, false},
	{vfs.ErrBadDigest, codeBadDigest, false},
	{vfs.ErrShortBody, codeIncompleteBody, false},
	{vfs.ErrLongBody, codeIncompleteBody, false},
	{vfs.ErrNoSuchUser, codeInvalidAccessKeyID, false},
	{vfs.ErrUserExists, codeInvalidArgument, true},
	{vfs.ErrUIDTaken, codeInvalidArgument, true},
	{vfs.ErrSealed, codeAccessDenied, true},

	{vfs.ErrNotExist, codeNoSuchKey, false},
	{vfs.ErrNotDir, codeNoSuchKey, false},
	{vfs.ErrExist, codeOperationAborted, false},
	{vfs.ErrIsDir, codeInvalidRequest, true},
	{vfs.ErrNotEmpty, codeBucketNotEmpty, false},
	{iam.ErrBadToken, codeInvalidToken, false},
	{iam.ErrTokenExpired, codeExpiredToken, false},
	{vfs.ErrAccess, codeAccessDenied, false},
	{vfs.ErrProtected, codeProtected, false},
	{vfs.ErrPerm, codeAccessDenied, false},
	{vfs.ErrReadOnly, codeServiceUnavailable, false},
	{vfs.ErrInvalid, codeInvalidArgument, true},
	{vfs.ErrNameTooLong, codeKeyTooLong, false},
	{vfs.ErrNoSpace, codeStorageFull, false},
	{vfs.ErrFileTooLarge, codeEntityTooLarge, false},
	{vfs.ErrAttrTooLarge, codeMetadataTooLarge, false},
	{vfs.ErrTooLarge, codeEntityTooLarge, true},
	{vfs.ErrRange, codeInvalidRange, false},
	{vfs.ErrNotSupported, codeNotImplemented, true},
	{vfs.ErrStale, codeOperationAborted, false},
	{vfs.ErrBusy, codeOperationAborted, false},
	{vfs.ErrConflict, codeSlowDown, false},
	{vfs.ErrWouldBlock, codeOperationAborted, false},
	{vfs.ErrUnavailable, codeServiceUnavailable, false},
	{vfs.ErrTimeout, codeServiceUnavailable, false},
	{vfs.ErrInterrupted, codeServiceUnavailable, false},
	{vfs.ErrClosed, codeServiceUnavailable, false},
	{vfs.ErrIO, codeInternal, false},
	{vfs.ErrCorrupt, codeDamaged, false},
	{vfs.ErrBadHandle, codeInternal, false},
	{vfs.ErrNoData, codeInternal, false},
	{vfs.ErrNoAttr, codeInternal, false},
	{vfs.ErrTooManyLinks, codeInternal, false},
	{vfs.ErrDeadlock, codeInternal, false},
	{vfs.ErrNoLocks, codeInternal, false},

	{sigv4.ErrMalformedHeader, codeAuthHeaderMalformed, true},
	{sigv4.ErrMalformedQuery, codeAuthQueryMalformed, true},
	{sigv4.ErrMalformedPost, codeInvalidArgument, true},
	{sigv4.ErrUnsupportedAuth, codeInvalidRequest, true},
	{sigv4.ErrManyAuth, codeInvalidArgument, true},
	{sigv4.ErrUnknownAuth, codeInvalidArgument, true},
	{sigv4.ErrMismatch, codeSignatureMismatch, false},
	{sigv4.ErrSkewed, codeTimeSkewed, false},
	{sigv4.ErrExpired, codeAccessDenied, true},
	{sigv4.ErrNotYetValid, codeAccessDenied, true},
	{sigv4.ErrNoDate, codeAccessDenied, true},
	{sigv4.ErrUnsignedHeader, codeAccessDenied, true},
	{sigv4.ErrMissingSHA256, codeInvalidRequest, true},
	{sigv4.ErrBadSHA256, codeInvalidArgument, true},
	{sigv4.ErrSHA256Mismatch, codeSHA256Mismatch, false},
	{sigv4.ErrUnsupportedStream, codeNotImplemented, true},
	{sigv4.ErrNoDecodedLength, codeMissingLength, true},
	{sigv4.ErrIncompleteBody, codeIncompleteBody, false},
	{sigv4.ErrMalformedChunk, codeInvalidRequest, true},
	{sigv4.ErrMalformedTrailer, codeMalformedTrailer, false},
	{sigv4.ErrSessionToken, codeInvalidToken, false},

	{guess.ErrThrottled, codeSlowDown, true},
	{httpapi.ErrBadRange, codeInvalidRange, false},
	{io.ErrUnexpectedEOF, codeIncompleteBody, false},
	{context.DeadlineExceeded, codeServiceUnavailable, false},
	{context.Canceled, codeRequestTimeout, false},
}

// Code returns the code that an error is answered with, for logs.
func Code(err error) string { return toAPI(err).name }

// toAPI puts any error in S3's terms.
func toAPI(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	if e = checksumError(err); e != nil {
		return e
	}
	for _, m := range errorCodes {
		if errors.Is(err, m.err) {
			e = &apiError{code: m.code, cause: err}
			if m.ownMessage {
				e.message = sentence(err.Error())
			}
			return e.withDetails()
		}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &apiError{code: codeRequestTimeout, cause: err}
	}
	return &apiError{code: codeInternal, cause: err}
}

// withDetails adds the details of the cause.
func (e *apiError) withDetails() *apiError {
	var auth *sigv4.Error
	var condition *vfs.ConditionError
	var part *vfs.PartError
	var sum *vfs.MD5Error
	switch {
	case errors.As(e.cause, &auth):
		e.message = auth.Message
		for _, d := range auth.Details {
			e.fields = append(e.fields, field{d.Name, d.Value})
		}
	case errors.As(e.cause, &condition):
		return e.with("Condition", conditionName(condition))
	case errors.As(e.cause, &part):
		return e.withPart(part)
	case errors.As(e.cause, &sum):
		return e.with("CalculatedDigest", base64.StdEncoding.EncodeToString(sum.Computed)).with("ExpectedDigest", base64.StdEncoding.EncodeToString(sum.Stated))
	}
	return e
}

// conditionName is what S3 calls a condition: the header that asks for it.
func conditionName(c *vfs.ConditionError) string {
	name := c.Condition
	switch {
	case c.Source:
		name = "x-amz-copy-source-" + name
	case name == "IfSize":
		name = "x-amz-if-match-size"
	case name == "IfModifiedAt":
		name = "x-amz-if-match-last-modified-time"
	}
	return name
}

func (e *apiError) withPart(p *vfs.PartError) *apiError {
	if e.code == codeEntityTooSmall {
		e = e.with("ProposedSize", itoa(p.Size)).with("MinSizeAllowed", itoa(minPartBytes))
	}
	return e.with("PartNumber", strconv.Itoa(p.Number)).with("ETag", string(p.ETag))
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// keptOnError are the headers that an operation may have set before it
// failed; all others describe an object that is not sent.
var (
	keptOnError = map[string]bool{"X-Amz-Request-Id": true, "X-Amz-Id-2": true, "Connection": true,
		// What a page of another origin may see: errors, too.
		"Access-Control-Allow-Origin": true, "Access-Control-Allow-Credentials": true, "Access-Control-Allow-Methods": true,
		"Access-Control-Expose-Headers": true, "Access-Control-Max-Age": true, "Vary": true}
	keptOn304 = map[string]bool{"ETag": true, "Last-Modified": true, "Cache-Control": true, "Expires": true}
)

// writeError answers with S3's error XML; to HEAD, and with 304, without it.
func writeError(w http.ResponseWriter, r *http.Request, bucket, key string, err error) {
	e := toAPI(err)
	h := w.Header()
	for name := range h {
		switch {
		case keptOnError[name],
			keptOn304[name] && e.status == http.StatusNotModified,
			name == "Content-Range" && e.status == http.StatusRequestedRangeNotSatisfiable:
		default:
			delete(h, name)
		}
	}
	if e.status == http.StatusNotModified {
		w.WriteHeader(e.status)
		return
	}
	var x xmlWriter
	x.start("Error", "")
	x.str("Code", e.name)
	x.str("Message", e.message)
	for _, f := range e.fields {
		x.str(f.name, f.value)
	}
	switch e.code {
	case codeNoSuchKey:
		x.str("Key", key)
	case codeNoSuchVersion:
		x.str("Key", key)
	case codeKeyTooLong:
		if len(key) > vfs.MaxKeyBytes { // else it has too many levels
			x.int("Size", int64(len(key)))
			x.int("MaxSizeAllowed", vfs.MaxKeyBytes)
		}
	case codeNoSuchUpload, codeInvalidPart:
		x.str("UploadId", r.URL.Query().Get("uploadId"))
	case codeNoSuchBucket, codeBucketNotEmpty, codeInvalidBucketName:
		x.str("BucketName", bucket)
	}
	x.str("Resource", r.URL.Path)
	x.str("RequestId", httpapi.RequestID(r.Context()))
	x.str("HostId", hostID)
	x.end("Error")
	for _, f := range e.fields {
		if f.name == "Region" {
			h.Set("X-Amz-Bucket-Region", f.value)
		}
	}
	if e.code == codeSlowDown || e.code == codeServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if t := (*guess.Throttled)(nil); errors.As(err, &t) {
		h.Set("Retry-After", strconv.Itoa(t.Seconds()))
	}
	x.send(w, r, e.status)
}

// hostID stands in x-amz-id-2, which clients print and nobody reads.
const hostID = "ogw"

var hostIDs = []string{hostID} // never changed
