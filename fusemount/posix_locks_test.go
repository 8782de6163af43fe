package fusemount

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// POSIX locks belong to processes, so a second process is needed: this test
// binary again, which obeys lines on its standard input.
const lockHelper = "OGW_TEST_LOCK_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(lockHelper) != "" {
		lockHelperMain()
		return
	}
	os.Exit(m.Run())
}

// lockHelperMain reads "fd-cmd type start length" and answers "ok" or the
// error: cmd is set, wait, get (answers the type, start, length and pid),
// open NAME, close.
func lockHelperMain() {
	in := bufio.NewScanner(os.Stdin)
	fd := -1
	for in.Scan() {
		var cmd, arg string
		var typ int16
		var start, length int64
		fmt.Sscan(in.Text(), &cmd, &arg)
		fmt.Sscan(in.Text(), &cmd, &typ, &start, &length)
		var err error
		answer := "ok"
		switch cmd {
		case "open":
			fd, err = unix.Open(arg, unix.O_RDWR, 0)
		case "close":
			err = unix.Close(fd)
		case "set":
			_, err = setlk(fd, unix.F_SETLK, typ, start, length)
		case "wait":
			_, err = setlk(fd, unix.F_SETLKW, typ, start, length)
		case "get":
			var l unix.Flock_t
			l, err = setlk(fd, unix.F_GETLK, typ, start, length)
			answer = fmt.Sprintf("%d %d %d %d", l.Type, l.Start, l.Len, l.Pid)
		}
		if err != nil {
			answer = err.Error()
		}
		fmt.Println(answer)
	}
}

type lockProc struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startLockProc(t testing.TB, file string) *lockProc {
	t.Helper()
	p := &lockProc{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), lockHelper+"=1")
	in, err := p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	p.in, p.out = in, bufio.NewScanner(out)
	t.Cleanup(p.stop)
	p.want("open "+file, "ok")
	return p
}

func (p *lockProc) stop() { p.in.Close(); p.cmd.Process.Kill(); p.cmd.Wait() }

func (p *lockProc) send(line string) { fmt.Fprintln(p.in, line) }

func (p *lockProc) answer() string {
	if !p.out.Scan() {
		return "no answer"
	}
	return p.out.Text()
}

func (p *lockProc) want(line, answer string) {
	p.t.Helper()
	p.send(line)
	if got := p.answer(); got != answer {
		p.t.Errorf("%s: %s, want %s", line, got, answer)
	}
}

func cmdOf(cmd string, typ int16, start, length int64) string {
	return fmt.Sprintf("%s %d %d %d", cmd, typ, start, length)
}

const again = "resource temporarily unavailable"

var lockCases = []posixCase{
	{"ranges between processes", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := startLockProc(t, d+"/f"), startLockProc(t, d+"/f")
		a.want(cmdOf("set", unix.F_WRLCK, 0, 100), "ok")
		b.want(cmdOf("set", unix.F_RDLCK, 50, 1), again)
		b.want(cmdOf("set", unix.F_WRLCK, 100, 0), "ok")
		a.want(cmdOf("set", unix.F_UNLCK, 40, 20), "ok")
		b.want(cmdOf("set", unix.F_RDLCK, 50, 1), "ok")
		b.want(cmdOf("get", unix.F_WRLCK, 0, 10), fmt.Sprintf("%d 0 40 %d", unix.F_WRLCK, a.cmd.Process.Pid))
		a.want(cmdOf("get", unix.F_WRLCK, 200, 10), fmt.Sprintf("%d 100 0 %d", unix.F_WRLCK, b.cmd.Process.Pid))
		a.want(cmdOf("set", unix.F_RDLCK, 50, 1), "ok") // readers share
		a.want(cmdOf("set", unix.F_WRLCK, 50, 1), again)
	}},
	{"waiting, and release at close", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := startLockProc(t, d+"/f"), startLockProc(t, d+"/f")
		a.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
		b.send(cmdOf("wait", unix.F_WRLCK, 0, 0))
		time.Sleep(50 * time.Millisecond)
		a.want("close", "ok")
		if got := b.answer(); got != "ok" {
			t.Errorf("waiter: %s", got)
		}
	}},
	{"release at the death of a process", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := startLockProc(t, d+"/f"), startLockProc(t, d+"/f")
		a.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
		b.send(cmdOf("wait", unix.F_RDLCK, 5, 5))
		time.Sleep(50 * time.Millisecond)
		must(t, a.cmd.Process.Kill())
		if got := b.answer(); got != "ok" {
			t.Errorf("waiter: %s", got)
		}
	}},
	{"a killed waiter leaves nothing", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := startLockProc(t, d+"/f"), startLockProc(t, d+"/f")
		a.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
		b.send(cmdOf("wait", unix.F_WRLCK, 0, 0))
		time.Sleep(50 * time.Millisecond)
		must(t, b.cmd.Process.Kill())
		b.cmd.Wait()
		a.want(cmdOf("set", unix.F_UNLCK, 0, 0), "ok")
		c := startLockProc(t, d+"/f")
		c.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
	}},
	{"deadlock", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := startLockProc(t, d+"/f"), startLockProc(t, d+"/f")
		a.want(cmdOf("set", unix.F_WRLCK, 0, 1), "ok")
		b.want(cmdOf("set", unix.F_WRLCK, 1, 1), "ok")
		a.send(cmdOf("wait", unix.F_WRLCK, 1, 1))
		time.Sleep(50 * time.Millisecond)
		b.want(cmdOf("wait", unix.F_WRLCK, 0, 1), "resource deadlock avoided")
		b.want(cmdOf("set", unix.F_UNLCK, 0, 0), "ok")
		if got := a.answer(); got != "ok" {
			t.Errorf("the other: %s", got)
		}
	}},
	{"any close of the file drops the process's locks", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		fd := open(t, d+"/f", unix.O_RDWR)
		_, err := setlk(fd, unix.F_SETLK, unix.F_WRLCK, 0, 0)
		must(t, err)
		b := startLockProc(t, d+"/f")
		b.want(cmdOf("set", unix.F_WRLCK, 0, 0), again)
		must(t, openErr(d+"/f", unix.O_RDONLY, 0)) // opens and closes
		b.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
	}},
	{"open file description locks", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := open(t, d+"/f", unix.O_RDWR), open(t, d+"/f", unix.O_RDWR)
		_, err := setlk(a, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 10)
		must(t, err)
		_, err = setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 10)
		wantErr(t, "another description", err, unix.EAGAIN)
		must(t, openErr(d+"/f", unix.O_RDONLY, 0)) // no effect on them
		_, err = setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 10)
		wantErr(t, "after a foreign close", err, unix.EAGAIN)
		dup, err := unix.Dup(a)
		must(t, err)
		unix.Close(dup)
		_, err = setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 10)
		wantErr(t, "after the close of a duplicate", err, unix.EAGAIN)
	}},
	{"open file description locks end with it", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, err := unix.Open(d+"/f", unix.O_RDWR, 0)
		must(t, err)
		b := open(t, d+"/f", unix.O_RDWR)
		_, err = setlk(a, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 10)
		must(t, err)
		must(t, unix.Close(a))
		eventually(t, func() error { _, err := setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 10); return err })
	}},
	{"flock", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := open(t, d+"/f", unix.O_RDONLY), open(t, d+"/f", unix.O_RDWR)
		must(t, unix.Flock(a, unix.LOCK_SH))
		must(t, unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB))
		wantErr(t, "exclusive over shared", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), unix.EAGAIN)
		must(t, unix.Flock(b, unix.LOCK_UN))
		must(t, unix.Flock(a, unix.LOCK_EX))
		got := make(chan error)
		go func() { got <- unix.Flock(b, unix.LOCK_EX) }()
		time.Sleep(20 * time.Millisecond)
		must(t, unix.Flock(a, unix.LOCK_UN))
		must(t, <-got)
		p := startLockProc(t, d+"/f") // apart from fcntl locks
		p.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
	}},
	{"flock ends with the last descriptor", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		a, err := unix.Open(d+"/f", unix.O_RDONLY, 0)
		must(t, err)
		b := open(t, d+"/f", unix.O_RDONLY)
		must(t, unix.Flock(a, unix.LOCK_EX))
		dup, err := unix.Dup(a)
		must(t, err)
		must(t, unix.Close(a))
		wantErr(t, "while a duplicate is open", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), unix.EAGAIN)
		must(t, unix.Close(dup))
		eventually(t, func() error { return unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB) })
	}},
	{"errors", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o666)
		r, w := open(t, d+"/f", unix.O_RDONLY), open(t, d+"/f", unix.O_WRONLY)
		_, err := setlk(r, unix.F_SETLK, unix.F_WRLCK, 0, 0)
		wantErr(t, "write lock on a reading descriptor", err, unix.EBADF)
		_, err = setlk(w, unix.F_SETLK, unix.F_RDLCK, 0, 0)
		wantErr(t, "read lock on a writing descriptor", err, unix.EBADF)
		_, err = setlk(w, unix.F_SETLK, unix.F_WRLCK, -5, 1)
		wantErr(t, "negative start", err, unix.EINVAL)
	}},
}

// eventually repeats fn for what the kernel does after close(2) returned.
func eventually(t testing.TB, fn func() error) {
	t.Helper()
	var err error
	for range 200 {
		if err = fn(); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error(err)
}

var xattrCases = []posixCase{
	{"values and flags", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o644)
		f := d + "/f"
		for _, v := range []string{"", "value", "\x00binary\xff", strings.Repeat("v", 60000)} {
			must(t, unix.Setxattr(f, "user.a", []byte(v), 0))
			if got, err := getxattr(f, "user.a"); err != nil || got != v {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(v))
			}
		}
		wantErr(t, "CREATE of one that is there", unix.Setxattr(f, "user.a", nil, unix.XATTR_CREATE), unix.EEXIST)
		wantErr(t, "REPLACE of one that is not", unix.Setxattr(f, "user.b", nil, unix.XATTR_REPLACE), unix.ENODATA)
		wantErr(t, "CREATE", unix.Setxattr(f, "user.b", []byte("B"), unix.XATTR_CREATE), 0)
		_, err := unix.Getxattr(f, "user.b", make([]byte, 0))
		must(t, err)
		_, err = unix.Getxattr(f, "user.a", make([]byte, 3))
		wantErr(t, "short buffer", err, unix.ERANGE)
		names := make([]byte, 100)
		n, err := unix.Listxattr(f, names)
		must(t, err)
		if got := string(names[:n]); got != "user.a\x00user.b\x00" {
			t.Errorf("list %q", got)
		}
		_, err = unix.Listxattr(f, names[:3])
		wantErr(t, "short list", err, unix.ERANGE)
		must(t, unix.Removexattr(f, "user.a"))
		wantErr(t, "removing it again", unix.Removexattr(f, "user.a"), unix.ENODATA)
		_, err = getxattr(f, "user.a")
		wantErr(t, "get of what is gone", err, unix.ENODATA)
		wantErr(t, "value too large", unix.Setxattr(f, "user.big", make([]byte, 65537), 0), unix.E2BIG)
		wantErr(t, "name too long", unix.Setxattr(f, "user."+strings.Repeat("n", 251), nil, 0), unix.ERANGE)
	}},
	{"spaces and rights", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o644)
		must(t, unix.Setxattr(d+"/f", "trusted.t", []byte("T"), 0))
		must(t, unix.Setxattr(d+"/f", "security.s", []byte("S"), 0))
		must(t, unix.Setxattr(d+"/f", "user.u", []byte("U"), 0))
		must(t, os.Symlink("f", d+"/l"))
		wantErr(t, "user attribute of a link", unix.Lsetxattr(d+"/l", "user.x", nil, 0), unix.EPERM)
		asUser(t, func() {
			_, err := getxattr(d+"/f", "trusted.t")
			wantErr(t, "trusted by a user", err, unix.ENODATA)
			wantErr(t, "setting without write", unix.Setxattr(d+"/f", "user.u", nil, 0), unix.EACCES)
			if got, err := getxattr(d+"/f", "user.u"); err != nil || got != "U" {
				t.Errorf("%q, %v", got, err)
			}
		})
		must(t, unix.Chmod(d+"/f", 0o600))
		asUser(t, func() {
			_, err := getxattr(d+"/f", "user.u")
			wantErr(t, "getting without read", err, unix.EACCES)
		})
		wantErr(t, "an own name", unix.Setxattr(d+"/f", "ogw.key", nil, 0), unix.EPERM)
		if got, err := getxattr(d+"/f", "ogw.key"); err != nil || !strings.HasPrefix(got, "bucket/") || !strings.HasSuffix(got, "/f") {
			t.Errorf("ogw.key %q, %v", got, err)
		}
	}},
	{"capabilities go with a write", func(t *testing.T, d string) {
		touch(t, d+"/f", 0o755)
		caps := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		must(t, unix.Setxattr(d+"/f", "security.capability", caps, 0))
		must(t, os.WriteFile(d+"/f", []byte("x"), 0))
		_, err := getxattr(d+"/f", "security.capability")
		wantErr(t, "after a write", err, unix.ENODATA)
	}},
	{"access ACL", func(t *testing.T, d string) {
		f := d + "/f"
		touch(t, f, 0o640)
		// user::rw- user:1001:rw- group::r-- mask::rw- other::---
		acl := aclBytes([][3]uint32{{1, 6, none}, {2, 6, 1001}, {4, 4, none}, {0x10, 6, none}, {0x20, 0, none}})
		must(t, unix.Setxattr(f, "system.posix_acl_access", acl, 0))
		asUser(t, func() { wantErr(t, "the named user writes", openErr(f, unix.O_RDWR, 0), 0) })
		as(t, 1002, 1002, nil, func() { wantErr(t, "others do not read", openErr(f, unix.O_RDONLY, 0), unix.EACCES) })
		wantMode(t, f, 0o660) // the group bits show the mask
		must(t, unix.Chmod(f, 0o600))
		asUser(t, func() { wantErr(t, "chmod takes the mask away", openErr(f, unix.O_RDONLY, 0), unix.EACCES) })
		must(t, unix.Removexattr(f, "system.posix_acl_access"))
		_, err := getxattr(f, "system.posix_acl_access")
		wantErr(t, "after removal", err, unix.ENODATA)
	}},
	{"default ACL", func(t *testing.T, d string) {
		acl := aclBytes([][3]uint32{{1, 7, none}, {2, 7, 1001}, {4, 5, none}, {0x10, 7, none}, {0x20, 0, none}})
		must(t, unix.Setxattr(d, "system.posix_acl_default", acl, 0))
		must(t, openErr(d+"/f", unix.O_CREAT, 0o666))
		must(t, os.Mkdir(d+"/sub", 0o777))
		wantMode(t, d+"/f", 0o660) // umask 022 does not count
		asUser(t, func() { wantErr(t, "inherited right", openErr(d+"/f", unix.O_RDWR, 0), 0) })
		if got, err := getxattr(d+"/sub", "system.posix_acl_default"); err != nil || got != string(acl) {
			t.Errorf("a directory inherits %x, %v", got, err)
		}
		wantErr(t, "default ACL of a file", unix.Setxattr(d+"/f", "system.posix_acl_default", acl, 0), unix.EACCES)
	}},
}

const none = 0xffffffff

// aclBytes encodes entries (tag, permissions, id) as Linux does, version 2.
func aclBytes(entries [][3]uint32) []byte {
	b := []byte{2, 0, 0, 0}
	for _, e := range entries {
		b = append(b, byte(e[0]), byte(e[0]>>8), byte(e[1]), byte(e[1]>>8))
		b = append(b, byte(e[2]), byte(e[2]>>8), byte(e[2]>>16), byte(e[2]>>24))
	}
	return b
}

func getxattr(name, attr string) (string, error) {
	b := make([]byte, 65536)
	n, err := unix.Lgetxattr(name, attr, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
