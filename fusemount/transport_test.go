package fusemount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountedFile mounts and makes a file.
func mountedFile(t *testing.T, opt Options) (file string, s *Server) {
	t.Helper()
	dir, s := mountFS(t, openFS(t), opt)
	if err := os.Mkdir(dir+"/bucket", 0o755); err != nil {
		t.Fatal(err)
	}
	file = dir + "/bucket/file"
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, s
}

func TestTransports(t *testing.T) {
	needRing(t)
	fs := openFS(t)
	for transport, want := range map[Transport]bool{TransportRing: true, TransportAuto: true, TransportDevice: false} {
		s, err := Mount(fs, t.TempDir(), Options{Transport: transport, Logger: testLogger(t)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Ring() != want {
			t.Errorf("transport %d: ring %v", transport, s.Ring())
		}
		if err := s.Unmount(); err != nil {
			t.Error(err)
		}
	}
}

// lockEnv has the file and the number for a child process of TestLockers.
const lockEnv = "OGW_TEST_LOCKS"

// lockInTurn has n descriptors of a process wait for an exclusive flock that
// another holds, and then lets them have it one after the other. It returns how
// many got an error instead.
//
// The process is another one: the probe's thread closes copies of the descriptors that the
// server has, and that would be requests to itself.
func lockInTurn(t *testing.T, file string, n int) (refused int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestLockers$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", lockEnv, n, file))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := fmt.Sscanf(string(out[bytes.Index(out, []byte("refused: "))+1:]), "efused: %d", &refused); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return refused
}

// inCall counts the threads of this process that wait in a system call.
func inCall(t *testing.T, number int) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/self/task/*/syscall")
	must(t, err)
	for _, file := range list {
		b, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(b), fmt.Sprintf("%d ", number)) { // else it has ended
			n++
		}
	}
	return n
}

func TestLockers(t *testing.T) {
	var n int
	var file string
	if _, err := fmt.Sscan(os.Getenv(lockEnv), &n, &file); err != nil {
		t.Skip("part of other tests")
	}
	open := func() int {
		fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	holder := open()
	must(t, unix.Flock(holder, unix.LOCK_EX))
	var wg sync.WaitGroup
	var inside, refused atomic.Int32
	for range n {
		fd := open()
		wg.Go(func() {
			if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
				if err != unix.ENOLCK {
					t.Errorf("flock: %v", err)
				}
				refused.Add(1)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two hold the lock")
			}
			inside.Add(-1)
			if err := unix.Flock(fd, unix.LOCK_UN); err != nil {
				t.Errorf("unlock: %v", err)
			}
		})
	}
	eventually(t, func() error {
		if got := inCall(t, unix.SYS_FLOCK) + int(refused.Load()); got < n {
			return fmt.Errorf("%d of %d wait or were refused", got, n)
		}
		return nil
	})
	inTime(t, "a file beside them", func() {
		for i := range 50 {
			name := fmt.Sprintf("%s-%d", file, i)
			must(t, os.WriteFile(name, []byte("beside"), 0o644))
			must(t, os.Remove(name))
		}
	})
	inTime(t, "unlock", func() { must(t, unix.Flock(holder, unix.LOCK_UN)) })
	inTime(t, "the locks", wg.Wait)
	fmt.Printf("refused: %d\n", refused.Load())
}

// Requests that wait hold up nobody: each has a thread, and there is another one.
func TestLockWaiters(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		const waiters = 60
		file, s := mountedFile(t, Options{Transport: over})
		first := 0
		if over == TransportRing {
			first = s.conn.ring.ThreadCount()
		}
		if failed := lockInTurn(t, file, waiters); failed != 0 {
			t.Errorf("%d locks were refused", failed)
		}
		if over != TransportRing {
			return
		}
		if n := s.conn.ring.ThreadCount(); n < waiters || n > 2*waiters+first {
			t.Errorf("%d threads, %d at first", n, first)
		}
	})
}

// Where there may be no more threads, a lock is refused rather than waited for by
// the last: who unlocks gets through.
func TestRingFull(t *testing.T) {
	needRing(t)
	_, unlimited := mountedFile(t, Options{Transport: TransportRing})
	limit := unlimited.conn.ring.ThreadCount() + 8
	file, s := mountedFile(t, Options{Transport: TransportRing, ringThreads: limit})
	if refused := lockInTurn(t, file, limit+40); refused < 40 {
		t.Errorf("only %d locks were refused", refused)
	}
	if n := s.conn.ring.ThreadCount(); n > limit {
		t.Errorf("%d threads of %d", n, limit)
	}
	if failed := lockInTurn(t, file, 1); failed != 0 {
		t.Errorf("%d locks were refused later", failed)
	}
}

// flockProcess waits for a lock that is held, in a process of its own.
func flockProcess(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("flock", file, "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	time.Sleep(50 * time.Millisecond) // it waits, or will: both must do
	return cmd
}

func ended(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	inTime(t, "the end of the process that waits for a lock", func() { cmd.Wait() })
}

// A signal interrupts a wait, the kernel's end of the connection all of them.
func TestWaitsEnd(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		file, s := mountedFile(t, Options{Transport: over})
		fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		must(t, unix.Flock(fd, unix.LOCK_EX))
		cmd := flockProcess(t, file)
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		ended(t, cmd)

		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Dir(filepath.Dir(file)), &st))
		cmd = flockProcess(t, file)
		err = os.WriteFile(fmt.Sprintf("/sys/fs/fuse/connections/%d/abort", unix.Minor(st.Dev)), []byte("1"), 0)
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("fusectl is not mounted")
		}
		must(t, err)
		ended(t, cmd)
		inTime(t, "the end of the server", s.Wait)
		if err := s.Detach(); err != nil {
			t.Error(err)
		}
	})
}

// Many large and small requests at a time, each with the right bytes.
func TestParallelRequests(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		file, _ := mountedFile(t, Options{Transport: over})
		const size, readers = 8 << 20, 32
		want := make([]byte, size)
		r := rand.NewChaCha8([32]byte{1})
		r.Read(want)
		must(t, os.WriteFile(file, want, 0o644))
		var wg sync.WaitGroup
		for i := range readers {
			wg.Go(func() {
				fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECT, 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer unix.Close(fd)
				r := rand.New(rand.NewPCG(1, uint64(i)))
				buf := make([]byte, 1<<20)
				for range 40 {
					off, n := r.IntN(size/4096)*4096, 4096<<r.IntN(9)
					got, err := unix.Pread(fd, buf[:n], int64(off))
					if err != nil || got != min(n, size-off) || !bytes.Equal(buf[:got], want[off:off+got]) {
						t.Errorf("%d bytes at %d: %d, %v", n, off, got, err)
						return
					}
				}
			})
		}
		for i := range readers {
			wg.Go(func() {
				name := fmt.Sprintf("%s-%d", file, i)
				for k := range 20 {
					text := bytes.Repeat([]byte{byte(i), byte(k)}, 1<<(k%18))
					if err := os.WriteFile(name, text, 0o644); err != nil {
						t.Error(err)
						return
					}
					if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, text) {
						t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(text))
						return
					}
				}
			})
		}
		wg.Wait()
	})
}
