package fusemount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/vfs"
)

// What fusermount3 refuses, it says itself; the error has its words.
func TestHelperRefuses(t *testing.T) {
	path, err := helper()
	if err != nil {
		t.Skip(err)
	}
	err = runHelper(exec.Command(path, "-u", filepath.Join(t.TempDir(), "none")))
	if !errors.Is(err, errHelper) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "none") {
		t.Errorf("%q", err)
	}
	if err := explain("/mnt", err); !errors.Is(err, ErrNoRights) {
		t.Errorf("%q is no lack of rights", err)
	}
}

// userEnv marks the child process of TestMountAsUser that is the user's.
const userEnv = "OGW_TEST_USER_DIR"

// Who is not root mounts with fusermount3.
func TestMountAsUser(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		if dir := os.Getenv(userEnv); dir != "" {
			mountAsUser(t, dir, over)
			return
		}
		needFUSE(t)
		if _, err := helper(); err != nil {
			t.Skip(err)
		}
		if info, err := os.Stat("/dev/fuse"); err != nil || info.Mode()&0o006 != 0o006 {
			t.Skipf("only root may use /dev/fuse on this machine: %v", info.Mode())
		}
		const user = 65534
		dir, err := os.MkdirTemp("/var/tmp", "ogw-user-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chown(dir, user, user); err != nil {
			t.Skipf("not root: %v", err)
		}
		program := filepath.Join(dir, "test") // the user may not read where go built it
		b, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(program, b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "-test.run="+alone(t), "-test.v")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), userEnv+"="+dir, "TMPDIR="+dir, "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func mountAsUser(t *testing.T, base string, over Transport) {
	c := newCluster(t)
	fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t), RootUID: uint32(os.Getuid()), RootGID: uint32(os.Getgid())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(fs.Close(bg), c.Close()); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"plain", "comma,and space"} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s, err := Mount(fs, dir, Options{Transport: over, FSName: "a,b"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir+"/bucket", 0o755); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(dir+"/bucket/f", []byte("text"), 0o644); err != nil {
			t.Error(err)
		}
		open, err := os.Open(dir + "/bucket/f")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unmount(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("unmount of a mount in use: %v", err)
		}
		open.Close()
		if err := s.Unmount(); err != nil {
			t.Error(err)
		}
		if mountedType(dir) != "" {
			t.Error("it is still mounted")
		}
	}
	if _, err := Mount(fs, base, Options{NonEmpty: true, AllowOther: true}); !errors.Is(err, ErrNoRights) || !strings.Contains(err.Error(), "allow_other") {
		t.Errorf("allow_other for a user: %v", err)
	}
}
