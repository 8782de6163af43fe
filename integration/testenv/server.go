package testenv

import (
	"cmp"
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
)

const (
	stopTimeout = 30 * time.Second
	// eventually is how long a test waits for what a server does in the
	// background, on a machine that other work may keep.
	eventually      = 30 * time.Second
	eventuallyPause = 100 * time.Millisecond
)

// Server is one `ogw serve` over a data folder of its own, with an S3, a REST
// and an NFS gateway.
type Server struct {
	T      testing.TB
	Binary string
	Dir    string // holds the configuration, the data folder, the log
	Data   string
	Config string // path of the configuration
	S3     string // host:port
	REST   string
	NFS    string
	KeyID  string // root's access key
	Secret string
	Env    []string // added to the environment

	Process *Process // nil: it does not run
}

// ServerOptions are the options of NewServer.
type ServerOptions struct {
	Data     string // data folder; default: a new one
	Extra    string // tables added to the configuration
	Cluster  string // lines added to [cluster]
	Engine   string // default: embedded
	S3, REST string // lines added to the gateway
	NFS      string
}

// NewServer starts binary as a server, and stops it when the test ends.
func NewServer(t testing.TB, binary string, o ServerOptions) *Server {
	t.Helper()
	s := PrepareServer(t, binary, o)
	s.Start()
	return s
}

// PrepareServer returns a server to be started, which is stopped when the test ends.
func PrepareServer(t testing.TB, binary string, o ServerOptions) *Server {
	t.Helper()
	dir := TempDir(t)
	s := &Server{T: t, Binary: binary, Dir: dir, Data: o.Data, Config: filepath.Join(dir, "ogw.toml"),
		S3: FreeAddr(t), REST: FreeAddr(t), NFS: FreeAddr(t)}
	if s.Data == "" {
		s.Data = filepath.Join(dir, "data")
	}
	text := fmt.Sprintf("[cluster]\nengine = %q\ndir = %q\n%s\n", cmp.Or(o.Engine, "embedded"), s.Data, o.Cluster)
	if os.Geteuid() != 0 {
		o.NFS = "insecure = true # who runs the suites has no reserved ports\n" + o.NFS
	}
	for _, g := range []struct{ protocol, listen, lines string }{
		{"s3", s.S3, o.S3}, {"rest", s.REST, o.REST}, {"nfs", s.NFS, o.NFS},
	} {
		text += fmt.Sprintf("\n[[gateway]]\nprotocol = %q\nlisten = %q\n%s\n", g.protocol, g.listen, g.lines)
	}
	if err := os.WriteFile(s.Config, []byte(text+"\n"+o.Extra), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s
}

// Start runs the binary and waits until it answers. It returns how long that
// took.
func (s *Server) Start() time.Duration {
	s.T.Helper()
	begin := time.Now()
	s.Launch()
	s.Await()
	return time.Since(begin)
}

// Launch runs the binary.
func (s *Server) Launch() {
	s.T.Helper()
	var err error
	cmd := exec.Command(s.Binary, "serve", "--config", s.Config)
	cmd.Env = append(os.Environ(), s.Env...)
	if s.Process, err = Start(cmd, s.LogFile()); err != nil {
		s.T.Fatal(err)
	}
}

// Await waits until what was launched answers.
func (s *Server) Await() {
	s.T.Helper()
	addrs := []string{s.S3, s.REST}
	if s.NFS != "" {
		addrs = append(addrs, s.NFS)
	}
	p := s.Process
	s.Process = nil // until it serves, there is nothing to be stopped
	if err := Await(p.Done(), addrs...); err != nil {
		syscall.Kill(p.PID(), syscall.SIGKILL)
		s.T.Fatalf("ogw: %v\n%s", err, s.Log())
	}
	s.Process = p
	// The kernel accepts connections before anything is served.
	resp, err := http.Get("http://" + s.S3 + "/")
	if err != nil {
		s.T.Fatalf("ogw does not answer: %v\n%s", err, s.Log())
	}
	resp.Body.Close()
	s.readCredentials()
}

// LogFile is the file that holds what the server printed.
func (s *Server) LogFile() string { return filepath.Join(s.Dir, "log") }

// Log returns the end of what the server printed.
func (s *Server) Log() string { return Tail(s.LogFile()) }

// Stop ends the server as Ctrl-C does and checks that it ended well.
func (s *Server) Stop() {
	s.T.Helper()
	if s.Process == nil {
		return
	}
	if err := s.Process.Stop(stopTimeout); err != nil {
		s.T.Errorf("ogw: %v\n%s", err, s.Log())
	}
	s.Process = nil
}

// Kill ends the server as a crash does.
func (s *Server) Kill() {
	s.Process.Kill()
	s.Process = nil
}

// With returns s for a subtest, which then is what fails.
func (s *Server) With(t testing.TB) *Server {
	c := *s
	c.T = t
	return &c
}

// Command runs a program and returns its output; it fails the test if the
// program does.
func (s *Server) Command(name string, args ...string) string {
	s.T.Helper()
	out, err := s.Try(name, args...)
	if err != nil {
		s.T.Fatalf("%s %s: %v\n%s\nserver log:\n%s", name, strings.Join(args, " "), err, out, s.Log())
	}
	return out
}

// Try is Command for a program that may fail.
func (s *Server) Try(name string, args ...string) (string, error) {
	// Only this: what else the environment says of AWS is about something else.
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "LC_ALL=C.UTF-8"},
		"AWS_ACCESS_KEY_ID="+s.KeyID, "AWS_SECRET_ACCESS_KEY="+s.Secret,
		"AWS_DEFAULT_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
	return Output("", env, name, args...)
}

// AWS runs Debian's aws against the S3 gateway.
func (s *Server) AWS(args ...string) string {
	s.T.Helper()
	return s.Command("/usr/bin/aws", append([]string{"--endpoint-url", "http://" + s.S3}, args...)...)
}

// OGW runs a command of the CLI.
func (s *Server) OGW(args ...string) string {
	s.T.Helper()
	return s.Command(s.Binary, s.cli(args)...)
}

// TryOGW is OGW for a command that may fail.
func (s *Server) TryOGW(args ...string) (string, error) { return s.Try(s.Binary, s.cli(args)...) }

// cli adds the configuration to a command's arguments.
func (s *Server) cli(args []string) []string {
	return append(args[:1:1], append([]string{"--config", s.Config}, args[1:]...)...)
}

// NFSURL is libnfs's name of a path.
func (s *Server) NFSURL(path string) string {
	host, port, _ := net.SplitHostPort(s.NFS)
	return fmt.Sprintf("nfs://%s%s?nfsport=%s&mountport=%s&version=3&uid=0&gid=0", host, path, port, port)
}

// Mount makes a FUSE mount in the server and takes it away at the end.
func (s *Server) Mount(args ...string) string {
	s.T.Helper()
	dir := filepath.Join(TempDir(s.T), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.T.Fatal(err)
	}
	s.OGW(append(append([]string{"mount"}, args...), dir)...)
	s.T.Cleanup(func() {
		if mounts, _ := os.ReadFile("/proc/mounts"); !strings.Contains(string(mounts), dir) {
			return // the server was stopped, and took its mounts along
		}
		if out, err := s.TryOGW("umount", dir); err != nil {
			s.Try("umount", "-l", dir)
			s.T.Errorf("umount: %v\n%s", err, out)
		}
	})
	return dir
}

// Eventually tries fn until it succeeds: for what a server does in the
// background, within a bound.
func Eventually(t testing.TB, what string, fn func() error) {
	t.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < eventually; time.Sleep(eventuallyPause) {
		if err = fn(); err == nil {
			return
		}
	}
	t.Fatalf("waited %v for %s: %v", eventually, what, err)
}

// readCredentials takes the root user's key from the file that the first
// start wrote.
func (s *Server) readCredentials() {
	s.T.Helper()
	b, err := os.ReadFile(filepath.Join(s.Data, "credentials"))
	if os.IsNotExist(err) {
		return // secrets are sealed: root's key is as it was, or unknown
	}
	if err != nil {
		s.T.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			s.KeyID = strings.TrimSpace(value)
		case "aws_secret_access_key":
			s.Secret = strings.TrimSpace(value)
		}
	}
}
