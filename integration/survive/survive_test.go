package survive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
)

var binary string

// programVariable makes the test binary one of the programs.
const programVariable = "OGW_TEST_SURVIVE_PROGRAM"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(programVariable), "\n"); len(args) == 3 {
		os.Exit(program(args))
	}
	os.Exit(testenv.Main(m, &binary))
}

const (
	// betweenRounds is how long programs run with one server.
	betweenRounds = 700 * time.Millisecond
	// programLimit is how long a program may take to end.
	programLimit = time.Minute
)

// running is one program.
type running struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone
	out   string        // all that it printed, by then
	err   error         // how it ended
}

func start(t *testing.T, name, dir, stop string) *running {
	t.Helper()
	r := &running{name: name, cmd: exec.Command("/proc/self/exe"), ended: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), programVariable+"="+strings.Join([]string{name, dir, stop}, "\n"))
	pipe, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	first, _ := lines.ReadString('\n')
	go func() {
		defer close(r.ended)
		rest, _ := io.ReadAll(lines)
		r.out, r.err = string(rest), r.cmd.Wait()
	}()
	t.Cleanup(func() { // if end did not come to it
		_ = r.cmd.Process.Kill()
		r.await(t)
	})
	if first != "ready\n" {
		t.Fatalf("%s: %s", name, first)
	}
	return r
}

// await reports whether the program is gone in time; until then, its mount is busy.
func (r *running) await(t *testing.T) bool {
	t.Helper()
	select {
	case <-r.ended:
		return true
	case <-time.After(programLimit):
		t.Errorf("%s hangs", r.name)
		return false
	}
}

// end waits for the program, and returns what it said at last.
func (r *running) end(t *testing.T) {
	t.Helper()
	if !r.await(t) {
		return
	}
	if r.err != nil {
		t.Errorf("%s: %v\n%s", r.name, r.err, r.out)
	}
	t.Log(strings.TrimSpace(r.out))
}

// rounds is how often a server is killed, and is stopped. all means that programs
// of others run as well.
func rounds(t *testing.T) (n int, all bool) {
	t.Helper()
	return testenv.Count(t, "OGW_SURVIVE_ROUNDS", defaultRounds), os.Getenv("OGW_SURVIVE_ROUNDS") != ""
}

const (
	// testLimit bounds a test without rounds, roundLimit a round.
	testLimit  = 2 * time.Minute
	roundLimit = 30 * time.Second
	// defaultRounds is for every run of the tests.
	defaultRounds = 2
)

// bucket makes a folder for programs.
func (s *watched) bucket(top string) string {
	s.T.Helper()
	dir := filepath.Join(top, "bucket")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.T.Fatal(err)
	}
	return dir
}

func need(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and /dev/fuse")
	}
}

// Programs see no error, and lose nothing, while the server is killed, and is
// stopped and started.
func TestPrograms(t *testing.T) {
	count, all := rounds(t)
	s := watch(t, testLimit+time.Duration(count)*roundLimit)
	top := s.mount("survive,allow_other")
	dir := s.bucket(top)
	stop := filepath.Join(t.TempDir(), "stop")
	var list []*running
	run := func(names []string) {
		for _, name := range names {
			list = append(list, start(t, name, dir, stop))
		}
		for _, name := range names {
			s.await(name+" to begin", stop+begun+name)
		}
	}
	if all {
		run(installed(t)) // before the others: they have much to prepare
	}
	run(together)
	var pauses []time.Duration
	pause := betweenRounds
	if all {
		pause *= 2 // other programs take longer to do something
	}
	for i := range 2 * count {
		time.Sleep(pause)
		if i%2 == 0 {
			s.Kill()
		} else {
			s.Stop()
		}
		begin := time.Now()
		s.Start()
		if _, err := os.ReadDir(dir); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		pauses = append(pauses, time.Since(begin).Round(time.Millisecond))
	}
	time.Sleep(betweenRounds)
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		r.end(t)
	}
	slices.Sort(pauses)
	t.Logf("from the start of a server until the mount answers: median %v, longest %v", pauses[len(pauses)/2], pauses[len(pauses)-1])
	if t.Failed() {
		t.Log(s.Log())
	}
	if out, err := s.TryOGW("umount", top); err != nil {
		t.Errorf("umount: %v\n%s", err, out)
	}
	s.Stop()
	if out, err := s.TryOGW("check", "--data"); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
	s.holderEnds()
}

// A mount point is not bare between two servers, the mounts of a directory and
// of the whole survive together, and umount ends a mount without a server too.
func TestMountsStay(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive")
	if err := os.MkdirAll(filepath.Join(top, "bucket/dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	part := s.mount("survive,subtree=bucket")
	s.Stop()
	if !strings.Contains(s.Log(), "a mount stays") {
		t.Errorf("the log says nothing of mounts that stay:\n%s", s.Log())
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{top, part} {
		if !strings.Contains(string(mounts), " "+dir+" ") {
			t.Errorf("%s is bare", dir)
		}
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(filepath.Join(part, "dir/f"), []byte("waited"), 0o644) }()
	select {
	case err := <-written:
		t.Errorf("written without a server: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	s.Start()
	if err := <-written; err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(top, "bucket/dir/f")); err != nil || string(b) != "waited" {
		t.Errorf("%q, %v", b, err)
	}
	if out := s.OGW("status"); !strings.Contains(out, top) || !strings.Contains(out, part) {
		t.Errorf("status lists not both mounts:\n%s", out)
	}
	s.OGW("umount", part)
	s.Stop()
	s.OGW("umount", top)
	s.holderEnds()
	s.Start()
}

// What the kernel keeps of a directory from the time of one server is as new as the next
// one says: changes through another superblock are listed at once.
func TestListingsStay(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive")
	dir := filepath.Join(top, "bucket/dir")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	part := s.mount("survive,subtree=bucket,entry_timeout=3600")
	var one, other syscall.Stat_t
	if err := errors.Join(syscall.Stat(dir, &one), syscall.Stat(filepath.Join(part, "dir"), &other)); err != nil || one.Dev == other.Dev {
		t.Fatalf("both are of one superblock: %v", err)
	}
	lists := func(when, name string, want bool) {
		t.Helper()
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if there := slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == name }); there != want {
			t.Errorf("%s, %s is listed: %v", when, name, there)
		}
	}
	file := filepath.Join(part, "dir/f")
	for when, end := range map[string]func(){"after kill -9": s.Kill, "after a restart": s.Stop} {
		for _, there := range []bool{true, false} {
			lists(when, "f", !there) // kept
			end()
			s.Start()
			lists(when, "f", !there)
			change := func() error { return os.WriteFile(file, nil, 0o644) }
			if !there {
				change = func() error { return os.Remove(file) }
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			lists(when, "f", there)
		}
	}
}

// A mount that is left without a server for longer than was said ends.
func TestAbandoned(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive,abandon=300ms")
	s.Kill()
	testenv.Eventually(t, "the mount to end", func() error {
		if _, err := os.ReadDir(top); err == nil {
			return fmt.Errorf("it answers")
		}
		return nil
	})
	s.Start()
	if out, err := s.TryOGW("umount", top); err != nil {
		t.Errorf("umount: %v\n%s", err, out)
	}
}

// Without a server on the folder, the mount ends with its command.
func TestNeedsServer(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(binary, "mount", "--dir", filepath.Join(dir, "data"), "-o", "survive", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ogw serve") {
		t.Errorf("%v: %s", err, out)
	}
}

// Copies whose bytes are nowhere but in the server's buffers are there after it
// was killed, however many there are.
func TestCopies(t *testing.T) {
	s := watch(t, testLimit)
	dir := s.bucket(s.mount("survive"))
	stop := filepath.Join(t.TempDir(), "stop")
	r := start(t, "burst", dir, stop)
	s.made(stop)
	s.Kill()
	s.Start()
	s.finish(stop, r)
}
