package survive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/fusemount/holder"
	"ogw/integration/testenv"
)

// watched is a server for a test whose calls may hang in the kernel. When the test
// fails, or takes longer than its limit, all that keeps its mounts is ended first:
// what hangs on them gets an error, also where no signal reaches.
type watched struct {
	*testenv.Server
	held int // number of the last process that held mounts
	mu   sync.Mutex
	dirs []string
}

func watch(t *testing.T, limit time.Duration) *watched {
	t.Helper()
	need(t)
	s := &watched{Server: testenv.NewServer(t, binary, testenv.ServerOptions{})}
	late := time.AfterFunc(limit, func() {
		t.Errorf("it takes longer than %v", limit)
		s.end()
	})
	t.Cleanup(func() {
		if late.Stop() && t.Failed() {
			s.end()
		}
	})
	return s
}

// mount makes a mount that is taken away at the end.
func (s *watched) mount(options string) string {
	s.T.Helper()
	dir := testenv.TempDir(s.T)
	s.mu.Lock()
	s.dirs = append(s.dirs, dir)
	s.mu.Unlock()
	s.OGW("mount", "-o", options, dir)
	s.holder()
	s.T.Cleanup(func() { s.unmount(dir) })
	return dir
}

// unmount takes a mount away that programs have left. The process that notifies the
// kernel may be in it for a moment.
func (s *watched) unmount(dir string) {
	s.T.Helper()
	testenv.Eventually(s.T, "an idle mount", func() error {
		err := unix.Unmount(dir, 0)
		if errors.Is(err, unix.EINVAL) { // it is none any more
			return nil
		}
		return err
	})
}

// end ends the mounts, whoever has them.
func (s *watched) end() {
	if pid := s.holder(); pid > 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if p := s.Process; p != nil {
		_ = unix.Kill(p.PID(), unix.SIGKILL)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range s.dirs {
		if err := unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			s.T.Logf("ending %s: %v", dir, err)
		}
	}
}

// socket is the holder's.
func (s *watched) socket() string { return filepath.Join(s.Data, "holder.sock") }

// holder returns the number of the process: the child of a server; 0 if there is
// none.
func (s *watched) holder() int {
	if s.Process != nil {
		list, _ := filepath.Glob("/proc/[0-9]*/status")
		for _, name := range list {
			b, err := os.ReadFile(name)
			if err != nil || !strings.Contains(string(b), fmt.Sprintf("\nPPid:\t%d\n", s.Process.PID())) || strings.Contains(string(b), "\nState:\tZ") {
				continue
			}
			command, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			if err == nil && strings.Contains(string(command), "\x00"+holder.Command+"\x00") {
				s.held, _ = strconv.Atoi(filepath.Base(filepath.Dir(name)))
			}
		}
	}
	return s.held
}

// holderEnds waits until nothing is held.
func (s *watched) holderEnds() {
	s.T.Helper()
	testenv.Eventually(s.T, "the holder to end", func() error {
		if _, err := os.Stat(s.socket()); !os.IsNotExist(err) {
			return fmt.Errorf("its socket: %w", err)
		}
		return nil
	})
}

// await waits for a file of a program, as long as the test may take.
func (s *watched) await(what, file string) {
	s.T.Helper()
	for begin := time.Now(); time.Since(begin) < testLimit; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	s.T.Fatalf("waited %v for %s", testLimit, what)
}
