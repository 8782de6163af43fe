package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// environment is what a command sees of the world.
type environment struct {
	stdout  io.Writer
	stderr  io.Writer
	environ []string // as os.Environ
	args    []string // of this process, as os.Args
	ready   *readyPipe
	unsaid  error // the first of writing to stdout that no command returned
}

func (e *environment) getenv(name string) string {
	for _, kv := range e.environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// readyVariable marks a process as the background half of another, which
// waits at this file descriptor for its report.
const readyVariable = "_OGW_READY_FD"

// report is what the background half sends when the mount stands, or does not.
type report struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"`
}

// readyPipe is the background half's end; nil in any other process.
type readyPipe struct{ f *os.File }

// inheritedPipe finds the pipe that a parent left.
func inheritedPipe(getenv func(string) string) *readyPipe {
	fd, err := strconv.Atoi(getenv(readyVariable))
	if err != nil || fd <= 2 {
		return nil
	}
	unix.CloseOnExec(fd)
	return &readyPipe{os.NewFile(uintptr(fd), "ready")}
}

// pending reports whether somebody still waits for the report.
func (p *readyPipe) pending() bool { return p != nil && p.f != nil }

// send reports once.
func (p *readyPipe) send(r report) error {
	if !p.pending() {
		return nil
	}
	err := json.NewEncoder(p.f).Encode(r)
	err = errors.Join(err, p.f.Close())
	p.f = nil
	return err
}
