package nfsvm

import (
	"net/http"
	"ogw/integration/testenv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// loadTimeout bounds one guest; the processor is emulated.
const loadTimeout = 30 * time.Minute

// disturbance takes the server away again and again between the guest's
// words "disturb" and "calm": stopped the one time, killed the other.
type disturbance struct {
	s     *server
	every time.Duration // of peace

	mu    sync.Mutex
	stop  chan struct{} // nil: the server is left alone
	wait  sync.WaitGroup
	kills int
}

// calm leaves the server alone; a guest that did not end in time does not ask for
// that.
func (d *disturbance) calm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		close(d.stop)
		d.stop = nil
	}
	d.wait.Wait()
}

func (d *disturbance) host(word string) {
	switch word {
	case "disturb":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stop = make(chan struct{})
		d.wait.Add(1)
		go d.run(d.stop)
	case "calm":
		d.calm()
		d.s.t.Logf("the server went away %d times so far", d.kills)
	case "kill":
		d.wait.Add(1)
		go func() {
			defer d.wait.Done()
			d.s.again(syscall.SIGKILL, 500*time.Millisecond)
		}()
	default:
		d.s.t.Errorf("the guest asks for %q", word)
	}
}

func (d *disturbance) run(stop <-chan struct{}) {
	defer d.wait.Done()
	for ; ; d.kills++ {
		select {
		case <-stop:
			return
		case <-time.After(d.every):
			how := syscall.SIGKILL
			if d.kills%2 == 1 {
				how = syscall.SIGTERM
			}
			d.s.again(how, 200*time.Millisecond)
		}
	}
}

// load runs a guest script with a server that goes away every so often.
func (s *server) load(script string, every time.Duration, g Guest) {
	s.t.Helper()
	d := &disturbance{s: s, every: every}
	g.Host = d.host
	g.Timeout = loadTimeout
	defer d.calm()
	s.boot(script, g)
}

// TestKernelClientGoTree reads and compares the toolchain's sources, which
// came in over REST, then copies them in, compares, and removes them.
func TestKernelClientGoTree(t *testing.T) {
	s := start(t)
	tree := testenv.GoSources(t)
	if sub := os.Getenv("OGW_TEST_VM_TREE"); sub != "" {
		tree = filepath.Join(tree, sub)
	}
	s.store(tree, "stored")
	s.load("gotree", 15*time.Second, Guest{Files: map[string]string{"tree": tree}, MemoryMiB: 2048})
}

// store puts a tree into the server over REST.
func (s *server) store(tree, under string) {
	s.t.Helper()
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		url := s.rest + "/" + under + strings.TrimPrefix(path, tree)
		q, err := http.NewRequest("PUT", url, strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return err
		}
		r.Body.Close()
		if r.StatusCode/100 != 2 {
			s.t.Errorf("PUT %s: %s", url, r.Status)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestKernelClientGit clones a repository, commits, and checks it.
func TestKernelClientGit(t *testing.T) {
	s := start(t)
	files := programs(t, "/usr/bin/git")
	files["repo"] = repository(t)
	for _, name := range []string{"git", "git-upload-pack"} {
		files["usr/lib/git-core/"+name] = "/usr/lib/git-core/" + name
	}
	s.load("git", 12*time.Second, Guest{Files: files, MemoryMiB: 1024, Env: []string{"ROUNDS=" + number(t, "OGW_TEST_VM_CLONES", 3)}})
}

// TestKernelClientSQLite has two programs work on one database.
func TestKernelClientSQLite(t *testing.T) {
	s := start(t)
	s.load("sqlite", 6*time.Second, Guest{Files: programs(t, "/usr/bin/sqlite3"),
		Env: []string{"ROUNDS=" + number(t, "OGW_TEST_VM_TRANSACTIONS", 100)}})
}

// TestKernelClientBig writes and reads a file that fits no memory.
func TestKernelClientBig(t *testing.T) {
	s := start(t)
	s.load("big", 25*time.Second, Guest{Files: guestprog(t), MemoryMiB: 1024,
		Env: []string{"BYTES=" + number(t, "OGW_TEST_VM_BYTES", 4<<30)}})
}

// TestKernelClientMany lists a directory while half of it is removed.
func TestKernelClientMany(t *testing.T) {
	s := start(t)
	s.load("many", 25*time.Second, Guest{Files: guestprog(t), MemoryMiB: 1024,
		Env: []string{"FILES=" + number(t, "OGW_TEST_VM_FILES", 100_000)}})
}

// TestKernelClientShare has two mounts change the same files.
func TestKernelClientShare(t *testing.T) {
	s := start(t)
	s.load("share", 8*time.Second, Guest{Files: guestprog(t), Env: []string{"ROUNDS=" + number(t, "OGW_TEST_VM_CHANGES", 400)}})
}

// TestKernelClientCommit kills the server between WRITE and COMMIT.
func TestKernelClientCommit(t *testing.T) {
	s := start(t)
	s.load("commit", time.Hour, Guest{Files: guestprog(t), MemoryMiB: 1024,
		Env: []string{"ROUNDS=3", "BYTES=" + number(t, "OGW_TEST_VM_UNCOMMITTED", 128<<20)}})
}
