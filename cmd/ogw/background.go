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

	"ogw/cmd/ogw/privatefile"
	"ogw/cmd/ogw/server"
)

// maxMountLog is the size at which the log of the time before is put aside: room
// for days of errors, and no disk full of them.
const maxMountLog = 16 << 20

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
		_ = child.Wait() // it ends by itself, and printed why
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
	path := filepath.Join(dir, server.MountLog)
	if info, err := os.Lstat(path); err == nil && info.Size() > maxMountLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return err
		}
	}
	f, err := privatefile.Open(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer f.Close() //nolint:errcheck // its copy lives on
	return unix.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0)
}

// isJournal reports whether standard error is the stream that systemd names in
// JOURNAL_STREAM (device:inode).
func isJournal(stream string) bool {
	var st unix.Stat_t
	if err := unix.Fstat(int(os.Stderr.Fd()), &st); err != nil {
		return false
	}
	device, inode, ok := strings.Cut(stream, ":")
	return ok && device == strconv.FormatUint(st.Dev, 10) && inode == strconv.FormatUint(st.Ino, 10)
}
