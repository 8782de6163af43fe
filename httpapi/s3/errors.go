package s3

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/guess"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// code is an S3 error code with its status and usual message (S3 API
// reference, "Error responses").
type code struct {
	name    string
	status  int
	message string
}

var (
	codeAccessDenied        = code{"AccessDenied", 403, "Access Denied."}
	codeAccessForbidden     = code{"AccessForbidden", 403, "CORSResponse: CORS is not enabled for this bucket."}
	codeBadDigest           = code{"BadDigest", 400, "The Content-MD5 you specified did not match what we received."}
	codeBadRequest          = code{"BadRequest", 400, "Bad Request"}
	codeBucketAlreadyExists = code{"BucketAlreadyExists", 409, "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again."}
	codeBucketOwned         = code{"BucketAlreadyOwnedByYou", 409, "Your previous request to create the named bucket succeeded and you already own it."}
	codeBucketNotEmpty      = code{"BucketNotEmpty", 409, "The bucket you tried to delete is not empty."}
	codeEntityTooLarge      = code{"EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed object size."}
	codeEntityTooSmall      = code{"EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed size"}
	codeAuthHeaderMalformed = code{"AuthorizationHeaderMalformed", 400, "The authorization header that you provided is not valid."}
	codeAuthQueryMalformed  = code{"AuthorizationQueryParametersError", 400, "The authorization query parameters that you provided are not valid."}
	codeIllegalLocation     = code{"InvalidLocationConstraint", 400, "The specified location-constraint is not valid"}
	codeIncompleteBody      = code{"IncompleteBody", 400, "You did not provide the number of bytes specified by the Content-Length HTTP header"}
	codeInternal            = code{"InternalError", 500, "We encountered an internal error. Please try again."}
	codeDamaged             = code{"InternalError", 500, "What is stored is damaged. To try again does not help."}
	codeInvalidAccessKeyID  = code{"InvalidAccessKeyId", 403, "The AWS Access Key Id you provided does not exist in our records."}
	codeInvalidArgument     = code{"InvalidArgument", 400, "Invalid argument."}
	codeInvalidBucketName   = code{"InvalidBucketName", 400, "The specified bucket is not valid."}
	codeInvalidDigest       = code{"InvalidDigest", 400, "The Content-Md5 you specified is not valid."}
	codeInvalidPart         = code{"InvalidPart", 400, "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag."}
	codeInvalidPartNumber   = code{"InvalidPartNumber", 416, "The requested partnumber is not satisfiable."}
	codeInvalidPartOrder    = code{"InvalidPartOrder", 400, "The list of parts was not in ascending order. Parts must be ordered by part number."}
	codeInvalidRange        = code{"InvalidRange", 416, "The requested range is not satisfiable"}
	codeInvalidRedirect     = code{"InvalidRedirectLocation", 400, "The website redirect location must have a prefix of 'http://' or 'https://' or '/'."}
	codeInvalidRequest      = code{"InvalidRequest", 400, "Invalid request."}
	codeInvalidStorageClass = code{"InvalidStorageClass", 400, "The storage class that you specified is not valid."}
	codeInvalidTag          = code{"InvalidTag", 400, "Your request contains tag input that is not valid."}
	codeInvalidToken        = code{"InvalidToken", 400, "The provided token is malformed or otherwise invalid."}
	codeInvalidURI          = code{"InvalidURI", 400, "The specified URI couldn't be parsed."}
	codeKeyTooLong          = code{"KeyTooLongError", 400, "Your key is too long."}
	codeMalformedACL        = code{"MalformedACLError", 400, "The XML you provided was not well-formed or did not validate against our published schema."}
	codeMalformedPOST       = code{"MalformedPOSTRequest", 400, "The body of your POST request is not well-formed multipart/form-data."}
	codeMalformedTrailer    = code{"MalformedTrailerError", 400, "The request contained trailing data that was not well-formed or did not conform to our published schema."}
	codeMalformedXML        = code{"MalformedXML", 400, "The XML you provided was not well-formed or did not validate against our published schema."}
	codeMaxMessageLength    = code{"MaxMessageLengthExceeded", 400, "Your request was too big."}
	codeMetadataTooLarge    = code{"MetadataTooLarge", 400, "Your metadata headers exceed the maximum allowed metadata size"}
	codeMethodNotAllowed    = code{"MethodNotAllowed", 405, "The specified method is not allowed against this resource."}
	codeMissingLength       = code{"MissingContentLength", 411, "You must provide the Content-Length HTTP header."}
	codeMissingRequestBody  = code{"MissingRequestBodyError", 400, "Request Body is empty"}
	codeNoSuchBucket        = code{"NoSuchBucket", 404, "The specified bucket does not exist."}
	codeNoSuchKey           = code{"NoSuchKey", 404, "The specified key does not exist."}
	codeNoSuchUpload        = code{"NoSuchUpload", 404, "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."}
	codeNoSuchVersion       = code{"NoSuchVersion", 404, "The specified version does not exist."}
	codeNotImplemented      = code{"NotImplemented", 501, "A header you provided implies functionality that is not implemented."}
	codeNotModified         = code{"NotModified", 304, "Not Modified."}
	codeOperationAborted    = code{"OperationAborted", 409, "A conflicting operation is currently in progress against this resource. Try again."}
	codeProtected           = code{"AccessDenied", 403, "Access Denied because the object, or its directory, is immutable or append-only."}
	codePolicyViolated      = code{"AccessDenied", 403, "Invalid according to Policy."}
	codePreconditionFailed  = code{"PreconditionFailed", 412, "At least one of the pre-conditions you specified did not hold."}
	codeRequestTimeout      = code{"RequestTimeout", 400, "Your socket connection to the server was not read from or written to within the timeout period."}
	codeSHA256Mismatch      = code{"XAmzContentSHA256Mismatch", 400, "The provided 'x-amz-content-sha256' header does not match what was computed."}
	codeServiceUnavailable  = code{"ServiceUnavailable", 503, "Service is unable to handle request."}
	codeSignatureMismatch   = code{"SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your key and signing method."}
	codeSlowDown            = code{"SlowDown", 503, "Please reduce your request rate."}
	codeStorageFull         = code{"InsufficientStorage", 507, "There is no space left in the storage cluster."}
	codeTimeSkewed          = code{"RequestTimeTooSkewed", 403, "The difference between the request time and the current time is too large."}
	codeUnresolvableGrant   = code{"UnresolvableGrantByEmailAddress", 400, "Grants by email address are not supported."}
	codeKeyMustBeSpecified  = code{"UserKeyMustBeSpecified", 400, "User key must have a length greater than 0."}
)

// apiError is an error in S3's terms.
type apiError struct {
	code
	cause  error
	fields []field // further elements of the XML
}

type field struct{ name, value string }

// Error implements error.
func (e *apiError) Error() string {
	if e.cause != nil {
		return e.name + ": " + e.cause.Error()
	}
	return e.name + ": " + e.message
}

// Unwrap returns the cause.
func (e *apiError) Unwrap() error { return e.cause }

func newError(c code) *apiError { return &apiError{code: c} }

func (e *apiError) withMessage(format string, args ...any) *apiError {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	e.message = format
	return e
}

func (e *apiError) with(name, value string) *apiError {
	e.fields = append(e.fields, field{name, value})
	return e
}

// isCode tells whether err is this door's own with that code.
func isCode(err error, c code) bool {
	var e *apiError
	return errors.As(err, &e) && e.code == c
}

func invalidArgument(name, value, message string) *apiError {
	return newError(codeInvalidArgument).withMessage(message).with("ArgumentName", name).with("ArgumentValue", value)
}

// errorCodes maps every sentinel that can reach this door. The first match
// counts. ownMessage tells that the error's own text is shown.
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

// withDetails adds what the cause tells.
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
		return e.with("Condition", condition.Condition)
	case errors.As(e.cause, &part):
		return e.withPart(part)
	case errors.As(e.cause, &sum):
		return e.with("CalculatedDigest", base64.StdEncoding.EncodeToString(sum.Computed)).with("ExpectedDigest", base64.StdEncoding.EncodeToString(sum.Stated))
	}
	return e
}

func (e *apiError) withPart(p *vfs.PartError) *apiError {
	if e.code == codeEntityTooSmall {
		e = e.with("ProposedSize", itoa(p.Size)).with("MinSizeAllowed", itoa(vfs.MinPartBytes))
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
		x.int("Size", int64(len(key)))
		x.int("MaxSizeAllowed", vfs.MaxKeyBytes)
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
