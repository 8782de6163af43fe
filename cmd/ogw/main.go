package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"ogw/cluster"
	"ogw/cmd/ogw/backup"
	"ogw/fusemount/holder"
	"ogw/fusemount/notifier"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
)

// version is set by the linker (-X main.version=…).
var version = "development"

// Exit codes.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2 // wrong arguments or configuration
	exitNotFound = 3 // the object, user, bucket or mount does not exist
	exitProblems = 4 // check found problems
	exitInUse    = 5 // the data folder is in use by another process
)

// environment is what a command sees of the world.
type environment struct {
	stdout  io.Writer
	stderr  io.Writer
	environ []string // as os.Environ
	args    []string // of this process, as os.Args
	ready   *readyPipe
}

func (e *environment) getenv(name string) string {
	for _, kv := range e.environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// heapSample is how many bytes are allocated between two samples of the heap
// profile: at the runtime's 512 KiB, small requests spend 1 % of their time on
// them.
const heapSample = 8 << 20

func main() {
	runtime.MemProfileRate = heapSample
	if helper := helperProcess(os.Args); helper != nil { // nothing else: it is to be small
		if err := helper(); err != nil {
			os.Exit(exitFailure)
		}
		return
	}
	env := &environment{stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), args: os.Args}
	env.ready = inheritedPipe(env.getenv)
	os.Exit(run(context.Background(), env, os.Args))
}

// helperProcess returns the main function of the processes that mounts which
// survive start beside a server; nil for other command lines.
func helperProcess(args []string) func() error {
	switch {
	case len(args) == 3 && args[1] == holder.Command:
		return func() error { return holder.Run(args[2]) }
	case len(args) == 2 && args[1] == notifier.Command:
		return notifier.Run
	}
	return nil
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, env *environment, args []string) int {
	app := newApp(env)
	args, err := helperCall(app, args)
	if err != nil {
		err = &exitError{exitUsage, err}
	} else {
		err = app.RunContext(ctx, permute(app, familiar(args)))
	}
	if err == nil {
		return exitOK
	}
	if env.ready.pending() {
		// The parent says it; the terminal is not ours.
		if e := env.ready.send(report{message(err), exitCode(err)}); e == nil {
			return exitCode(err)
		}
	}
	var quiet *exitError
	if errors.As(err, &quiet) && quiet.err == nil {
		return quiet.code
	}
	fmt.Fprintf(env.stderr, "ogw: %s\n", message(err))
	return exitCode(err)
}

// message is an error as people read it: the class that begins the message
// of a refused request is in the exit code already.
func message(err error) string {
	return strings.TrimPrefix(err.Error(), apierr.ErrBadRequest.Error()+": ")
}

// exitError carries an exit code; without err nothing more is printed.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var coded *exitError
	var remote *admin.Error
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &remote) && remote.Status == 404:
		return exitNotFound
	case errors.As(err, &remote) && remote.Status == 400:
		return exitUsage
	case errors.Is(err, cluster.ErrLocked), errors.Is(err, backup.ErrLocked):
		return exitInUse
	case errors.Is(err, backup.ErrNotExist):
		return exitNotFound
	case apierr.Of(err).Status == 404:
		return exitNotFound
	case apierr.Of(err).Status == 400: // as the server would have answered
		return exitUsage
	}
	return exitFailure
}
