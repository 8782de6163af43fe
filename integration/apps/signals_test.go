package apps

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/testenv"
)

const (
	// answerLimit is when a call counts as hanging.
	answerLimit = 2 * time.Minute
	lookPause   = 2 * time.Millisecond
)

// calls that the callers make, apart from waiting for locks.
var calls = []string{"open", "create", "read", "write", "fsync", "close", "rename", "unlink", "mkdir",
	"truncate", "setxattr", "statfs", "readdir", "load"}

// lockCalls wait for a lock.
var lockCalls = []string{"flock", "setlkw", "ofdlock"}

// caller is a process that makes one system call (testdata/caller.c).
type caller struct {
	t     *testing.T
	call  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// buildCaller compiles the program.
func buildCaller(t *testing.T) string {
	t.Helper()
	need(t, "gcc")
	program := filepath.Join(t.TempDir(), "caller")
	if out, err := exec.Command("gcc", "-O2", "-pthread", "-o", program, "testdata/caller.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

func startCaller(t *testing.T, program, call string, restart bool, file string) *caller {
	t.Helper()
	arg := "0"
	if restart {
		arg = "1"
	}
	c := &caller{t: t, call: call, cmd: exec.Command(program, call, arg, file), lines: make(chan string, 10)}
	var err error
	c.in, err = c.cmd.StdinPipe()
	must(t, err)
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	c.cmd.Stderr = os.Stderr
	must(t, c.cmd.Start())
	go func() {
		defer close(c.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			c.lines <- in.Text()
		}
	}()
	t.Cleanup(c.end)
	c.want("ready")
	return c
}

// end kills the process, if it is still there. One that not even SIGKILL ends
// fails the test, and is left to the end of the server.
func (c *caller) end() {
	c.in.Close()
	c.cmd.Process.Kill()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.cmd.Wait()
	}()
	select {
	case <-gone:
	case <-time.After(answerLimit):
		c.t.Errorf("%s cannot be killed", c.call)
	}
}

// begin lets it make its call.
func (c *caller) begin() {
	c.t.Helper()
	_, err := io.WriteString(c.in, "go\n")
	must(c.t, err)
}

func (c *caller) line() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			return "nothing: it ended"
		}
		return line
	case <-time.After(answerLimit):
		c.t.Fatalf("%s hangs", c.call)
		return ""
	}
}

func (c *caller) want(line string) {
	c.t.Helper()
	if got := c.line(); got != line {
		c.t.Errorf("%s: %q, want %q", c.call, got, line)
	}
}

// result is the errno of the call, and how many signals came.
func (c *caller) result() (errno string, signals string) {
	c.t.Helper()
	words := strings.Fields(c.line())
	if len(words) != 3 || words[0] != "result" {
		c.t.Fatalf("%s says %q", c.call, words)
	}
	return words[1], words[2]
}

func (c *caller) signal() { must(c.t, c.cmd.Process.Signal(syscall.SIGUSR1)) }

// state is the process's letter in /proc/PID/stat.
func state(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "gone"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

// await repeats look until it is content.
func await(t *testing.T, what string, look func() bool) {
	t.Helper()
	for begin := time.Now(); !look(); time.Sleep(lookPause) {
		if time.Since(begin) > answerLimit {
			t.Fatalf("waited %v for %s", answerLimit, what)
		}
	}
}

// pause stops the server where it stands, as a machine that swaps does.
func (m *mount) pause() {
	m.t.Helper()
	must(m.t, syscall.Kill(m.process.PID(), syscall.SIGSTOP))
	m.t.Cleanup(func() {
		if m.process != nil {
			m.resume() // or the end of a failed test could not stop it
		}
	})
	await(m.t, "the server to stop", func() bool { return state(m.process.PID()) == "T" })
}

func (m *mount) resume() { must(m.t, syscall.Kill(m.process.PID(), syscall.SIGCONT)) }

// connection is the kernel's view of the mount, in sysfs.
func (m *mount) connection() string {
	m.t.Helper()
	const dir = "/sys/fs/fuse/connections"
	var st unix.Stat_t
	must(m.t, unix.Stat(m.mnt, &st))
	name := filepath.Join(dir, fmt.Sprint(unix.Minor(st.Dev)))
	if _, err := os.Stat(name); err != nil {
		if err := unix.Mount("none", dir, "fusectl", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			m.t.Skipf("no %s: %v", dir, err)
		}
	}
	return name
}

// waiting is how many requests the kernel has not seen the end of.
func waiting(t *testing.T, connection string) string {
	t.Helper()
	b, err := os.ReadFile(connection + "/waiting")
	must(t, err)
	return strings.TrimSpace(string(b))
}

// blocked starts a caller for each of calls, stops the server, and lets them
// make their calls, which the server does not answer then.
func blocked(t *testing.T, m *mount, program string, calls []string, restart bool) (list []*caller) {
	t.Helper()
	for i, call := range calls {
		// Each has a directory of its own: who changes names in it locks it.
		file := m.callerFile(i)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, make([]byte, 1<<20), 0o644))
		list = append(list, startCaller(t, program, call, restart, file))
	}
	pid := list[0].cmd.Process.Pid
	await(t, "a caller to read", func() bool { return state(pid) == "S" })
	if wchan(pid) == "0" {
		t.Skip("this kernel does not say what processes wait for")
	}
	m.pause()
	for _, c := range list {
		c.begin()
	}
	for _, c := range list {
		await(t, c.call+" to wait for the server", func() bool { return inFUSE(c.cmd.Process.Pid) })
	}
	return list
}

func (m *mount) callerFile(i int) string { return filepath.Join(m.dir, fmt.Sprint(i), "file") }

// wchan is the kernel's function in which a process waits; "0" if it does not
// wait, or the kernel keeps that to itself.
func wchan(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
	if err != nil {
		return "0"
	}
	return string(b)
}

// inFUSE reports whether a process waits for the answer to a request, or for a
// page that one will bring.
func inFUSE(pid int) bool {
	switch w := wchan(pid); {
	case strings.Contains(w, "fuse"), strings.Contains(w, "request_wait"):
		return true
	default:
		return strings.Contains(w, "folio")
	}
}

// TestSignalsDuringCalls sends signals to processes in the middle of calls
// that the server has not answered: as on a local disk, each call goes on to
// its end and succeeds whole, with SA_RESTART and without, and the handler
// runs after it.
func TestSignalsDuringCalls(t *testing.T) {
	m := newMount(t)
	program := buildCaller(t)
	connection := m.connection()
	for _, restart := range []bool{true, false} {
		t.Run(fmt.Sprintf("SA_RESTART %v", restart), func(t *testing.T) {
			m := *m
			m.t = t
			list := blocked(t, &m, program, calls, restart)
			for _, c := range list {
				c.signal()
			}
			for _, c := range list { // the signal came, and the call waits on
				await(t, c.call+" to wait on", func() bool { return state(c.cmd.Process.Pid) == "D" })
			}
			m.resume()
			for _, c := range list {
				c.want("signal")
				if errno, signals := c.result(); errno != "0" || signals != "1" {
					t.Errorf("%s: errno %s after %s signals, want 0 after 1", c.call, errno, signals)
				}
				c.end()
			}
			await(t, "the kernel's requests to end", func() bool { return waiting(t, connection) == "0" })
		})
	}
}

// TestKilledDuringCalls kills processes in the middle of calls, which the
// server has not answered: the calls end, and leave neither requests nor locks.
func TestKilledDuringCalls(t *testing.T) {
	m := newMount(t)
	program := buildCaller(t)
	connection := m.connection()
	list := blocked(t, m, program, append(calls, lockCalls...), false)
	for _, c := range list {
		if c.call == "close" {
			continue // the kernel waits for its answer in any case
		}
		must(t, c.cmd.Process.Kill())
	}
	for _, c := range list {
		if c.call != "close" {
			// Dead, or closing its descriptors, which waits for the server.
			await(t, c.call+" to be killed", func() bool { return !strings.Contains("SR", state(c.cmd.Process.Pid)) })
		}
	}
	m.resume()
	for _, c := range list {
		c.end()
	}
	await(t, "the kernel's requests to end", func() bool { return waiting(t, connection) == "0" })
	for i, c := range list {
		f, err := os.OpenFile(m.callerFile(i), os.O_RDWR, 0)
		must(t, err)
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Errorf("flock after a killed %s: %v", c.call, err)
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			t.Errorf("lock after a killed %s: %v", c.call, err)
		}
		f.Close()
	}
}

// TestSignalsDuringLocks sends signals to processes that wait for locks: with
// SA_RESTART they wait on, without they get EINTR, and their wait is withdrawn.
func TestSignalsDuringLocks(t *testing.T) {
	m := newMount(t)
	program := buildCaller(t)
	connection := m.connection()
	for _, call := range lockCalls {
		now := strings.TrimSuffix(call, "w") + "-now"
		for _, restart := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s SA_RESTART %v", call, restart), func(t *testing.T) {
				file := filepath.Join(m.dir, fmt.Sprintf("%s-%v", call, restart))
				must(t, os.WriteFile(file, nil, 0o644))
				holder := startCaller(t, program, now, false, file)
				holder.begin()
				holder.want("result 0 0")
				c := startCaller(t, program, call, restart, file)
				c.begin()
				for range 3 {
					await(t, "the wait for the lock", func() bool { return waiting(t, connection) == "1" && inFUSE(c.cmd.Process.Pid) })
					c.signal()
					c.want("signal")
					if !restart {
						break
					}
				}
				if !restart {
					if errno, _ := c.result(); errno != fmt.Sprint(int(unix.EINTR)) {
						t.Errorf("errno %s, want EINTR", errno)
					}
					await(t, "the request to end", func() bool { return waiting(t, connection) == "0" })
				}
				holder.end()
				if restart {
					if errno, signals := c.result(); errno != "0" || signals != "3" {
						t.Errorf("errno %s after %s signals, want 0 after 3", errno, signals)
					}
					c.end()
				}
				// Who gave up waiting must not get the lock after all.
				next := startCaller(t, program, now, false, file)
				next.begin()
				next.want("result 0 0")
				next.end()
				c.end()
			})
		}
	}
}

const (
	// lockTries is how often TestSignalsMeetLocks waits and is interrupted;
	// OGW_LOCK_TRIES says otherwise.
	lockTries = 60
	// lockMoments are those of a wait at which it is, and lockMoment lies between
	// two of them.
	lockMoments = 60
	lockMoment  = 100 * time.Microsecond
)

// TestSignalsMeetLocks interrupts or kills a process at any moment of its wait for a
// lock, its begin above all: no signal is lost, the waiter ends. The kernel
// does not notify a server on io_uring of a signal that comes while the request
// is handed over.
func TestSignalsMeetLocks(t *testing.T) {
	for _, call := range []string{"flock", "thread-flock"} {
		t.Run(call, func(t *testing.T) { signalsMeetLocks(t, call) })
	}
}

func signalsMeetLocks(t *testing.T, call string) {
	m := newMount(t)
	program := buildCaller(t)
	file := filepath.Join(m.dir, "locked")
	must(t, os.WriteFile(file, nil, 0o644))
	holder := startCaller(t, program, "flock-now", false, file)
	holder.begin()
	holder.want("result 0 0")
	for i := range testenv.Count(t, "OGW_LOCK_TRIES", lockTries) {
		c := startCaller(t, program, call, false, file)
		c.begin()
		time.Sleep(time.Duration(i%lockMoments) * lockMoment)
		if i%2 == 0 {
			c.signal()
			c.want("signal") // now, or as soon as the call ended
		}
		c.end()
		if t.Failed() {
			return
		}
	}
	holder.end()
}

// TestServerKilledDuringCalls kills the server while calls of each kind wait
// for it, for locks too: all fail, none hangs, nor does a call made later. The
// next server takes the mount over, and the locks of before are gone.
func TestServerKilledDuringCalls(t *testing.T) {
	m := newMount(t)
	program := buildCaller(t)
	safe := filepath.Join(m.dir, "safe")
	must(t, os.WriteFile(safe, []byte("acknowledged"), 0o644))
	holder := startCaller(t, program, "flock-now", false, safe)
	holder.begin()
	holder.want("result 0 0")
	waiter := startCaller(t, program, "flock", true, safe)
	waiter.begin()
	await(t, "the wait for the lock", func() bool { return inFUSE(waiter.cmd.Process.Pid) })
	list := blocked(t, m, program, calls, true)
	m.kill()
	for _, c := range append(list, waiter) {
		errno, _ := c.result()
		if errno != "bus" && !slices.ContainsFunc(killedErrnos, func(want syscall.Errno) bool { return errno == fmt.Sprint(int(want)) }) {
			t.Errorf("%s: errno %s", c.call, errno)
		}
		c.end()
	}
	for name, call := range map[string]func() error{
		"open":   func() error { _, err := os.Open(safe); return err },
		"stat":   func() error { return unix.Stat(filepath.Join(m.dir, "unknown"), new(unix.Stat_t)) },
		"statfs": func() error { return unix.Statfs(m.mnt, new(unix.Statfs_t)) },
		"mkdir":  func() error { return unix.Mkdir(filepath.Join(m.dir, "new"), 0o755) },
	} {
		if err := call(); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("%s on the dead mount: %v, want ENOTCONN", name, err)
		}
	}
	m.start()
	got, err := os.ReadFile(safe)
	if err != nil || string(got) != "acknowledged" {
		t.Errorf("after the restart: %q, %v", got, err)
	}
	next := startCaller(t, program, "flock-now", false, safe)
	next.begin()
	next.want("result 0 0") // the holder still has its descriptor of the dead mount
	next.end()
	holder.end()
}
