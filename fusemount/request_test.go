package fusemount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs"
)

// stuckKV is an engine behind a network that is gone: while it is stuck, every
// transaction waits, for the engine or for its context's end.
type stuckKV struct {
	cluster.KV
	mu      sync.Mutex
	gate    chan struct{} // nil: not stuck
	waiting int
}

func (k *stuckKV) stick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gate = make(chan struct{})
}

func (k *stuckKV) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gate != nil {
		close(k.gate)
		k.gate = nil
	}
}

func (k *stuckKV) waiters() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting
}

func (k *stuckKV) await(ctx context.Context) error {
	k.mu.Lock()
	gate := k.gate
	if gate == nil {
		k.mu.Unlock()
		return nil
	}
	k.waiting++
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.waiting--
		k.mu.Unlock()
	}()
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *stuckKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	if err := k.await(ctx); err != nil {
		return err
	}
	return k.KV.View(ctx, fn)
}

func (k *stuckKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	if err := k.await(ctx); err != nil {
		return err
	}
	return k.KV.Peek(ctx, fn)
}

func (k *stuckKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if err := k.await(ctx); err != nil {
		return err
	}
	return k.KV.Update(ctx, fn)
}

func mountStuck(t *testing.T, over Transport) (kv *stuckKV, dir string) {
	needFUSE(t)
	c := newCluster(t)
	kv = &stuckKV{KV: c.KV}
	c.KV = kv
	v, err := vfs.Open(t.Context(), c, vfs.Config{NoBackground: true})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(v.Close(bg), c.Close())) })
	dir, _ = mountFS(t, v, Options{Transport: over})
	t.Cleanup(kv.release) // before the mount ends
	must(t, os.Mkdir(filepath.Join(dir, "bbb"), 0o755))
	write(t, filepath.Join(dir, "bbb/file"), "text")
	must(t, os.Mkdir(filepath.Join(dir, "bbb/dir"), 0o755))
	return kv, filepath.Join(dir, "bbb")
}

// TestKilledCallersAreGivenUp kills programs whose calls wait for the engine:
// they end, whatever they did, and nothing of it is done.
func TestKilledCallersAreGivenUp(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		kv, dir := mountStuck(t, over)
		for _, command := range []string{
			"cat new/absent", "stat absent", "touch made", "mkdir made", "mv file moved", "rm file", "ln file made", "ln -s x made",
			"chmod 600 file", "truncate -s 1 file", "cat file", "ls dir", "rmdir dir", "sync file", "mkfifo made",
			"dd if=/dev/zero of=file bs=1M count=2 conv=notrunc,fsync",
		} {
			t.Run(command, func(t *testing.T) {
				kv.stick()
				defer kv.release()
				// The shell goes there, not this process, which answers it.
				cmd := exec.Command("sh", "-c", "cd '"+dir+"' && exec "+command)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				must(t, cmd.Start())
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				eventually(t, func() error {
					if kv.waiters() == 0 {
						return errors.New("it does not wait")
					}
					return nil
				})
				// A signal that it takes, and goes on as from a local disk.
				must(t, cmd.Process.Signal(syscall.SIGSTOP))
				must(t, cmd.Process.Signal(syscall.SIGCONT))
				select {
				case err := <-ended:
					t.Fatalf("it ended before it was killed: %v", err)
				case <-time.After(3 * callerPause):
				}
				must(t, cmd.Process.Kill())
				select {
				case <-ended:
				case <-time.After(10 * time.Second):
					t.Error("it was killed, and goes on waiting")
					kv.release()
					<-ended
				}
			})
		}
		for name, want := range map[string]bool{"file": true, "dir": true, "made": false, "moved": false} {
			_, err := os.Lstat(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) == want {
				t.Errorf("%s: %v", name, err)
			}
		}
		if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || len(b) < 4 {
			t.Errorf("file: %d bytes, %v", len(b), err)
		}
	})
}

// TestSignalsDoNotEndCalls: a program that takes signals gets the answer of its
// call, however long that takes.
func TestSignalsDoNotEndCalls(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		kv, dir := mountStuck(t, over)
		kv.stick()
		cmd := exec.Command("python3", "-c", `
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *a: None)
os.mkdir(sys.argv[1])
print("made")`, filepath.Join(dir, "by-signals"))
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("no python3")
		}
		var out strings.Builder
		cmd.Stdout = &out
		cmd.Stderr = os.Stderr
		must(t, cmd.Start())
		eventually(t, func() error {
			if kv.waiters() == 0 {
				return errors.New("it does not wait")
			}
			return nil
		})
		for range 5 {
			must(t, cmd.Process.Signal(syscall.SIGUSR1))
			time.Sleep(callerPause)
		}
		kv.release()
		if err := cmd.Wait(); err != nil || out.String() != "made\n" {
			t.Errorf("%q, %v", out.String(), err)
		}
	})
}

func TestKillPending(t *testing.T) {
	for value, want := range map[string]bool{"0000000000000000": false, "0000000000000100": true, "0000000000000200": false, "x": false} {
		if got := killPending(fmt.Appendf(nil, "Name:\tx\nSigPnd:\t%s\nShdPnd:\t0000000000000100\n", value)); got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
}

// TestRequestContext: nothing is started until something waits, and the watch
// ends by itself.
func TestRequestContext(t *testing.T) {
	var w killWatch
	type key struct{}
	r := &request{Context: context.WithValue(t.Context(), key{}, "v"), watch: &w, tid: uint32(os.Getpid())}
	if r.Err() != nil || r.Value(key{}) != "v" || w.running {
		t.Error("a request that waits for nothing")
	}
	if d := r.Done(); d != r.Done() || !w.running || len(w.waiting) != 1 {
		t.Error("a request that waits")
	}
	r.kill()
	<-r.Done()
	if !errors.Is(r.Err(), context.Canceled) {
		t.Error(r.Err())
	}
	r.end()
	if len(w.waiting) != 0 {
		t.Error("it is looked at after its end")
	}
	eventually(t, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.running {
			return errors.New("the watch goes on")
		}
		return nil
	})
}
