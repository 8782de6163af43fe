package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 2 * time.Minute
	// commandTimeout is far above what any program here takes.
	commandTimeout = 10 * time.Minute
)

var binary string

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &binary)) }

// mount is one `ogw mount` process over a data folder of its own.
type mount struct {
	t    *testing.T
	base string // data folder, log, mount point, and room for the test
	dir  string // a bucket in the mount
	mnt  string
	cmd  *exec.Cmd
	done chan error
}

// newMount starts `ogw mount` and makes a bucket; both go when the test ends,
// after `ogw check` found nothing.
func newMount(t *testing.T) *mount {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and /dev/fuse")
	}
	base := testenv.TempDir(t)
	m := &mount{t: t, base: base, mnt: filepath.Join(base, "mnt")}
	must(t, os.Mkdir(m.mnt, 0o755))
	m.start()
	t.Cleanup(func() {
		m.stop()
		if !t.Failed() {
			m.run(base, binary, "check", "--dir", filepath.Join(base, "data"))
		}
	})
	m.dir = filepath.Join(m.mnt, "bucket")
	must(t, os.Mkdir(m.dir, 0o755))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *mount) start() {
	m.t.Helper()
	log, err := os.OpenFile(filepath.Join(m.base, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(m.t, err)
	defer log.Close()
	m.cmd = exec.Command(binary, "mount", "--dir", filepath.Join(m.base, "data"), "--allow-other", m.mnt)
	m.cmd.Dir, m.cmd.Stdout, m.cmd.Stderr = m.base, log, log
	must(m.t, m.cmd.Start())
	m.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(m.cmd, m.done)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if mounts, err := os.ReadFile("/proc/mounts"); err == nil && strings.Contains(string(mounts), m.mnt+" fuse.ogw") {
			if _, err := os.ReadDir(m.mnt); err == nil {
				return
			}
		}
		select {
		case err := <-m.done:
			m.cmd = nil
			m.t.Fatalf("ogw mount ended: %v\n%s", err, m.log())
		default:
		}
		if time.Since(begin) > startTimeout {
			m.t.Fatalf("no mount after %v\n%s", startTimeout, m.log())
		}
	}
}

func (m *mount) log() string {
	b, _ := os.ReadFile(filepath.Join(m.base, "log"))
	return string(b[max(0, len(b)-8<<10):])
}

// stop ends the mount as Ctrl-C does.
func (m *mount) stop() {
	m.t.Helper()
	if m.cmd == nil {
		return
	}
	m.cmd.Process.Signal(syscall.SIGINT)
	select {
	case err := <-m.done:
		if err != nil {
			m.t.Errorf("ogw mount ended with %v\n%s", err, m.log())
		}
	case <-time.After(stopTimeout):
		m.cmd.Process.Kill()
		<-m.done
		m.t.Errorf("ogw mount did not stop within %v\n%s", stopTimeout, m.log())
	}
	m.cmd = nil
	syscall.Unmount(m.mnt, 2) // what a program that hangs left; an error means there is nothing
}

// kill ends it as a crash does. The dead mount stays.
func (m *mount) kill() {
	m.cmd.Process.Kill()
	<-m.done
	m.cmd = nil
}

// run runs a program in a folder and returns its output; it fails the test
// if the program does.
func (m *mount) run(dir, name string, args ...string) string {
	m.t.Helper()
	out, err := m.try(dir, name, args...)
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s\nlog:\n%s", name, strings.Join(args, " "), err, tail(out), m.log())
	}
	return out
}

func (m *mount) try(dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+m.base, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GOFLAGS=", "GOPROXY=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("still running after %v", commandTimeout)
	}
	return out.String(), err
}

func tail(s string) string { return s[max(0, len(s)-8<<10):] }

// need skips where a program is missing that `make deps` installs.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed (make deps)", p)
		}
	}
}

// goRoot is where the toolchain's sources are: real input.
func goRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}
