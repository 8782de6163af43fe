package s3

import (
	"errors"
	"fmt"
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
	codeACLGrants           = code{"InvalidBucketAclWithObjectOwnership", 400, "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting"}
	codeNoACLs              = code{"AccessControlListNotSupported", 400, "The bucket does not allow ACLs"}
	codeAccessForbidden     = code{"AccessForbidden", 403, "CORSResponse: CORS is not enabled for this bucket."}
	codeBadDigest           = code{"BadDigest", 400, "The Content-MD5 you specified did not match what we received."}
	codeBadRequest          = code{"BadRequest", 400, "Bad Request"}
	codeBucketAlreadyExists = code{"BucketAlreadyExists", 409, "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again."}
	codeBucketOwned         = code{"BucketAlreadyOwnedByYou", 409, "Your previous request to create the named bucket succeeded and you already own it."}
	codeBucketNotEmpty      = code{"BucketNotEmpty", 409, "The bucket you tried to delete is not empty."}
	codeEntityTooLarge      = code{"EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed object size."}
	codeEntityTooSmall      = code{"EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed size"}
	codeAppendMeta          = code{"InvalidRequest", 400, "Cannot specify both a write offset value and user-defined object metadata for existing objects."}
	codeWriteOffset         = code{"InvalidWriteOffset", 400, "The write offset value that you specified does not match the current object size."}
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
	codeExpiredToken        = code{"ExpiredToken", 400, "The provided token has expired."}
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

// isCode reports whether err is this door's own with that code.
func isCode(err error, c code) bool {
	var e *apiError
	return errors.As(err, &e) && e.code == c
}

func invalidArgument(name, value, message string) *apiError {
	return newError(codeInvalidArgument).withMessage(message).with("ArgumentName", name).with("ArgumentValue", value)
}
