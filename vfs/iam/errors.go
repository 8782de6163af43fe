package iam

import (
	"fmt"

	"ogw/vfs/internal/fserr"
)

// Code is the kind of an Error, by its name in the IAM API.
type Code string

// The kinds.
const (
	NoSuchEntity         Code = "NoSuchEntity"
	EntityAlreadyExists  Code = "EntityAlreadyExists"
	DeleteConflict       Code = "DeleteConflict"
	LimitExceeded        Code = "LimitExceeded"
	InvalidInput         Code = "InvalidInput"
	ValidationError      Code = "ValidationError"
	PackedPolicyTooLarge Code = "PackedPolicyTooLarge"
)

// Error describes why something was refused, in the words of the IAM API. To the errors
// of vfs it is ErrNotExist, ErrExist, ErrBusy or ErrInvalid.
type Error struct {
	Code    Code
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error of vfs that it is.
func (e *Error) Unwrap() error {
	switch e.Code {
	case NoSuchEntity:
		return fserr.ErrNotExist
	case EntityAlreadyExists:
		return fserr.ErrExist
	case DeleteConflict:
		return fserr.ErrBusy
	}
	return fserr.ErrInvalid
}

func fault(code Code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Denied describes who may not do what, in the words of AWS. It is ErrAccess.
type Denied struct{ Message string }

// Error implements error.
func (e *Denied) Error() string { return e.Message }

// Unwrap returns ErrAccess.
func (e *Denied) Unwrap() error { return fserr.ErrAccess }
