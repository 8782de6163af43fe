package fusemount

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/vfs"
)

var bg = context.Background()

// needFUSE skips where the machine has no FUSE at all. Whatever else is
// wrong must fail.
func needFUSE(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("no /dev/fuse on this machine: %v", err)
	}
}

// testLogger writes warnings and errors to the test's log.
func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(logTo{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// openFS opens a namespace over a fresh engine.
func openFS(t testing.TB) *vfs.FS {
	t.Helper()
	c := newCluster(t)
	fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(bg); err != nil {
			t.Errorf("closing the namespace: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closing the cluster: %v", err)
		}
	})
	return fs
}

// mountFS mounts fs on a fresh directory until the test ends.
func mountFS(t testing.TB, fs *vfs.FS, opt Options) (dir string, s *Server) {
	t.Helper()
	needFUSE(t)
	dir = t.TempDir()
	opt.AllowOther = true
	if opt.Logger == nil {
		opt.Logger = testLogger(t)
	}
	s, err := Mount(fs, dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for range 50 { // the kernel may still be releasing files
			if err = s.Unmount(); !errors.Is(err, syscall.EBUSY) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("unmount: %v", err)
			s.Detach()
		}
	})
	return dir, s
}

// mountBucket mounts a fresh namespace with a bucket and returns the
// bucket's directory, open to every user.
func mountBucket(t testing.TB, over Transport) (fs *vfs.FS, dir string) {
	t.Helper()
	fs = openFS(t)
	top, _ := mountFS(t, fs, Options{Transport: over})
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(top, "bucket")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return fs, dir
}

func TestMountErrors(t *testing.T) {
	needFUSE(t)
	fs := openFS(t)
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, says string
		opt             Options
		want            error
	}{
		{"missing", filepath.Join(base, "none"), "does not exist", Options{}, ErrMountPoint},
		{"no directory", file, "not a directory", Options{}, ErrMountPoint},
		{"not empty", base, "not empty", Options{}, ErrMountPoint},
		{"root missing", t.TempDir(), "root", Options{Root: 1 << 40}, vfs.ErrStale},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Mount(fs, c.dir, c.opt)
			if err == nil {
				s.Unmount()
				t.Fatal("mounted")
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q, want %q with %q", err, c.want, c.says)
			}
		})
	}
}

func TestMountTwiceAndNonEmpty(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		dir, _ := mountFS(t, fs, Options{Transport: over})
		if _, err := Mount(fs, dir, Options{Transport: over}); !errors.Is(err, ErrMountPoint) || !strings.Contains(err.Error(), "mounted already") {
			t.Errorf("second mount: %v", err)
		}
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, "x"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Mount(fs, other, Options{Transport: over, NonEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unmount(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(other, "x")); err != nil {
			t.Errorf("what the mount hid: %v", err)
		}
	})
}

// A mount whose server died answers ENOTCONN; the next mount replaces it.
func TestDeadMountIsReplaced(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needFUSE(t)
		dir := t.TempDir()
		fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		opts := "fd=" + itoa(fd) + ",rootmode=40000,user_id=0,group_id=0"
		if err := unix.Mount("ogw", dir, "fuse.ogw", 0, opts); err != nil {
			t.Skipf("cannot mount as this user: %v", err)
		}
		unix.Close(fd)
		if _, err := os.Stat(dir); !errors.Is(err, syscall.ENOTCONN) {
			t.Fatalf("a dead mount answers %v", err)
		}
		mounted, err := Mount(openFS(t), dir, Options{Transport: over})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadDir(dir); err != nil {
			t.Error(err)
		}
		if err := mounted.Unmount(); err != nil {
			t.Error(err)
		}
	})
}

// The same when the kernel still knows attributes of the dead mount.
func TestDeadMountWithWarmCache(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needFUSE(t)
		dir := t.TempDir()
		first, err := Mount(openFS(t), dir, Options{Transport: over})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); err != nil { // kept for a minute
			t.Fatal(err)
		}
		abort(t, dir)
		first.Wait()
		second, err := Mount(openFS(t), dir, Options{Transport: over})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadDir(dir); err != nil {
			t.Error(err)
		}
		if err := second.Unmount(); err != nil {
			t.Error(err)
		}
	})
}

// abort breaks the connection of a mount, as the death of its server does.
func abort(t testing.TB, dir string) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(dir, &st))
	if _, err := os.Stat("/sys/fs/fuse/connections"); err != nil {
		t.Skip("no /sys/fs/fuse")
	}
	name := "/sys/fs/fuse/connections/" + itoa(int(unix.Minor(st.Dev))) + "/abort"
	if err := os.WriteFile(name, []byte("1"), 0); err != nil {
		if err := unix.Mount("none", "/sys/fs/fuse/connections", "fusectl", 0, ""); err != nil && !errors.Is(err, syscall.EBUSY) {
			t.Skipf("cannot abort a FUSE connection: %v", err)
		}
		must(t, os.WriteFile(name, []byte("1"), 0))
	}
}

func TestUnmountBusy(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		dir, s := mountFS(t, fs, Options{Transport: over})
		d, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unmount(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("unmount of a mount in use: %v", err)
		}
		d.Close()
		if err := s.Unmount(); err != nil {
			t.Error(err)
		}
		s.Wait()
		if err := s.Unmount(); err != nil {
			t.Errorf("second unmount: %v", err)
		}
	})
}

func TestReadOnlyMount(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		dir, _ := mountFS(t, fs, Options{Transport: over, ReadOnly: true})
		if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); !errors.Is(err, syscall.EROFS) {
			t.Errorf("mkdir: %v", err)
		}
	})
}

func TestSubdirectoryAsRoot(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		b, err := fs.Mkdir(bg, vfs.Root, vfs.RootIno, "bucket", 0o755)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Mkdir(bg, vfs.Root, b.Ino, "inside", 0o755); err != nil {
			t.Fatal(err)
		}
		dir, _ := mountFS(t, fs, Options{Transport: over, Root: b.Ino})
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != "inside" {
			t.Fatalf("entries %v, %v", entries, err)
		}
		if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
			t.Fatal(err)
		}
		if a, err := fs.Lookup(bg, vfs.Root, b.Ino, "new"); err != nil || !a.IsDir() {
			t.Errorf("made through the mount: %v, %v", a, err)
		}
		// Changes of other doors in the mount's root arrive under node 1.
		if _, err := os.Stat(filepath.Join(dir, "later")); !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if _, err := fs.Mkdir(bg, vfs.Root, b.Ino, "later", 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "later")); err != nil {
			t.Error(err)
		}
		// Entries of the true root, which this mount cannot see, disturb nobody.
		if _, err := fs.Mkdir(bg, vfs.Root, vfs.RootIno, "other", 0o755); err != nil {
			t.Error(err)
		}
	})
}

func TestErrnos(t *testing.T) {
	for _, e := range vfsErrors() {
		if errnoOf(e) == syscall.EIO && !slowEIO[e] {
			t.Errorf("%v has no errno of its own", e)
		}
	}
	if errnoOf(errors.New("unknown")) != syscall.EIO {
		t.Error("unknown errors are EIO")
	}
	if errnoOf(cluster.ErrStop) != syscall.EIO {
		t.Error("what must not reach this door is EIO")
	}
}

// slowEIO are the errors that EIO is right for.
var slowEIO = map[error]bool{
	vfs.ErrIO: true, vfs.ErrCorrupt: true, vfs.ErrUnavailable: true,
	vfs.ErrBadDigest: true, vfs.ErrShortBody: true, vfs.ErrLongBody: true,
}
