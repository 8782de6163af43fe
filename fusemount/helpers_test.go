package fusemount

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/fusemount/internal/ring"
	"ogw/vfs"
)

// newCluster is the embedded engine in a fresh folder.
func newCluster(t testing.TB) *cluster.Cluster {
	t.Helper()
	c, err := local.Open(bg, local.Options{Dir: t.TempDir(), Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func itoa(n int) string { return strconv.Itoa(n) }

// vfsErrors returns the sentinels that the table holds; TestErrnoTable
// compares them with the source.
func vfsErrors() (list []error) {
	for _, e := range errnos {
		list = append(list, e.err)
	}
	return list
}

// The table is complete: every sentinel that package vfs declares is in it.
func TestErrnoTable(t *testing.T) {
	names := map[string]bool{}
	for file, pkg := range map[string]string{"../vfs/errors.go": "", "errno.go": "vfs"} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, id := range n.Names {
					if pkg == "" && strings.HasPrefix(id.Name, "Err") {
						names[id.Name] = names[id.Name] || false
					}
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && pkg != "" && x.Name == pkg && strings.HasPrefix(n.Sel.Name, "Err") {
					names[n.Sel.Name] = true
				}
			}
			return true
		})
	}
	if len(names) < 30 {
		t.Fatalf("found only %d errors", len(names))
	}
	for name, there := range names {
		if !there {
			t.Errorf("vfs.%s is not in the table", name)
		}
	}
}

// run runs a program and returns its output as the error if it fails.
func run(t testing.TB, name string, args ...string) error {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// mountEnv names the mount for a child process of a test.
const mountEnv = "OGW_TEST_MOUNT"

// inChild runs fn with a mounted bucket in a child process of its own: a
// program that faults on pages of a mount which it serves itself can block
// for good, since Go's collector waits for the faulting thread.
// Meanwhile, beside works on the same bucket in the serving process, until
// its context ends.
func inChild(t *testing.T, over Transport, fn func(dir string), beside func(ctx context.Context, fs *vfs.FS)) {
	t.Helper()
	if dir := os.Getenv(mountEnv); dir != "" {
		fn(dir)
		return
	}
	fs, dir := mountBucket(t, over)
	around, stop := context.WithCancel(bg)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beside(around, fs)
	}()
	defer func() { stop(); <-ended }()
	ctx, cancel := context.WithTimeout(bg, childTimeout)
	defer cancel()
	args := []string{"-test.run=" + alone(t), "-test.v", "-test.timeout=" + childTimeout.String()}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), mountEnv+"="+dir)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "seed") || strings.Contains(line, "--- SKIP") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// childTimeout is far above what a child takes.
const childTimeout = 3 * time.Minute

// must fails the test at once.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// eventually repeats fn for what the kernel is notified of, or does, a little later.
func eventually(t testing.TB, fn func() error) {
	t.Helper()
	var err error
	for range 2000 {
		if err = fn(); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error(err)
}

// alone is the pattern by which -test.run finds the test, and no other.
func alone(t *testing.T) string { return "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$" }

// transports are how requests come to a mount.
var transports = []struct {
	name      string
	transport Transport
}{
	{"device", TransportDevice},
	{"io_uring", TransportRing},
}

// onTransports runs a test over each transport. It is told, since the kernel's
// switch is one for the machine, and TransportAuto follows it.
func onTransports(t *testing.T, test func(t *testing.T, over Transport)) {
	t.Helper()
	for _, x := range transports {
		t.Run(x.name, func(t *testing.T) {
			needTransport(t, x.transport)
			test(t, x.transport)
		})
	}
}

func needTransport(t testing.TB, over Transport) {
	t.Helper()
	needFUSE(t)
	if over == TransportRing {
		needRing(t)
	}
}

// needRing skips where the kernel has no FUSE over io_uring.
func needRing(t testing.TB) {
	t.Helper()
	if err := ring.Enable(); err != nil {
		t.Skip(err)
	}
}
