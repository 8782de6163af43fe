package nfsvm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
)

// server is the program with one NFS gateway over a store of its own.
type server struct {
	t    *testing.T
	dir  string
	port int    // of the NFS gateway
	rest string // URL of the REST gateway

	mu  sync.Mutex
	cmd *exec.Cmd
	out bytes.Buffer
}

// startTimeout is how long a service may take until it answers.
const startTimeout = 20 * time.Second

func start(t *testing.T) *server {
	t.Helper()
	if os.Getenv("OGW_TEST_VM") == "" {
		t.Skip("boots a virtual machine: make test-nfs-kernel (OGW_TEST_VM=1)")
	}
	rest := testenv.FreeAddr(t)
	s := &server{t: t, dir: t.TempDir(), port: testenv.FreePort(t), rest: "http://" + rest}
	config := fmt.Sprintf("[cluster]\ndir = %q\n"+
		"[[gateway]]\nprotocol = \"rest\"\nlisten = %q\n"+
		"[[gateway]]\nprotocol = \"nfs\"\nlisten = \"127.0.0.1:%d\"\n"+
		"[[gateway.export]]\npath = \"/\"\nsquash = \"none\"\ninsecure = true # the relay is nobody's kernel\n", filepath.Join(s.dir, "data"), rest, s.port)
	if err := os.WriteFile(filepath.Join(s.dir, "ogw.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// A copy: the file may be built anew while the test takes its time.
	if out, err := exec.Command("cp", "../../bin/ogw", filepath.Join(s.dir, "ogw")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s (make build makes it)", err, out)
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(syscall.SIGTERM); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", s.out.Bytes()[max(0, s.out.Len()-8000):])
		}
	})
	return s
}

// run starts the program and waits until it accepts connections.
func (s *server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.Command(filepath.Join(s.dir, "ogw"), "serve", "--config", filepath.Join(s.dir, "ogw.toml"))
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if err := testenv.Await(nil, fmt.Sprintf("127.0.0.1:%d", s.port)); err != nil {
		return fmt.Errorf("%w:\n%s", err, s.out.Bytes())
	}
	return nil
}

// stop ends the program; SIGTERM must make it end well.
func (s *server) stop(how syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	s.cmd.Process.Signal(how)
	err := s.cmd.Wait()
	s.cmd = nil
	if how == syscall.SIGKILL {
		return nil
	}
	return err
}

// again ends the program and starts it anew after a pause.
func (s *server) again(how syscall.Signal, pause time.Duration) {
	if err := s.stop(how); err != nil {
		s.t.Errorf("stopping the server: %v", err)
	}
	time.Sleep(pause)
	if err := s.run(); err != nil {
		s.t.Error(err)
	}
}

// boot runs a guest script and fails the test with it.
func (s *server) boot(script string, g Guest) {
	s.t.Helper()
	cache, err := filepath.Abs("../../.cache/nfsvm")
	if err != nil {
		s.t.Fatal(err)
	}
	g.Cache, g.Port, g.Script = cache, s.port, Script(script)
	if g.MemoryMiB == 0 {
		g.MemoryMiB = 512
	}
	if g.Timeout == 0 {
		g.Timeout = 10 * time.Minute
	}
	g.Line = func(line string) { s.t.Log(line) }
	code, err := g.Boot(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	if code != 0 {
		s.t.Errorf("the guest's script ended with %d", code)
	}
}

func TestKernelClientPOSIX(t *testing.T) {
	start(t).boot("posix", Guest{})
}

// TestKernelClientRestart kills and restarts the server where the guest asks
// for it: between WRITE and COMMIT, and while files are made.
func TestKernelClientRestart(t *testing.T) {
	s := start(t)
	var restarts sync.WaitGroup
	s.boot("restart", Guest{Host: func(word string) {
		how := map[string]syscall.Signal{"kill": syscall.SIGKILL, "restart": syscall.SIGTERM}[word]
		if how == 0 {
			t.Errorf("the guest asks for %q", word)
			return
		}
		restarts.Add(1)
		go func() {
			defer restarts.Done()
			s.again(how, 500*time.Millisecond)
			t.Logf("%s done", word)
		}()
	}})
	restarts.Wait()
}
