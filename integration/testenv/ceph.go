//go:build ceph

package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	// CephOSDs is how many OSDs there are, each with one copy of what a pool holds.
	CephOSDs = 3
	// cephLimit is far above what a daemon takes to start or to be noticed as gone.
	cephLimit = 90 * time.Second
	cephPause = 200 * time.Millisecond
)

// Ceph is a Ceph cluster on loopback: a monitor, a manager and CephOSDs OSDs.
type Ceph struct {
	t   testing.TB
	dir string
}

// theCeph is that of this process: its start takes longer than most tests.
var theCeph struct {
	once sync.Once
	dir  string
	err  error
}

var cephPools atomic.Int64

// StartCeph returns the cluster that all tests of the process share; what one breaks it
// mends. The test is skipped where Ceph is not installed.
func StartCeph(t testing.TB) *Ceph {
	t.Helper()
	if _, err := exec.LookPath("ceph-osd"); err != nil {
		t.Skip("no Ceph: make test-cluster")
	}
	theCeph.once.Do(func() { theCeph.dir, theCeph.err = startCeph(t) })
	if theCeph.err != nil {
		t.Fatal(theCeph.err)
	}
	return &Ceph{t, theCeph.dir}
}

func startCeph(t testing.TB) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	scripts := filepath.Join(filepath.Dir(file), "..", "setup", "ceph")
	parent, err := os.MkdirTemp("/var/tmp", "ogw-ceph-*")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, "ceph")
	atEnd.mu.Lock()
	atEnd.end = append(atEnd.end, func() {
		if out, err := exec.Command(filepath.Join(scripts, "down.sh"), dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "down.sh: %v\n%s", err, out)
		}
		os.RemoveAll(parent)
	})
	atEnd.mu.Unlock()
	begin := time.Now()
	cmd := exec.Command(filepath.Join(scripts, "up.sh"), dir)
	cmd.Env = append(os.Environ(), "MON_PORT="+strconv.Itoa(FreePort(t)), "OSDS="+strconv.Itoa(CephOSDs))
	// The daemons keep what they are given.
	log, err := os.Create(filepath.Join(parent, "up.log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("up.sh: %w\n%s", err, Tail(log.Name()))
	}
	t.Logf("Ceph is there after %v", time.Since(begin).Round(time.Second))
	return dir, nil
}

// With is the cluster for another test, or a part of one.
func (c *Ceph) With(t testing.TB) *Ceph { return &Ceph{t, c.dir} }

// Conf is the path of ceph.conf.
func (c *Ceph) Conf() string { return filepath.Join(c.dir, "ceph.conf") }

// Run runs ceph, and returns what it prints.
func (c *Ceph) Run(args ...string) string {
	c.t.Helper()
	return c.command("ceph", append([]string{"--connect-timeout", "30"}, args...)...)
}

// Objects are the names of the objects in a namespace of a pool.
func (c *Ceph) Objects(pool, namespace string) []string {
	c.t.Helper()
	return strings.Fields(c.command("rados", "-p", pool, "-N", namespace, "ls"))
}

func (c *Ceph) command(name string, args ...string) string {
	c.t.Helper()
	out, err := exec.Command(name, append([]string{"-c", c.Conf()}, args...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, failed.Stderr)
		}
		c.t.Fatal(err)
	}
	return string(out)
}

// Pool makes a pool, and deletes it with the test.
func (c *Ceph) Pool(args ...string) string {
	c.t.Helper()
	name := fmt.Sprintf("pool%d", cephPools.Add(1))
	c.Run(append([]string{"osd", "pool", "create", name, "16", "16"}, args...)...)
	c.t.Cleanup(func() { c.DeletePool(name) })
	return name
}

// DeletePool deletes a pool, if it is there.
func (c *Ceph) DeletePool(name string) {
	c.t.Helper()
	c.Run("osd", "pool", "delete", name, name, "--yes-i-really-really-mean-it")
}

// pid is the process of a daemon: osd.0, mon.a.
func (c *Ceph) pid(daemon string) int {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "run", daemon+".pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// Signal sends a signal to a daemon: osd.0, mon.a.
func (c *Ceph) Signal(daemon string, s syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(c.pid(daemon), s); err != nil {
		c.t.Fatal(err)
	}
}

// Kill ends daemons as a crash does.
func (c *Ceph) Kill(daemons ...string) {
	c.t.Helper()
	for _, d := range daemons {
		pid := c.pid(d)
		c.Signal(d, syscall.SIGKILL)
		for end := time.Now().Add(cephLimit); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(cephPause) {
			if time.Now().After(end) {
				c.t.Fatalf("%s does not end", d)
			}
		}
	}
}

// zombie reports whether a process has ended, and nobody asked how.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// Start starts daemons that were killed.
func (c *Ceph) Start(daemons ...string) {
	c.t.Helper()
	for _, d := range daemons {
		kind, id, _ := strings.Cut(d, ".")
		cmd := exec.Command("ceph-"+kind, "-c", c.Conf(), "-i", id)
		log, err := os.OpenFile(filepath.Join(c.dir, "log", "start.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			c.t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log // the daemon keeps them
		err = cmd.Run()
		log.Close()
		if err != nil {
			c.t.Fatalf("%s: %v\n%s", d, err, Tail(log.Name()))
		}
	}
}

// AwaitUp waits until so many OSDs are up.
func (c *Ceph) AwaitUp(n int) {
	c.t.Helper()
	for end := time.Now().Add(cephLimit); ; time.Sleep(cephPause) {
		var stat struct {
			Up int `json:"num_up_osds"`
		}
		err := json.Unmarshal([]byte(c.Run("osd", "stat", "-f", "json")), &stat)
		if err == nil && stat.Up == n {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%d OSDs are up, not %d: %v", stat.Up, n, err)
		}
	}
}
