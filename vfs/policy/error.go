package policy

import (
	"errors"
	"fmt"
)

// Error describes what is wrong with a document, in the words of Amazon S3.
type Error struct {
	Message string
	Detail  string // what the message is about, such as a principal; "" mostly
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

var errSyntax = errors.New("no JSON")

func malformed(message string) error { return &Error{Message: message} }

func malformedBy(message, detail string) error { return &Error{Message: message, Detail: detail} }

func tooLarge(most int) error {
	return malformed(fmt.Sprintf("Normalized policy document exceeds the maximum allowed size of %d bytes.", most))
}
