// Package testenv is what the suites that drive the real binary share.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Build is a go build of ogw as the tests use it: with Ceph's library, if they are built so.
func Build(args ...string) *exec.Cmd {
	build := exec.Command("go", append([]string{"build", "-tags", buildTags}, args...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+buildCgo)
	return build
}

// TestBinary builds the tests of a package as a program of its own, and returns its path.
func TestBinary(t testing.TB, pkg string) string {
	t.Helper()
	binary := filepath.Join(TempDir(t), "tests")
	build := exec.Command("go", "test", "-c", "-o", binary, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests of %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// Main is the body of a TestMain: it builds ogw once, unless OGW_BIN names
// one, stores its path in binary, and runs the tests.
func Main(m *testing.M, binary *string) int {
	*binary = os.Getenv("OGW_BIN")
	if *binary == "" {
		dir, err := os.MkdirTemp("", "ogw-bin-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		*binary = filepath.Join(dir, "ogw")
		build := Build("-o", *binary, "ogw/cmd/ogw")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building ogw: %v\n%s", err, out)
			return 1
		}
	}
	defer endAll()
	return m.Run()
}

// atEnd ends what several tests share.
var atEnd struct {
	mu  sync.Mutex
	end []func()
}

func endAll() {
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	for _, end := range atEnd.end {
		end()
	}
	atEnd.end = nil
}

// GoSources is the folder of the toolchain's own sources: real input with
// over 10,000 files.
func GoSources(t testing.TB) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT: %v", err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(root)), "src"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Count is how often a test does what it does: usual, unless an environment
// variable says otherwise.
func Count(t testing.TB, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number from 1", variable, text)
	}
	return n
}

// TempDir is t.TempDir on the disk, wherever TMPDIR is, and without its
// failure when a mount is still there.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "ogw-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
