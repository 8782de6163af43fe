package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// hangs is when a call counts as hanging.
const hangs = 2 * time.Minute

// inTime fails the test if fn does not return.
func inTime(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(hangs):
		t.Fatalf("%s hangs", what)
	}
}

// mountFaulty mounts a bucket over an engine that fails on demand.
func mountFaulty(t *testing.T, over Transport) (dir string, faults *mem.Faults) {
	t.Helper()
	faults = &mem.Faults{}
	c := mem.New(mem.Options{Faults: faults})
	fs, err := vfs.Open(bg, c, vfs.Config{})
	must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(fs.Close(bg), c.Close()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	top, _ := mountFS(t, fs, Options{Transport: over})
	dir = filepath.Join(top, "bucket")
	must(t, os.Mkdir(dir, 0o755))
	return dir, faults
}

// A failing engine gives each call its errno, keeps what was acknowledged,
// and the mount works again when the engine does.
func TestFailingEngine(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for _, c := range []struct {
			name string
			err  error
			want syscall.Errno
		}{
			{"away", cluster.ErrUnavailable, unix.EIO},
			{"full", cluster.ErrNoSpace, unix.ENOSPC},
			{"broken", errors.New("the engine broke"), unix.EIO},
		} {
			t.Run(c.name, func(t *testing.T) {
				dir, faults := mountFaulty(t, over)
				safe := bytes.Repeat([]byte("acknowledged "), 100_000)
				must(t, os.WriteFile(filepath.Join(dir, "safe"), safe, 0o644)) // its close is durable
				must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
				open, err := os.Create(filepath.Join(dir, "open"))
				must(t, err)
				defer open.Close()

				faults.FailFrom(1, c.err, mem.OpCommit, mem.OpBlobCreate, mem.OpBlobWrite, mem.OpBlobCommit)
				for name, call := range map[string]func() error{
					"mkdir":    func() error { return unix.Mkdir(filepath.Join(dir, "new"), 0o755) },
					"create":   func() error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o644) },
					"unlink":   func() error { return unix.Unlink(filepath.Join(dir, "safe")) },
					"rmdir":    func() error { return unix.Rmdir(filepath.Join(dir, "sub")) },
					"rename":   func() error { return unix.Rename(filepath.Join(dir, "safe"), filepath.Join(dir, "moved")) },
					"link":     func() error { return unix.Link(filepath.Join(dir, "safe"), filepath.Join(dir, "link")) },
					"symlink":  func() error { return unix.Symlink("x", filepath.Join(dir, "symlink")) },
					"chmod":    func() error { return unix.Chmod(filepath.Join(dir, "safe"), 0o600) },
					"truncate": func() error { return unix.Truncate(filepath.Join(dir, "safe"), 0) },
					"setxattr": func() error { return unix.Setxattr(filepath.Join(dir, "safe"), "user.a", []byte("a"), 0) },
					"write and fsync": func() error {
						_, err := open.WriteAt(safe, 0)
						return errors.Join(err, open.Sync())
					},
				} {
					inTime(t, name, func() {
						if err := call(); !errors.Is(err, c.want) {
							t.Errorf("%s: %v, want %v", name, err, c.want)
						}
					})
				}
				faults.Clear()
				// What was written stays until it can be stored.
				inTime(t, "fsync", func() { eventually(t, open.Sync) })
				for _, name := range []string{"safe", "open"} {
					got, err := os.ReadFile(filepath.Join(dir, name))
					if name == "open" && err == nil && len(got) == 0 {
						continue // its failure was reported
					}
					if err != nil || !bytes.Equal(got, safe) {
						t.Errorf("%s after it: %d bytes, %v; want %d", name, len(got), err, len(safe))
					}
				}
				must(t, os.WriteFile(filepath.Join(dir, "new"), []byte("works again"), 0o644))
			})
		}
	})
}

// An engine that cannot be read gives EIO, not wrong bytes and no hang.
func TestUnreadableEngine(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		dir, faults := mountFaulty(t, over)
		data := bytes.Repeat([]byte("data"), 1<<20)
		must(t, os.WriteFile(filepath.Join(dir, "f"), data, 0o644))
		f, err := os.Open(filepath.Join(dir, "f"))
		must(t, err)
		defer f.Close()
		must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		faults.FailFrom(1, cluster.ErrUnavailable)
		inTime(t, "read", func() {
			n, err := f.ReadAt(make([]byte, 100), 3<<20)
			if n != 0 && err == nil {
				return // from a page that stayed
			}
			if !errors.Is(err, unix.EIO) {
				t.Errorf("read: %d, %v", n, err)
			}
		})
		inTime(t, "lookup", func() {
			if _, err := os.Stat(filepath.Join(dir, "unknown")); !errors.Is(err, unix.EIO) {
				t.Errorf("lookup: %v", err)
			}
		})
		inTime(t, "readdir", func() {
			if _, err := os.ReadDir(dir); !errors.Is(err, unix.EIO) {
				t.Errorf("readdir: %v", err)
			}
		})
		faults.Clear()
		got, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("afterwards: %d bytes, %v", len(got), err)
		}
	})
}

// A signal ends a wait for a lock with EINTR.
func TestInterruptedWait(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		_, dir := mountBucket(t, over)
		name := filepath.Join(dir, "f")
		must(t, os.WriteFile(name, nil, 0o644))
		f, err := os.Open(name)
		must(t, err)
		defer f.Close()
		must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
		inTime(t, "flock -w", func() {
			begin := time.Now()
			err := exec.Command("flock", "-w", "0.3", name, "true").Run() // SIGALRM ends its wait
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("flock -w: %v after %v, want the exit code 1", err, time.Since(begin))
			}
		})
		must(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
		inTime(t, "flock", func() { must(t, exec.Command("flock", "-w", "60", name, "true").Run()) })
	})
}

// A program that gets signals all the time writes and reads every byte.
func TestInterruptedTransfers(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		_, dir := mountBucket(t, over)
		local := filepath.Join(t.TempDir(), "data")
		data := make([]byte, 48<<20)
		for i := range data {
			data[i] = byte(i * 31 >> 7)
		}
		must(t, os.WriteFile(local, data, 0o644))
		transfer := func(from, to string, flags ...string) {
			cmd := exec.Command("dd", append([]string{"if=" + from, "of=" + to, "bs=192k", "status=none"}, flags...)...)
			must(t, cmd.Start())
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			for n := 0; ; {
				select {
				case err := <-done:
					if err != nil {
						t.Errorf("dd %s: %v after %d signals", to, err, n)
					}
					return
				case <-time.After(300 * time.Microsecond):
					if catches(cmd.Process.Pid, syscall.SIGUSR1) { // or it would end dd
						cmd.Process.Signal(syscall.SIGUSR1) // dd counts what it did
						n++
					}
				}
			}
		}
		in, out := filepath.Join(dir, "in"), filepath.Join(t.TempDir(), "out")
		for i, flags := range [][]string{{"conv=fsync"}, {"oflag=direct"}} {
			inTime(t, fmt.Sprint("dd ", flags), func() { transfer(local, in, flags...) })
			inTime(t, "dd back", func() { transfer(in, out) })
			got, err := os.ReadFile(out)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("round %d: %d bytes, %v; want %d", i, len(got), err, len(data))
			}
		}
	})
}

// catches reports whether a process has a handler for a signal.
func catches(pid int, sig syscall.Signal) bool {
	status, err := os.ReadFile(statusFile(uint32(pid)))
	if err != nil {
		return false
	}
	_, mask, _ := strings.Cut(string(status), "\nSigCgt:")
	mask, _, _ = strings.Cut(mask, "\n")
	return signalMask(strings.TrimSpace(mask))&(1<<(sig-1)) != 0
}

// Calls on a mount whose connection broke fail at once, those in flight too.
func TestBrokenConnection(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needFUSE(t)
		fs := openFS(t)
		dir := t.TempDir()
		s, err := Mount(fs, dir, Options{Transport: over, AllowOther: true})
		must(t, err)
		t.Cleanup(func() {
			s.Wait()
			if err := detach(dir); err != nil {
				t.Errorf("detach: %v", err)
			}
		})
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("f"), 0o644))
		holder, err := os.Open(filepath.Join(dir, "f"))
		must(t, err)
		defer holder.Close()
		must(t, unix.Flock(int(holder.Fd()), unix.LOCK_EX))
		waiter, err := os.Open(filepath.Join(dir, "f"))
		must(t, err)
		defer waiter.Close()
		waited := make(chan error, 1)
		go func() { waited <- unix.Flock(int(waiter.Fd()), unix.LOCK_EX) }()
		time.Sleep(50 * time.Millisecond) // until it waits; earlier is right as well
		abort(t, dir)
		inTime(t, "a call in flight", func() {
			if err := <-waited; err == nil {
				t.Error("the lock was got")
			}
		})
		for name, call := range map[string]func() error{
			"create": func() error { return os.WriteFile(filepath.Join(dir, "g"), nil, 0o644) },
			"open":   func() error { _, err := os.Open(filepath.Join(dir, "f")); return err },
			"fsync":  holder.Sync,
			"statfs": func() error { return unix.Statfs(dir, new(unix.Statfs_t)) },
		} {
			inTime(t, name, func() {
				if err := call(); !errors.Is(err, unix.ENOTCONN) && !errors.Is(err, unix.ECONNABORTED) {
					t.Errorf("%s: %v, want ENOTCONN", name, err)
				}
			})
		}
		if !IsDead(dir) {
			t.Error("the mount is not found dead")
		}
	})
}
