package fusemount

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// TestOwnAttributes: a mount answers ogw. names as every other door of files does,
// also for a file that has no name any more.
func TestOwnAttributes(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs, dir := mountBucket(t, over)
		path := filepath.Join(dir, "f")
		write(t, path, "some bytes")
		file, err := os.Open(path)
		must(t, err)
		defer file.Close()
		fd := int(file.Fd())
		a, err := fs.Resolve(bg, vfs.Root, "bucket/f", true)
		must(t, err)
		same := func(name string) {
			t.Helper()
			want, wantErr := fs.GetXattr(bg, vfs.Root, a.Ino, name)
			got := make([]byte, vfs.MaxXattrValueBytes)
			n, err := unix.Fgetxattr(fd, name, got)
			if (err == nil) != (wantErr == nil) || err == nil && string(got[:n]) != string(want) {
				t.Errorf("%s is %q, %v: want %q, %v", name, got[:max(n, 0)], err, want, wantErr)
			}
			if err == nil && n == 0 && name != "ogw.whereis" {
				t.Errorf("%s is empty", name)
			}
		}
		for _, name := range []string{"ogw.key", "ogw.etag", "ogw.whereis", "ogw.none"} {
			same(name)
			if err := unix.Fsetxattr(fd, name, []byte("x"), 0); err != unix.EPERM {
				t.Errorf("setting %s: %v", name, err)
			}
			if err := unix.Fremovexattr(fd, name); err != unix.EPERM {
				t.Errorf("removing %s: %v", name, err)
			}
		}
		must(t, os.Remove(path))
		for _, name := range []string{"ogw.key", "ogw.etag", "ogw.whereis"} {
			same(name)
		}
	})
}

// TestTrustedNames: who has no CAP_SYS_ADMIN is not told which attributes of trusted.* there
// are, as on a local file system.
func TestTrustedNames(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		_, dir := mountBucket(t, over)
		path := filepath.Join(dir, "f")
		write(t, path, "")
		for _, name := range []string{"trusted.t", "user.u"} {
			must(t, unix.Setxattr(path, name, []byte("x"), 0))
		}
		list := func(who, want string) {
			t.Helper()
			b := make([]byte, 1000)
			n, err := unix.Listxattr(path, b)
			if got := string(b[:max(n, 0)]); err != nil || got != want {
				t.Errorf("%s sees %q, %v; want %q", who, got, err, want)
			}
		}
		list("the superuser", "trusted.t\x00user.u\x00")
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		become := func(uid uintptr) { // this thread alone
			const keep = ^uintptr(0)
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uid, keep); errno != 0 {
				t.Fatal(errno)
			}
		}
		become(1001)
		defer become(0)
		list("a user", "user.u\x00")
		if _, err := unix.Getxattr(path, "trusted.t", nil); err != unix.ENODATA {
			t.Errorf("a user reads it: %v", err)
		}
	})
}

// ls(1) asks for a label once where there are none; where there are, each file answers for
// itself.
func TestLabels(t *testing.T) {
	var asked atomic.Int64
	top, _ := mountFS(t, openFS(t), Options{Observe: func(op string, _ time.Duration, _ syscall.Errno) {
		if op == "getxattr" {
			asked.Add(1)
		}
	}})
	dir := filepath.Join(top, "bucket")
	must(t, os.Mkdir(dir, 0o755))
	for i := range 50 {
		write(t, filepath.Join(dir, strconv.Itoa(i)), "")
	}
	list := func() int64 {
		t.Helper()
		before := asked.Load()
		if out, err := exec.Command("ls", "-l", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return asked.Load() - before
	}
	list() // asks for ACLs, too, which the kernel keeps
	if n := list(); n > 2 {
		t.Errorf("ls -l asks %d times", n)
	}
	get := func(name string) (string, error) {
		b := make([]byte, 100)
		n, err := unix.Lgetxattr(filepath.Join(dir, name), label, b)
		return string(b[:max(n, 0)]), err
	}
	if _, err := get("1"); err != unix.ENOTSUP {
		t.Errorf("without labels: %v", err)
	}
	const text = "system_u:object_r:tmp_t:s0"
	must(t, unix.Lsetxattr(filepath.Join(dir, "1"), label, []byte(text), 0))
	if s, err := get("1"); s != text || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := get("2"); err != unix.ENODATA {
		t.Errorf("one without a label among others: %v", err)
	}
}
