package nfsvm

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lockGrace is short, as the test waits for its end twice.
const lockGrace = 12 * time.Second

// lockSite is a network of two machines: a namespace of this one with the
// program, rpcbind and a FUSE mount, and the guest behind a tap device.
type lockSite struct {
	t      *testing.T
	dir    string
	enter  []string // runs what follows in the namespace
	binary string
	locker string
	mnt    string // of FUSE

	mu     sync.Mutex
	server *exec.Cmd
	out    bytes.Buffer
	holder *exec.Cmd // of a lock through FUSE
	kept   map[string]string
}

// newNetwork returns a site with nothing in its network.
func newNetwork(t *testing.T) *lockSite {
	t.Helper()
	if os.Getenv("OGW_TEST_VM") == "" {
		t.Skip("boots a virtual machine: make test-nfs-kernel (OGW_TEST_VM=1)")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	s := &lockSite{t: t, dir: t.TempDir(), kept: map[string]string{}}
	s.mnt = filepath.Join(s.dir, "mnt")
	s.locker = filepath.Join(s.dir, "locker")
	build := exec.Command("go", "build", "-o", s.locker, "./locker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var err error
	if s.binary, err = filepath.Abs("../../bin/ogw"); err != nil {
		t.Fatal(err)
	}
	return s
}

func newLockSite(t *testing.T) *lockSite {
	t.Helper()
	s := newNetwork(t)
	config := fmt.Sprintf("[cluster]\ndir = %q\n[log]\nlevel = \"debug\"\n[[gateway]]\nprotocol = \"nfs\"\n"+
		"listen = \"10.0.2.100:2049\"\nportmap = \"on\"\ngrace = %q\n"+
		"[[gateway.export]]\npath = \"/\"\nclients = [\"10.0.2.0/24\"]\nsquash = \"none\"\n",
		filepath.Join(s.dir, "data"), lockGrace)
	if err := errors.Join(os.WriteFile(s.path("ogw.toml"), []byte(config), 0o600), os.Mkdir(s.mnt, 0o755)); err != nil {
		t.Fatal(err)
	}
	s.enter = s.namespace("namespace", nil, `
		ip tuntap add tap0 mode tap
		ip addr add 10.0.2.100/24 dev tap0
		ip link set tap0 up`)
	s.background("rpcbind", "-f", "-w")
	s.await("rpcbind", func() error { return s.in("rpcinfo", "-p", "127.0.0.1") })
	if err := s.serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(syscall.SIGTERM); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", s.out.Bytes()[max(0, s.out.Len()-16000):])
		}
	})
	return s
}

func (s *lockSite) path(name string) string { return filepath.Join(s.dir, name) }

// namespace makes one, which lives as long as a process in it, and returns what runs others
// in it. prepare runs there.
func (s *lockSite) namespace(name string, enter []string, prepare string) []string {
	s.t.Helper()
	args := append(slices.Clone(enter), "unshare", "-n", "-m", "--propagation", "private", "sh", "-ec", `
		mount -t tmpfs run /run
		ip link set lo up`+prepare+`
		echo $$ > "$1"
		exec sleep 100000`, "sh", s.path(name))
	cmd := exec.Command(args[0], args[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s.keep(cmd)
	pid := ""
	s.await("namespace", func() error {
		b, err := os.ReadFile(s.path(name))
		if pid = strings.TrimSpace(string(b)); err == nil && pid == "" {
			err = errors.New("not yet")
		}
		return err
	})
	return []string{"nsenter", "-t", pid, "-n", "-m", "--wd=" + s.dir}
}

// keep starts a process that ends with the test.
func (s *lockSite) keep(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

func (s *lockSite) command(args ...string) *exec.Cmd {
	args = append(append([]string(nil), s.enter...), args...)
	return exec.Command(args[0], args[1:]...)
}

func (s *lockSite) background(args ...string) { s.keep(s.command(args...)) }

// in runs a program in the namespace.
func (s *lockSite) in(args ...string) error {
	if out, err := s.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

func (s *lockSite) await(what string, ready func() error) {
	s.t.Helper()
	var err error
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ready(); err == nil {
			return
		}
	}
	s.t.Errorf("%s: %v", what, err)
}

// serve starts the program and mounts its namespace with FUSE.
func (s *lockSite) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = s.command(s.binary, "serve", "--config", s.path("ogw.toml"))
	s.server.Stdout, s.server.Stderr = &s.out, &s.out
	if err := s.server.Start(); err != nil {
		return fmt.Errorf("%w (make build makes it)", err)
	}
	// Not by a command of the program: without a server it opens the store.
	s.await("server", func() error { return s.in("rpcinfo", "-n", "2049", "-t", "10.0.2.100", "100003", "3") })
	return s.in(s.binary, "mount", "--config", s.path("ogw.toml"), s.mnt)
}

func (s *lockSite) stop(how syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Process.Signal(how)
	err := s.server.Wait()
	_ = s.command("umount", "-l", s.mnt).Run() // what a kill leaves
	if how == syscall.SIGKILL {
		return nil
	}
	return err
}

// do is what the guest asks for by a word; a file answers it.
func (s *lockSite) do(word string) {
	s.t.Logf("host: %s", word)
	file := filepath.Join(s.mnt, "f")
	var err error
	switch word {
	case "fuse-hold":
		s.holder = s.command(s.locker, "hold", file, "w", "0", "0", s.path("held"), s.path("end"))
		if err = s.holder.Start(); err == nil {
			s.await("lock through FUSE", func() error { _, err := os.Stat(s.path("held")); return err })
		}
	case "fuse-release":
		err = errors.Join(os.WriteFile(s.path("end"), nil, 0o600), s.holder.Wait())
	case "fuse-busy":
		var exit *exec.ExitError
		if err = s.in(s.locker, "try", file, "w", "0", "10"); errors.As(err, &exit) && exit.ExitCode() == 3 {
			err = nil
		} else {
			err = fmt.Errorf("a lock that the guest holds: %w", err)
		}
	case "fuse-free":
		err = s.in(s.locker, "try", file, "w", "0", "10")
	case "kill", "restart":
		how := map[string]syscall.Signal{"kill": syscall.SIGKILL, "restart": syscall.SIGTERM}[word]
		err = errors.Join(s.stop(how), s.serve())
	default:
		err = errors.New("no such word")
	}
	if err != nil {
		s.t.Errorf("%s: %v", word, err)
	}
	if err := s.in("touch", filepath.Join(s.mnt, "said-"+word)); err != nil {
		s.t.Errorf("telling the guest: %v", err)
	}
}

// host takes the guest's words, one after the other.
func (s *lockSite) host(do func(string)) (take func(string), done func()) {
	words := make(chan string, 16)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for w := range words {
			if keep, ok := strings.CutPrefix(w, "keep "); ok {
				name, text, _ := strings.Cut(keep, " ")
				s.kept[name] = text
				continue
			}
			do(w)
		}
	}()
	return func(w string) { words <- w }, func() { close(words); <-ended }
}

// boot runs a script with the lock programs of this machine in the guest.
func (s *lockSite) boot(script string, more map[string]string) { s.bootWith(script, more, s.do) }

// bootWith is boot with who does what the guest asks for.
func (s *lockSite) bootWith(script string, more map[string]string, do func(word string)) {
	s.t.Helper()
	cache, err := filepath.Abs("../../.cache/nfsvm")
	if err != nil {
		s.t.Fatal(err)
	}
	files := programs(s.t, "/usr/sbin/rpcbind", "/usr/sbin/rpc.statd", "/usr/sbin/sm-notify", "/usr/bin/sqlite3", "/usr/bin/flock")
	files["bin/locker"] = s.locker
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n_rpc:x:100:65534::/run/rpcbind:/bin/false\n" +
			"statd:x:101:65534::/var/lib/nfs:/bin/false\n",
		"etc/hosts":         "127.0.0.1 localhost\n10.0.2.15 guest\n10.0.2.100 gateway\n",
		"etc/nsswitch.conf": "passwd: files\nhosts: files\nnetgroup: files\nrpc: files\nservices: files\nprotocols: files\n",
		"etc/protocols":     "tcp 6 TCP\nudp 17 UDP\n",
		"etc/services":      "sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\n",
		"etc/rpc":           "portmapper 100000 portmap sunrpc rpcbind\nstatus 100024\nnlockmgr 100021\n",
	} {
		here := s.path("guest-" + filepath.Base(name))
		if err := os.WriteFile(here, []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
		files[name] = here
	}
	files["etc/netconfig"] = "/etc/netconfig"
	for there, here := range more {
		files[there] = here
	}
	take, done := s.host(do)
	g := Guest{Cache: cache, Script: Script("locks", script), Tap: "tap0", Enter: s.enter, Files: files,
		MemoryMiB: 512, Timeout: 10 * time.Minute, Line: func(line string) { s.t.Log(line) }, Host: take}
	code, err := g.Boot(context.Background())
	done()
	if err != nil {
		s.t.Fatal(err)
	}
	if code != 0 {
		s.t.Errorf("the guest's script ended with %d", code)
	}
}

// TestKernelClientLocks locks from a Linux client, against itself, against a
// FUSE mount, and across restarts of the server.
func TestKernelClientLocks(t *testing.T) {
	newLockSite(t).boot("locking", nil)
}

// TestKernelClientLockReboot lets the client die with a lock and boot again.
func TestKernelClientLockReboot(t *testing.T) {
	s := newLockSite(t)
	s.boot("lockdies", nil)
	if len(s.kept) == 0 {
		t.Fatal("the client's status monitor has written nothing")
	}
	disk := map[string]string{}
	for name, text := range s.kept {
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		here := s.path("disk-" + filepath.Base(name))
		if err := os.WriteFile(here, content, 0o644); err != nil {
			t.Fatal(err)
		}
		disk[strings.TrimPrefix(name, "/")] = here
	}
	s.boot("lockback", disk)
}
