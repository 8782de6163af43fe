package sigv4

import (
	"errors"
	"fmt"
)

// The closed set of errors of this package. The S3 error code that each
// stands for is its comment.
var (
	ErrMalformedHeader   = errors.New("the authorization header is malformed")                                                           // AuthorizationHeaderMalformed
	ErrMalformedQuery    = errors.New("the query-string authentication parameters are malformed")                                        // AuthorizationQueryParametersError
	ErrMalformedPost     = errors.New("the form's authentication fields are malformed")                                                  // InvalidArgument
	ErrUnsupportedAuth   = errors.New("the authorization mechanism you have provided is not supported, please use AWS4-HMAC-SHA256")     // InvalidRequest
	ErrUnknownAuth       = errors.New("unsupported Authorization Type")                                                                  // InvalidArgument
	ErrManyAuth          = errors.New("only one authentication mechanism is allowed")                                                    // InvalidArgument
	ErrMismatch          = errors.New("the request signature we calculated does not match the signature you provided")                   // SignatureDoesNotMatch
	ErrSkewed            = errors.New("the difference between the request time and the server's time is too large")                      // RequestTimeTooSkewed
	ErrExpired           = errors.New("request has expired")                                                                             // AccessDenied
	ErrNotYetValid       = errors.New("request is not yet valid")                                                                        // AccessDenied
	ErrNoDate            = errors.New("authentication requires a valid Date or x-amz-date header")                                       // AccessDenied
	ErrUnsignedHeader    = errors.New("there were headers present in the request which were not signed")                                 // AccessDenied
	ErrMissingSHA256     = errors.New("missing required header for this request: x-amz-content-sha256")                                  // InvalidRequest
	ErrBadSHA256         = errors.New("x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a known STREAMING value, or a valid sha256 value") // InvalidArgument
	ErrSHA256Mismatch    = errors.New("the provided x-amz-content-sha256 header does not match what was computed")                       // XAmzContentSHA256Mismatch
	ErrUnsupportedStream = errors.New("this form of streaming signature is not supported")                                               // NotImplemented
	ErrNoDecodedLength   = errors.New("you must provide the x-amz-decoded-content-length header")                                        // MissingContentLength
	ErrIncompleteBody    = errors.New("the body is shorter or longer than its stated length")                                            // IncompleteBody
	ErrMalformedChunk    = errors.New("the chunk encoding of the body is malformed")                                                     // InvalidRequest
	ErrMalformedTrailer  = errors.New("the request contained trailing data that was not well-formed or did not conform to our schema")   // MalformedTrailerError
	ErrSessionToken      = errors.New("the provided token is malformed or otherwise not valid")                                          // InvalidToken
)

// Error is one of the errors above as S3 puts it.
type Error struct {
	Kind    error
	Message string
	Details []Detail // further elements of S3's answer
}

// Detail is an element of an error's answer.
type Detail struct{ Name, Value string }

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Kind }

// detailed is kind with S3's message; details are names and values in turn.
func detailed(kind error, message string, details ...string) *Error {
	e := &Error{Kind: kind, Message: message}
	for i := 0; i+1 < len(details); i += 2 {
		e.Details = append(e.Details, Detail{details[i], details[i+1]})
	}
	return e
}

// argument is an error of kind about one argument.
func argument(kind error, name, value, message string) error {
	return detailed(kind, message, "ArgumentName", name, "ArgumentValue", value)
}

// badCredential returns what is wrong with a credential, in the words of the place
// where it stands.
func badCredential(kind error, credential, format string, args ...any) *Error {
	text := fmt.Sprintf(format, args...)
	switch {
	case errors.Is(kind, ErrMalformedPost):
		return detailed(kind, text, "ArgumentName", "X-Amz-Credential", "ArgumentValue", credential)
	case errors.Is(kind, ErrMalformedQuery):
		return detailed(kind, "Error parsing the X-Amz-Credential parameter; "+text)
	}
	return malformedHeader("%s", text)
}

func malformedHeader(format string, args ...any) *Error {
	return detailed(ErrMalformedHeader, "The authorization header is malformed; "+fmt.Sprintf(format, args...))
}

func wrapf(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
}
