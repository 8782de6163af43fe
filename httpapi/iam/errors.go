package iam

import (
	"errors"
	"fmt"
	"net/http"

	"ogw/httpapi/iam/oidc"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
	"ogw/vfs/iam"
	"ogw/vfs/policy"
)

// namespaces of the XML, by service.
var namespaces = map[string]string{
	"iam": "https://iam.amazonaws.com/doc/2010-05-08/",
	"sts": "https://sts.amazonaws.com/doc/2011-06-15/",
}

// apiError is an error in the terms of the API ("Common error types").
type apiError struct {
	code    string
	status  int
	message string
}

// Error implements error.
func (e *apiError) Error() string { return e.code + ": " + e.message }

func newError(code string, status int, format string, args ...any) *apiError {
	return &apiError{code, status, fmt.Sprintf(format, args...)}
}

var (
	errInternal   = newError("ServiceFailure", http.StatusInternalServerError, "The request processing has failed because of an unknown error, exception or failure.")
	errThrottling = newError("Throttling", http.StatusBadRequest, "Rate exceeded")
)

// entityStatus is the status of the kinds of iam.Error.
var entityStatus = map[iam.Code]int{iam.NoSuchEntity: http.StatusNotFound, iam.EntityAlreadyExists: http.StatusConflict,

	iam.DeleteConflict: http.StatusConflict, iam.LimitExceeded: http.StatusConflict, iam.InvalidInput: http.StatusBadRequest,
	iam.ValidationError: http.StatusBadRequest, iam.PackedPolicyTooLarge: http.StatusBadRequest}

// errorCodes maps sentinels. The first match counts; an empty message is the error's own.
var errorCodes = []struct {
	err     error
	code    string
	status  int
	message string
}{
	{vfs.ErrNoSuchUser, "NoSuchEntity", 404, ""},
	{vfs.ErrUserExists, "EntityAlreadyExists", 409, ""},
	{vfs.ErrUIDTaken, "EntityAlreadyExists", 409, ""},
	{vfs.ErrSealed, "AccessDenied", 403, "The secret of the access key is sealed."},
	{iam.ErrBadToken, "InvalidClientTokenId", 403, "The security token included in the request is invalid."},
	{iam.ErrTokenExpired, "ExpiredToken", 403, "The security token included in the request is expired"},
	{vfs.ErrAccess, "AccessDenied", 403, ""},
	{vfs.ErrPerm, "AccessDenied", 403, ""},
	{vfs.ErrInvalid, "ValidationError", 400, ""},
	{vfs.ErrConflict, "ConcurrentModification", 409, "The request was rejected because multiple requests to change this object were submitted simultaneously."},
	{vfs.ErrUnavailable, "ServiceUnavailable", 503, "The request has failed due to a temporary failure of the server."},
	{vfs.ErrReadOnly, "ServiceUnavailable", 503, "The request has failed due to a temporary failure of the server."},
	{vfs.ErrNoSpace, "ServiceUnavailable", 503, "The request has failed due to a temporary failure of the server."},
	{vfs.ErrClosed, "ServiceUnavailable", 503, "The request has failed due to a temporary failure of the server."},
	{sigv4.ErrMismatch, "SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."},
	{sigv4.ErrSHA256Mismatch, "SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."},
	{sigv4.ErrSkewed, "SignatureDoesNotMatch", 403, ""},
	{sigv4.ErrExpired, "RequestExpired", 400, ""},
	{sigv4.ErrSessionToken, "InvalidClientTokenId", 403, "The security token included in the request is invalid."},
	{sigv4.ErrMalformedHeader, "IncompleteSignature", 400, ""},
	{sigv4.ErrManyAuth, "IncompleteSignature", 400, ""},
	{sigv4.ErrNoDate, "IncompleteSignature", 400, ""},
	{sigv4.ErrUnsignedHeader, "SignatureDoesNotMatch", 403, ""},
	{sigv4.ErrBadSHA256, "IncompleteSignature", 400, ""},
	{sigv4.ErrUnsupportedStream, "IncompleteSignature", 400, ""},
	{sigv4.ErrUnknownAuth, "IncompleteSignature", 400, ""},
	{sigv4.ErrUnsupportedAuth, "IncompleteSignature", 400, ""},
	{oidc.ErrExpired, "ExpiredTokenException", 400, ""},
	{oidc.ErrUnreachable, "IDPCommunicationError", 400, ""},
	{oidc.ErrRejected, "InvalidIdentityToken", 400, "Incorrect token audience"},
	{oidc.ErrInvalid, "InvalidIdentityToken", 400, ""},
	{guess.ErrThrottled, "Throttling", 400, "Rate exceeded"},
}

// Code returns the code that an error is answered with, for logs.
func Code(err error) string { return toAPI(err).code }

// toAPI puts any error in the API's terms.
func toAPI(err error) *apiError {
	var own *apiError
	var entity *iam.Error
	var denied *iam.Denied
	var malformed *policy.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &entity):
		return &apiError{string(entity.Code), entityStatus[entity.Code], entity.Message}
	case errors.As(err, &denied):
		return &apiError{"AccessDenied", http.StatusForbidden, denied.Message}
	case errors.As(err, &malformed):
		return &apiError{"MalformedPolicyDocument", http.StatusBadRequest, malformed.Message}
	}
	for _, m := range errorCodes {
		if errors.Is(err, m.err) {
			if m.message == "" {
				m.message = err.Error()
			}
			return &apiError{m.code, m.status, m.message}
		}
	}
	return errInternal
}
