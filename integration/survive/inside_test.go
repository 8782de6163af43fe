package survive

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
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

// A program that begins another one, and so closes a file that it wrote, waits for the next
// server of its mount. No server waits for that program, nor that of another mount.
func TestProgramBegins(t *testing.T) {
	s, other := watch(t, testLimit), watch(t, testLimit)
	other.bucket(other.mount("survive"))
	name := filepath.Join(s.bucket(s.mount("survive")), "written")
	program := exec.Command("perl", "-e", `$| = 1; open(F, ">", $ARGV[0]) or die; syswrite(F, "x"); print "open\n"; <STDIN>; print "begins\n"; exec "true"`, name)
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	says := bufio.NewReader(out)
	line := func() {
		if _, err := says.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	line()
	s.Kill()
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	line()
	time.Sleep(beginsFor)
	for _, x := range []*watched{other, s} {
		if x == other {
			x.Kill()
		}
		begin := time.Now()
		x.Start()
		if took := time.Since(begin); took > restartLimit {
			t.Errorf("the next server serves after %v", took)
		}
		if x == other { // it cannot be stopped while a thread waits for the program
			time.Sleep(beginsFor)
			if err := errors.Join(x.Process.Signal(unix.SIGSTOP), x.Process.Signal(unix.SIGCONT)); err != nil {
				t.Error(err)
			}
		}
	}
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(name); string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

// beginsFor is how long a program takes to begin another one, and to wait there.
const beginsFor = 300 * time.Millisecond
