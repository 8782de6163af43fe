package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ogw/cluster"
	"ogw/cmd/ogw/backup"
	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2 // wrong arguments or configuration
	exitNotFound = 3 // the object, user, bucket or mount does not exist
	exitProblems = 4 // check found problems, or there is damage in a store or a backup
	exitInUse    = 5 // the data folder is in use by another process
)

// message is an error as people read it: the class that begins the message
// of a refused request is in the exit code already.
func message(err error) string {
	text := strings.TrimLeft(err.Error(), "\n") // an exitError without a text may come first
	text = strings.TrimPrefix(text, apierr.ErrBadRequest.Error()+": ")
	var remote *admin.Error
	if errors.As(err, &remote) && remote.Status == http.StatusUnauthorized {
		text += "; name the token of the process at --admin with OGW_ADMIN_TOKEN, or admin.token"
	}
	return text
}

// exitError carries an exit code; without err it has nothing to print.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var coded *exitError
	var remote *admin.Error
	var keys *server.KeyError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &keys):
		return exitUsage
	case errors.As(err, &remote) && remote.Status == 404:
		return exitNotFound
	case errors.As(err, &remote) && remote.Status == 400:
		return exitUsage
	case errors.Is(err, cluster.ErrLocked), errors.Is(err, backup.ErrLocked):
		return exitInUse
	case errors.Is(err, backup.ErrDamaged): // before what is missing in it
		return exitProblems
	case errors.Is(err, backup.ErrAmbiguous):
		return exitUsage
	case errors.Is(err, backup.ErrNotExist), errors.Is(err, cluster.ErrNoStore):
		return exitNotFound
	case apierr.Of(err).Status == 404:
		return exitNotFound
	case apierr.Of(err).Status == 400: // as the server would have answered
		return exitUsage
	}
	return exitFailure
}
