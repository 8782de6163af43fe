package integration

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
)

const stopTimeout = 30 * time.Second

// binary is the ogw under test, built once by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &binary)) }

// server is one `ogw serve` over a data folder of its own.
type server struct {
	t      *testing.T
	dir    string // holds config, data folder, log
	data   string
	config string
	s3     string // host:port
	rest   string
	nfs    string
	keyID  string
	secret string

	process *testenv.Process // nil: it does not run
}

// options of newServer.
type options struct {
	data  string // data folder; default: a new one
	extra string // lines added to the configuration
}

// newServer starts a server with an S3, a REST and an NFS gateway, and stops
// it when the test ends.
func newServer(t *testing.T, o options) *server {
	t.Helper()
	dir := testenv.TempDir(t)
	s := &server{t: t, dir: dir, data: o.data, config: filepath.Join(dir, "ogw.toml"),
		s3: testenv.FreeAddr(t), rest: testenv.FreeAddr(t), nfs: testenv.FreeAddr(t)}
	if s.data == "" {
		s.data = filepath.Join(dir, "data")
	}
	text := fmt.Sprintf(`
[cluster]
engine = "embedded"
dir = %q

[[gateway]]
protocol = "s3"
listen = %q

[[gateway]]
protocol = "rest"
listen = %q

[[gateway]]
protocol = "nfs"
listen = %q

%s`, s.data, s.s3, s.rest, s.nfs, o.extra)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start runs the binary and waits until it answers. It returns how long that took.
func (s *server) start() time.Duration {
	s.t.Helper()
	begin := time.Now()
	p, err := testenv.Start(exec.Command(binary, "serve", "--config", s.config), s.logFile())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := testenv.Await(p.Done(), s.s3, s.rest, s.nfs); err != nil {
		syscall.Kill(p.PID(), syscall.SIGKILL)
		s.t.Fatalf("ogw: %v\n%s", err, s.log())
	}
	s.process = p
	// The kernel accepts connections before anything is served.
	resp, err := http.Get("http://" + s.s3 + "/")
	if err != nil {
		s.t.Fatalf("ogw does not answer: %v\n%s", err, s.log())
	}
	resp.Body.Close()
	took := time.Since(begin)
	s.readCredentials()
	return took
}

func (s *server) logFile() string { return filepath.Join(s.dir, "log") }

func (s *server) log() string { return testenv.Tail(s.logFile()) }

// stop ends the server as Ctrl-C does and checks that it ended well.
func (s *server) stop() {
	s.t.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.Stop(stopTimeout); err != nil {
		s.t.Errorf("ogw: %v\n%s", err, s.log())
	}
	s.process = nil
}

// kill ends the server as a crash does.
func (s *server) kill() {
	s.process.Kill()
	s.process = nil
}

// with returns s for a subtest, which then is what fails.
func (s *server) with(t *testing.T) *server {
	c := *s
	c.t = t
	return &c
}

// command runs a program and returns its output; it fails the test if the
// program does.
func (s *server) command(name string, args ...string) string {
	s.t.Helper()
	out, err := s.try(name, args...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s\nserver log:\n%s", name, strings.Join(args, " "), err, out, s.log())
	}
	return out
}

// try is command for a program that may fail.
func (s *server) try(name string, args ...string) (string, error) {
	// Only this: what else the environment says of AWS is about something else.
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C.UTF-8"},
		"AWS_ACCESS_KEY_ID="+s.keyID, "AWS_SECRET_ACCESS_KEY="+s.secret,
		"AWS_DEFAULT_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
	return testenv.Output("", env, name, args...)
}

// aws runs Debian's aws against the S3 gateway.
func (s *server) aws(args ...string) string {
	s.t.Helper()
	return s.command("/usr/bin/aws", append([]string{"--endpoint-url", "http://" + s.s3}, args...)...)
}

// ogw runs a command of the CLI.
func (s *server) ogw(args ...string) string {
	s.t.Helper()
	return s.command(binary, append(args[:1:1], append([]string{"--config", s.config}, args[1:]...)...)...)
}

// nfsURL is libnfs's name of a path.
func (s *server) nfsURL(path string) string {
	host, port, _ := net.SplitHostPort(s.nfs)
	return fmt.Sprintf("nfs://%s%s?nfsport=%s&mountport=%s&version=3&uid=0&gid=0", host, path, port, port)
}

// mount makes a FUSE mount in the server and takes it away at the end.
func (s *server) mount(args ...string) string {
	s.t.Helper()
	dir := filepath.Join(testenv.TempDir(s.t), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.ogw(append(append([]string{"mount"}, args...), dir)...)
	s.t.Cleanup(func() {
		if mounts, _ := os.ReadFile("/proc/mounts"); !strings.Contains(string(mounts), dir) {
			return // the server was stopped, and took its mounts along
		}
		if out, err := s.try(binary, "umount", "--config", s.config, dir); err != nil {
			s.try("umount", "-l", dir)
			s.t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return dir
}

// eventually tries fn until it succeeds: for what the server does in the
// background, within a bound.
func eventually(t *testing.T, what string, fn func() error) {
	t.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
		if err = fn(); err == nil {
			return
		}
	}
	t.Fatalf("waited 30 s for %s: %v", what, err)
}

// readCredentials takes the root user's key from the file that the first
// start wrote.
func (s *server) readCredentials() {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.data, "credentials"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			s.keyID = strings.TrimSpace(value)
		case "aws_secret_access_key":
			s.secret = strings.TrimSpace(value)
		}
	}
}
