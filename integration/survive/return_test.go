package survive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ogw/fusemount"
	"ogw/integration/testenv"
)

// stop ends the server by the command, and returns what that said.
func (s *watched) stop() string {
	s.T.Helper()
	out := s.OGW("stop")
	s.Stop()
	return out
}

// mounted checks which folders have a mount.
func (s *watched) mounted(when string, want bool, dirs ...string) {
	s.T.Helper()
	for _, dir := range dirs {
		if fusemount.IsMount(dir) != want {
			s.T.Errorf("%s: a mount at %s: %v\n%s", when, dir, !want, s.Log())
		}
	}
}

// What a server had mounted comes back with the next one, after a stop and after a
// crash, also over what programs wrote into the bare folder; unless somebody
// unmounted it, with a server or without.
func TestMountsReturn(t *testing.T) {
	s := watch(t, testLimit)
	held, plain := s.mount("survive"), s.mount("ro")
	s.bucket(held)
	part, kernel, gone := s.mount("subtree=bucket"), s.mount("rw"), s.mount("rw")
	s.OGW("umount", gone)
	if info, err := os.Stat(filepath.Join(s.Data, "mounts.json")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	out := s.stop()
	for _, line := range []string{
		held + " stays: its programs wait for the next server; to end it: ogw umount --dir " + s.Data + " " + held + "\n",
		plain + " is unmounted until the next server mounts it again; to prevent that: ogw umount --dir " + s.Data + " " + plain + "\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("ogw stop does not say %q:\n%s", line, out)
		}
	}
	if strings.Contains(out, gone) {
		t.Errorf("ogw stop tells of a mount that was ended:\n%s", out)
	}
	s.mounted("stopped", true, held)
	s.mounted("stopped", false, plain, part, kernel, gone)
	if err := os.WriteFile(filepath.Join(plain, "below"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.OGW("umount", part)
	if out, err := s.TryOGW("umount", gone); err == nil || !strings.Contains(out, "no ogw mount") {
		t.Errorf("umount of nothing: %v, %s", err, out)
	}

	s.Start()
	s.mounted("started", true, held, plain, kernel)
	s.mounted("started", false, part, gone)
	if _, err := os.Stat(filepath.Join(plain, "bucket")); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(plain, "other"), 0o755); err == nil {
		t.Error("the mount came back without its options")
	}
	if !strings.Contains(s.Log(), "made again over entries") {
		t.Errorf("the log does not tell of hidden entries:\n%s", s.Log())
	}
	s.unmount(kernel)
	testenv.Eventually(t, "the server to see it", func() error {
		if out := s.OGW("status"); strings.Contains(out, kernel) {
			return os.ErrExist
		}
		return nil
	})

	s.Kill()
	s.OGW("umount", held)
	s.Start()
	s.mounted("after a crash", true, plain)
	s.mounted("after a crash", false, held, kernel, part)
	s.OGW("umount", plain)
	s.Stop()
	s.Start()
	s.mounted("at the end", false, held, plain, kernel, part, gone)
	if _, err := os.Stat(filepath.Join(s.Data, "mounts.json")); !os.IsNotExist(err) {
		t.Errorf("the record is left: %v", err)
	}
}

// A mount that cannot come back is reported, and is made when that is possible.
func TestMountPointIsGone(t *testing.T) {
	s := watch(t, testLimit)
	lost, ended := s.mount("rw"), s.mount("rw")
	s.Stop()
	for _, dir := range []string{lost, ended} {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	for _, dir := range []string{lost, ended} {
		if out := s.OGW("status"); !strings.Contains(out, dir+", NOT SERVED: ") || !strings.Contains(out, dir+" does not exist") {
			t.Errorf("status:\n%s", out)
		}
	}
	s.OGW("umount", ended)
	if out := s.OGW("status"); strings.Contains(out, ended) {
		t.Errorf("status after umount:\n%s", out)
	}
	for _, dir := range []string{lost, ended} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop()
	s.Start()
	s.mounted("with its folder", true, lost)
	s.mounted("ended", false, ended)
}

// An umount that has succeeded counts, also beside a server that is about to start:
// neither that one nor the next makes the mount again.
func TestUmountBesideStart(t *testing.T) {
	const tries = 12
	s := watch(t, testLimit)
	s.Stop()
	took := s.Start()
	for i := range tries {
		dir := s.mount([]string{"rw", "survive"}[i%2])
		s.Stop()
		ended := make(chan error, 1)
		go func() {
			time.Sleep(took * time.Duration(i) / tries) // at any moment of the start
			out, err := s.TryOGW("umount", dir)
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
			ended <- err
		}()
		s.Start()
		if err := <-ended; err != nil {
			t.Errorf("try %d: %v", i, err)
		}
		s.mounted(fmt.Sprintf("try %d", i), false, dir)
		if i%4 < 2 {
			s.Stop()
		} else {
			s.Kill()
		}
		s.Start()
		s.mounted(fmt.Sprintf("try %d, the server after", i), false, dir)
	}
}

// Mounts inside of others come back, at their places, and a script that mounts after
// each start goes on.
func TestMountsReturnInside(t *testing.T) {
	s := watch(t, testLimit)
	outer := s.mount("rw")
	s.bucket(outer)
	inner := filepath.Join(outer, "bucket", "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	inside := func(options string) (string, error) { return s.TryOGW("mount", "-o", options, inner) }
	if out, err := inside("subtree=bucket,entry_timeout=1"); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() { s.unmount(inner) })
	s.stop()
	if strings.Contains(s.Log(), "programs still use a mount") {
		t.Errorf("no program uses one:\n%s", s.Log())
	}
	s.mounted("stopped", false, outer)
	s.Start()
	s.mounted("started", true, outer, inner)
	if _, err := os.Stat(filepath.Join(inner, "inner")); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		options string
		ok      bool
	}{
		{"subtree=bucket,entry_timeout=2", false},
		{"subtree=bucket,entry_timeout=1", true}, // a script that does not know
		{"subtree=bucket,entry_timeout=1", false},
	} {
		if out, err := inside(c.options); (err == nil) != c.ok || !c.ok && !strings.Contains(out, "mounted already") {
			t.Errorf("%s: %v, %s", c.options, err, out)
		}
	}
}
