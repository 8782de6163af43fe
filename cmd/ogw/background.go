package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// readyVariable tells a process that it is the background half of
	// another, which waits at this file descriptor for its report.
	readyVariable = "_OGW_READY_FD"
	// mountLog is the log of a mount in the background, in the data folder.
	mountLog = "mount.log"
	// maxMountLog is the size at which the log of the time before is put
	// aside: room for days of errors, and no disk full of them.
	maxMountLog = 16 << 20
)

// report is what the background half says when the mount stands, or does not.
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

// pending tells that somebody still waits for the report.
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

// background starts this command line again, without a terminal, and waits
// until it reports. It returns its process ID.
func background(env *environment, args []string) (pid int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()                                      //nolint:errcheck // read to its end
	child := exec.Command("/proc/self/exe", args[1:]...) //nolint:gosec // ourselves
	child.Args[0] = args[0]
	child.Env = append(child.Environ(), readyVariable+"=3")
	child.ExtraFiles = []*os.File{w}
	child.Stderr = env.stderr // until it has its log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	_ = w.Close()
	if err != nil {
		return 0, err
	}
	var said report
	if err := json.NewDecoder(r).Decode(&said); err != nil {
		if errors.Is(err, io.EOF) {
			err = child.Wait()
		}
		return 0, fmt.Errorf("the process in the background ended: %w", err)
	}
	if said.Code != exitOK {
		_ = child.Wait() // it ends by itself, and said why
		return 0, &exitError{said.Code, errors.New(said.Message)}
	}
	pid = child.Process.Pid
	return pid, child.Process.Release()
}

// detach lets go of what belongs to the shell that started us: the working
// folder, and standard error unless it is the journal.
func detach(dir string, environ func(string) string) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if isJournal(environ("JOURNAL_STREAM")) {
		return nil
	}
	path := filepath.Join(dir, mountLog)
	if info, err := os.Lstat(path); err == nil && info.Size() > maxMountLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return err
		}
	}
	f, err := openPrivate(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer f.Close() //nolint:errcheck // its copy lives on
	return unix.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0)
}

// isJournal tells whether standard error is the stream that systemd names in
// JOURNAL_STREAM (device:inode).
func isJournal(stream string) bool {
	var st unix.Stat_t
	if err := unix.Fstat(int(os.Stderr.Fd()), &st); err != nil {
		return false
	}
	device, inode, ok := strings.Cut(stream, ":")
	return ok && device == strconv.FormatUint(st.Dev, 10) && inode == strconv.FormatUint(st.Ino, 10)
}
