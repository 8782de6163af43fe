package posix

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster/local"
	"ogw/fusemount"
	"ogw/vfs"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// Where TestDirectory runs: OGW_POSIX_DIR on any mount, OGW_POSIX_OTHER on
// another file system, OGW_POSIX_WITHOUT a list of features that the first
// one lacks, OGW_POSIX_EXPECTED the failures that must be (Config.Expected),
// one a line.
const (
	dirEnv      = "OGW_POSIX_DIR"
	otherEnv    = "OGW_POSIX_OTHER"
	withoutEnv  = "OGW_POSIX_WITHOUT"
	expectedEnv = "OGW_POSIX_EXPECTED"
)

// TestDirectory runs the suite on a directory that somebody names: an NFS
// mount, for one.
func TestDirectory(t *testing.T) {
	dir := os.Getenv(dirEnv)
	if dir == "" {
		t.Skipf("%s names no directory", dirEnv)
	}
	expected, err := ParseExpected(os.Getenv(expectedEnv))
	if err != nil {
		t.Fatal(err)
	}
	Run(t, Config{Dir: dir, Other: os.Getenv(otherEnv), Without: ParseFeatures(os.Getenv(withoutEnv)), Expected: expected})
}

// What local file systems have not.
var (
	notOfExt4  = []Feature{Own, XattrBig}
	notOfTmpfs = []Feature{Own, XattrBig, ZeroRange, Chattr}
)

// TestLocal shows that the suite is right: the file system of the disk
// passes it.
func TestLocal(t *testing.T) {
	dir := diskDir(t, "/var/tmp")
	without := notOfExt4
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC:
	case unix.XFS_SUPER_MAGIC:
		without = []Feature{Own}
	default:
		t.Skipf("a file system of type %#x has rules of its own", st.Type)
	}
	Run(t, Config{Dir: dir, Other: "/dev/shm", Without: without})
}

// TestTmpfs does the same on a tmpfs.
func TestTmpfs(t *testing.T) {
	dir := diskDir(t, "/dev/shm")
	Run(t, Config{Dir: dir, Other: "/var/tmp", Without: notOfTmpfs})
}

func diskDir(t *testing.T, base string) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "ogw-posix-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// notOfOGW: devices cannot be opened (nodev), and directories have one link.
var notOfOGW = []Feature{Devices, DirLinks}

// TestFUSE runs the suite through an ogw mount. The suite is a process of
// its own: one that faults on pages of a mount which it serves itself can
// block for good, since Go's collector waits for the faulting thread.
func TestFUSE(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and /dev/fuse")
	}
	for name, transport := range map[string]fusemount.Transport{"device": fusemount.TransportDevice, "io_uring": fusemount.TransportRing} {
		t.Run(name, func(t *testing.T) {
			dir, _ := mount(t, transport)
			inChild(t, filepath.Join(dir, "bucket"), notOfOGW)
		})
	}
}

// TestFUSEReadOnly mounts one namespace twice.
func TestFUSEReadOnly(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and /dev/fuse")
	}
	dir, fs := mount(t, fusemount.TransportDevice)
	view := mountFS(t, fs, fusemount.Options{ReadOnly: true})
	RunReadOnly(t, Config{Dir: filepath.Join(dir, "bucket"), Without: notOfOGW}, filepath.Join(view, "bucket"))
}

// TestLocalReadOnly does the same with a read-only bind mount.
func TestLocalReadOnly(t *testing.T) {
	dir, view := diskDir(t, "/var/tmp"), diskDir(t, "/var/tmp")
	if err := unix.Mount(dir, view, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot bind-mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(view, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	if err := unix.Mount("", view, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	RunReadOnly(t, Config{Dir: dir, Without: notOfExt4}, view)
}

// mount mounts a fresh namespace with a bucket.
func mount(t *testing.T, transport fusemount.Transport) (string, *vfs.FS) {
	t.Helper()
	ctx, log := context.Background(), slog.New(slog.NewTextHandler(logTo{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	base := diskDir(t, "/var/tmp")
	c, err := local.Open(ctx, local.Options{Dir: filepath.Join(base, "store"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	fs, err := vfs.Open(ctx, c, vfs.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(ctx); err != nil {
			t.Errorf("closing the namespace: %v", err)
		}
	})
	if _, err := fs.Mkdir(ctx, vfs.Root, vfs.RootIno, "bucket", 0o755); err != nil {
		t.Fatal(err)
	}
	return mountFS(t, fs, fusemount.Options{Logger: log, Transport: transport}), fs
}

func mountFS(t *testing.T, fs *vfs.FS, opt fusemount.Options) string {
	t.Helper()
	dir := diskDir(t, "/var/tmp")
	opt.AllowOther = true
	s, err := fusemount.Mount(fs, dir, opt)
	if errors.Is(err, fusemount.ErrNoRing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for range waitTries { // the kernel may still be releasing files
			if err = s.Unmount(); err == nil {
				return
			}
			time.Sleep(waitPause)
		}
		t.Errorf("unmount: %v", err)
		s.Detach()
	})
	return dir
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// childTimeout is far above what the suite takes.
const childTimeout = 10 * time.Minute

func inChild(t *testing.T, dir string, without []Feature) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDirectory$", "-test.v", "-test.timeout="+childTimeout.String())
	var list []string
	for _, f := range without {
		list = append(list, string(f))
	}
	cmd.Env = append(os.Environ(), dirEnv+"="+dir, otherEnv+"=/dev/shm", withoutEnv+"="+strings.Join(list, ","))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	for line := range bytes.Lines(out) {
		if s := string(line); err != nil && !passed(s) || strings.Contains(s, " checks, ") {
			t.Log(strings.TrimRight(s, "\n"))
		}
	}
	if err != nil {
		t.Errorf("the suite: %v", err)
	}
}

// passed matches lines of -test.v that say nothing of a failure.
func passed(line string) bool {
	line = strings.TrimSpace(line)
	for _, s := range []string{"=== ", "--- PASS", "--- SKIP"} {
		if strings.HasPrefix(line, s) {
			return true
		}
	}
	return false
}
