package posix

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// POSIX locks belong to processes, so a second process is needed: this test
// binary again (see Main), which obeys lines on its standard input.
const lockHelper = "OGW_TEST_LOCK_HELPER"

// Main runs the tests of a package that uses the suite: its TestMain must
// call it, since the suite starts the test binary again as other processes.
func Main(m *testing.M) int {
	if os.Getenv(lockHelper) != "" {
		lockHelperMain()
		return 0
	}
	return m.Run()
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

// answerLimit is when a lock counts as never granted, on a machine with the load
// of a whole run of tests.
const answerLimit = 2 * time.Minute

type lockProc struct {
	t     *T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it answers, closed at its end
}

func startLockProc(t *T, file string) *lockProc {
	t.Helper()
	p := &lockProc{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), lockHelper+"=1")
	in, err := p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	p.in, p.lines = in, make(chan string, 1)
	go func() {
		defer close(p.lines)
		for out := bufio.NewScanner(out); out.Scan(); {
			p.lines <- out.Text()
		}
	}()
	t.Cleanup(p.stop)
	p.want("open "+file, "ok")
	return p
}

func (p *lockProc) stop() { p.in.Close(); p.cmd.Process.Kill(); p.cmd.Wait() }

func (p *lockProc) send(line string) { fmt.Fprintln(p.in, line) }

func (p *lockProc) answer() string {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "no answer"
		}
		return line
	case <-time.After(answerLimit):
		return fmt.Sprintf("no answer in %v", answerLimit)
	}
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

var lockCases = []namedCase{
	{"ranges between processes", func(t *T, d string) {
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
	{"waiting, and release at close", func(t *T, d string) {
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
	{"release at the death of a process", func(t *T, d string) {
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
	{"a killed waiter leaves nothing", func(t *T, d string) {
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
	{"deadlock", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := startLockProc(t, d+"/f"), startLockProc(t, d+"/f")
		a.want(cmdOf("set", unix.F_WRLCK, 0, 1), "ok")
		b.want(cmdOf("set", unix.F_WRLCK, 1, 1), "ok")
		a.send(cmdOf("wait", unix.F_WRLCK, 1, 1))
		b.send(cmdOf("wait", unix.F_WRLCK, 0, 1))
		// The later one is refused, and which that is, nobody can tell.
		refused, waits := b, a
		var got string
		select {
		case got = <-a.lines:
			refused, waits = a, b
		case got = <-b.lines:
		case <-time.After(answerLimit):
			t.Fatalf("both wait for %v", answerLimit)
		}
		if got != "resource deadlock avoided" {
			t.Errorf("one that closes the circle: %s", got)
		}
		refused.want(cmdOf("set", unix.F_UNLCK, 0, 0), "ok")
		if got := waits.answer(); got != "ok" {
			t.Errorf("the other: %s", got)
		}
	}},
	{"any close of the file drops the process's locks", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		fd := open(t, d+"/f", unix.O_RDWR)
		_, err := setlk(fd, unix.F_SETLK, unix.F_WRLCK, 0, 0)
		must(t, err)
		b := startLockProc(t, d+"/f")
		b.want(cmdOf("set", unix.F_WRLCK, 0, 0), again)
		must(t, openErr(d+"/f", unix.O_RDONLY, 0)) // opens and closes
		b.want(cmdOf("set", unix.F_WRLCK, 0, 0), "ok")
	}},
	{"open file description locks", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := open(t, d+"/f", unix.O_RDWR), open(t, d+"/f", unix.O_RDWR)
		_, err := setlk(a, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 10)
		must(t, err)
		_, err = setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 10)
		wantErr(t, "another description", err, unix.EAGAIN)
		must(t, openErr(d+"/f", unix.O_RDONLY, 0)) // no effect on them
		_, err = setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 10)
		wantErr(t, "after a foreign close", err, unix.EAGAIN)
		dup, err := dupOf(a)
		must(t, err)
		unix.Close(dup)
		_, err = setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 10)
		wantErr(t, "after the close of a duplicate", err, unix.EAGAIN)
	}},
	{"open file description locks end with it", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		b := open(t, d+"/f", unix.O_RDWR)
		for range closeTries {
			unforked(func() {
				a, err := unix.Open(d+"/f", unix.O_RDWR, 0)
				must(t, err)
				_, err = setlk(a, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 10)
				must(t, err)
				must(t, unix.Close(a))
			})
			_, err := setlk(b, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 10)
			must(t, err)
			_, err = setlk(b, unix.F_OFD_SETLK, unix.F_UNLCK, 0, 10)
			must(t, err)
		}
	}},
	{"flock", func(t *T, d string) {
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
	{"flock ends with the last descriptor", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		b := open(t, d+"/f", unix.O_RDONLY)
		for i := range closeTries {
			unforked(func() {
				a, err := unix.Open(d+"/f", unix.O_RDONLY, 0)
				must(t, err)
				must(t, unix.Flock(a, unix.LOCK_EX))
				dup, err := dupOf(a)
				must(t, err)
				must(t, unix.Close(a))
				if i == 0 {
					wantErr(t, "while a duplicate is open", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), unix.EAGAIN)
				}
				must(t, unix.Close(dup))
			})
			must(t, unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB))
			must(t, unix.Flock(b, unix.LOCK_UN))
		}
	}},
	{"errors", func(t *T, d string) {
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

// closeTries is how often a lock must be gone with the close of its file: a
// file system that learns of closes later is seen now and then.
const closeTries = 50

// unforked runs f while no other case starts a process, which would have copies of all
// descriptors until it runs its program, and so keep a file open that f closed.
func unforked(f func()) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f()
}

// dupOf is dup(2) that other processes do not inherit.
func dupOf(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) }
