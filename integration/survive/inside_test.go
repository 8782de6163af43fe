package survive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is mounted on folders of a surviving mount, parts of itself included, does
// not keep the next server from serving it.
func TestMountsInside(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive")
	dir := s.bucket(top)
	inside := func(name string) string {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) }) // before the mount itself
		return at
	}
	part, bound, other := inside("part"), inside("bound"), inside("other")
	if err := unix.Mount(part, bound, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", other, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	nested := inside("nested")
	s.OGW("mount", "-o", "survive,attr_timeout=2", nested)
	for i := range 4 {
		if i%2 == 0 {
			s.Kill()
		} else {
			s.Stop()
		}
		begin := time.Now()
		s.Start()
		if took := time.Since(begin); took > restartLimit {
			t.Errorf("the next server serves after %v", took)
		}
		name := string(rune('a' + i))
		if err := os.WriteFile(filepath.Join(bound, name), nil, 0o644); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(nested, "bucket/part", name)); err != nil {
			t.Error(err)
		}
	}
	out := s.OGW("status")
	if !strings.Contains(out, nested) || strings.Contains(out, bound) {
		t.Errorf("status does not list what was mounted, and nothing else:\n%s", out)
	}
	s.OGW("umount", nested)
}
