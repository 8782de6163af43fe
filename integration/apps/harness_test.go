package apps

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/testenv"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 2 * time.Minute
)

var binary string

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &binary)) }

// mount is one `ogw mount` process over a data folder of its own.
type mount struct {
	t    *testing.T
	base string // data folder, log, mount point, and room for the test
	dir  string // a bucket in the mount
	mnt  string
	with []string // more options of `ogw mount`

	process *testenv.Process // nil: it does not run
}

// newMount starts `ogw mount` and makes a bucket; both go when the test ends,
// after `ogw check` found nothing.
func newMount(t *testing.T, with ...string) *mount {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and /dev/fuse")
	}
	base := testenv.TempDir(t)
	m := &mount{t: t, base: base, mnt: filepath.Join(base, "mnt"), with: with}
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
	cmd := exec.Command(binary, append(append([]string{"mount", "--dir", filepath.Join(m.base, "data"), "--allow-other"}, m.with...), m.mnt)...)
	cmd.Dir = m.base
	p, err := testenv.Start(cmd, m.logFile())
	must(m.t, err)
	m.process = p
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if m.mounted() {
			return
		}
		select {
		case err := <-p.Done():
			m.process = nil
			m.t.Fatalf("ogw mount ended: %v\n%s", err, m.log())
		default:
		}
		if time.Since(begin) > startTimeout {
			m.t.Fatalf("no mount after %v\n%s", startTimeout, m.log())
		}
	}
}

// mounted reports whether the mount answers. A dead one does not, and the folder
// below, which shows while the dead one is replaced, is no mount: one descriptor is
// asked both.
func (m *mount) mounted() bool {
	d, err := os.Open(m.mnt)
	if err != nil {
		return false
	}
	defer d.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &fs); err != nil || fs.Type != unix.FUSE_SUPER_MAGIC {
		return false
	}
	_, err = d.ReadDir(-1)
	return err == nil
}

func (m *mount) logFile() string { return filepath.Join(m.base, "log") }

func (m *mount) log() string { return testenv.Tail(m.logFile()) }

// stop ends the mount as Ctrl-C does.
func (m *mount) stop() {
	m.t.Helper()
	if m.process == nil {
		return
	}
	if err := m.process.Stop(stopTimeout); err != nil {
		m.t.Errorf("ogw mount: %v\n%s", err, m.log())
	}
	m.process = nil
	syscall.Unmount(m.mnt, 2) // what a program that hangs left; an error means there is nothing
}

// kill ends it as a crash does. The dead mount stays.
func (m *mount) kill() {
	m.process.Kill()
	m.process = nil
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
	env := append(os.Environ(), "HOME="+m.base, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GOFLAGS=", "GOPROXY=off")
	return testenv.Output(dir, env, name, args...)
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
