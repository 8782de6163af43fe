package fusemount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// unmountRounds of TestUnmountUnderLoad.
const unmountRounds = 40

// Mounts come and go while programs work in them, and while another door
// changes what the kernel has cached, so that notifications are on their way
// when the mount ends. Nothing hangs, and the next mount works.
func TestUnmountUnderLoad(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needFUSE(t)
		rounds := unmountRounds
		if testing.Short() {
			rounds = 10
		}
		fs := openFS(t)
		dir := t.TempDir()
		for round := range rounds {
			s, err := Mount(fs, dir, Options{Transport: over, AllowOther: true, Logger: testLogger(t)})
			must(t, err)
			if round == 0 {
				must(t, os.Mkdir(filepath.Join(dir, "bucket"), 0o755))
			}
			ctx, stop := context.WithCancel(bg)
			var wg sync.WaitGroup
			for w := range 2 {
				wg.Go(func() { useMount(ctx, filepath.Join(dir, "bucket"), w) })
				wg.Go(func() { changeBeside(ctx, t, fs, w) })
			}
			time.Sleep(time.Duration(round%5) * 10 * time.Millisecond) // any moment is right
			inTime(t, fmt.Sprint("unmount ", round), func() { unmountBusy(t, s, round%3 == 0) })
			stop()
			inTime(t, fmt.Sprint("the users of mount ", round), wg.Wait)
			inTime(t, fmt.Sprint("the end of mount ", round), s.Wait)
		}
	})
}

// unmountBusy takes the mount away as soon as no program uses it, or at once.
func unmountBusy(t *testing.T, s *Server, lazy bool) {
	if lazy {
		if err := s.Detach(); err != nil {
			t.Errorf("detach: %v", err)
		}
		return
	}
	for {
		err := s.Unmount()
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("unmount: %v", err)
			return
		}
		time.Sleep(time.Millisecond) // the programs close what they have open now and then
	}
}

// useMount is a program in the mount. Its calls fail when the mount is gone,
// or show what is below it.
func useMount(ctx context.Context, dir string, w int) {
	for n := 0; ctx.Err() == nil; n++ {
		name := filepath.Join(dir, fmt.Sprintf("f%d", n%5))
		if fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR, 0o644); err == nil {
			_, _ = unix.Pwrite(fd, bytes.Repeat([]byte{byte(w)}, 5000), int64(n%3)*4096)
			_ = unix.Close(fd)
		}
		_ = unix.Stat(name, new(unix.Stat_t))
		if n%7 == 0 {
			_ = unix.Unlink(name)
		}
		time.Sleep(time.Millisecond) // leaves moments in which nothing is open
	}
}

// changeBeside is another door, which changes the same names.
func changeBeside(ctx context.Context, t *testing.T, fs *vfs.FS, w int) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("f%d", (n+w)%5)
		body := bytes.Repeat([]byte("beside"), n%1000)
		_, err := fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body))})
		if err == nil && n%5 == 0 {
			_, err = fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, vfs.DeleteOptions{})
		}
		if err != nil {
			t.Errorf("beside the mount: %v", err)
			return
		}
	}
}

// A copy of the mount in another mount namespace keeps the connection open;
// unmounting does not wait for its end.
func TestUnmountBesideNamespace(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		dir, s := mountFS(t, openFS(t), Options{Transport: over})
		other := exec.Command("unshare", "-m", "sh", "-c", "echo copied; read end")
		end, err := other.StdinPipe()
		must(t, err)
		out, err := other.StdoutPipe()
		must(t, err)
		must(t, other.Start())
		if n, _ := out.Read(make([]byte, 10)); n == 0 {
			_ = other.Wait()
			t.Skip("no mount namespaces here")
		}
		inTime(t, "unmount", func() { must(t, s.Unmount()) })
		if mountedType(dir) != "" {
			t.Error("still mounted")
		}
		end.Close()
		_ = other.Wait() // its read ends without a line
		inTime(t, "the end of the copy", s.Wait)
	})
}
