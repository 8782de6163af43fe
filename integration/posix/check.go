package posix

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var long255, long256 = strings.Repeat("n", 255), strings.Repeat("n", 256)

// must fails the test at once.
func must(t *T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr compares an error with an errno; 0 is success.
func wantErr(t *T, what string, err error, no syscall.Errno) bool {
	t.Helper()
	t.run.checks.Add(1)
	switch {
	case no == 0 && err != nil:
		t.failf("%s: %v, want success", what, err)
	case no != 0 && !errors.Is(err, no):
		t.failf("%s: %v, want %v (%d)", what, err, no, no)
	default:
		return true
	}
	return false
}

// check reports what does not hold.
func check(t *T, ok bool, format string, args ...any) {
	t.Helper()
	t.run.checks.Add(1)
	if !ok {
		t.failf(format, args...)
	}
}

func touch(t *T, name string, mode uint32) {
	t.Helper()
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
	must(t, err)
	must(t, unix.Close(fd))
	must(t, unix.Chmod(name, mode))
}

func write(t *T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

func wantText(t *T, name, text string) {
	t.Helper()
	b, err := os.ReadFile(name)
	check(t, err == nil && string(b) == text, "%s holds %.60q, %v; want %.60q", filepath.Base(name), b, err, text)
}

func lstat(t *T, name string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(name, &st))
	return st
}

func wantMode(t *T, name string, mode uint32) {
	t.Helper()
	st := lstat(t, name)
	check(t, st.Mode&0o7777 == mode, "%s has mode %o, want %o", filepath.Base(name), st.Mode&0o7777, mode)
}

func openErr(name string, flags int, mode uint32) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, mode)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// later reports whether a is after b.
func later(a, b unix.Timespec) bool {
	return a.Sec > b.Sec || a.Sec == b.Sec && a.Nsec > b.Nsec
}

// Waiting for what the kernel does after close(2) returned.
const (
	waitTries = 2000
	waitPause = 5 * time.Millisecond
)

// eventually repeats fn until it succeeds.
func eventually(t *T, fn func() error) {
	t.Helper()
	var err error
	for range waitTries {
		if err = fn(); err == nil {
			return
		}
		time.Sleep(waitPause)
	}
	t.Error(err)
}

// Kinds of files.
const (
	reg  = "file"
	dir  = "directory"
	fifo = "fifo"
	chr  = "char device"
	blk  = "block device"
	sock = "socket"
	lnk  = "symlink" // to "target", which is not there
)

var kinds = []string{reg, dir, fifo, chr, blk, sock, lnk}

// makeKind makes a file of a kind with a mode, which a symlink has not.
func makeKind(t *T, kind, name string, mode uint32) {
	t.Helper()
	var err error
	switch kind {
	case reg:
		err = openErr(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
	case dir:
		err = unix.Mkdir(name, 0o755)
	case fifo:
		err = unix.Mkfifo(name, 0o644)
	case chr:
		err = unix.Mknod(name, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3)))
	case blk:
		err = unix.Mknod(name, unix.S_IFBLK|0o644, int(unix.Mkdev(1, 3)))
	case sock:
		err = unix.Mknod(name, unix.S_IFSOCK|0o644, 0)
	case lnk:
		must(t, unix.Symlink("target", name))
		return
	}
	must(t, err)
	must(t, unix.Chmod(name, mode))
}

// removeKind removes what makeKind made.
func removeKind(t *T, name string) {
	t.Helper()
	if err := unix.Unlink(name); err != nil && !errors.Is(err, unix.ENOENT) {
		must(t, unix.Rmdir(name))
	}
}

// typeOf is the type of a kind in st_mode.
func typeOf(kind string) uint32 {
	switch kind {
	case dir:
		return unix.S_IFDIR
	case fifo:
		return unix.S_IFIFO
	case chr:
		return unix.S_IFCHR
	case blk:
		return unix.S_IFBLK
	case sock:
		return unix.S_IFSOCK
	case lnk:
		return unix.S_IFLNK
	}
	return unix.S_IFREG
}
