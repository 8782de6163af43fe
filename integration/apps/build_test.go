package apps

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompile builds and runs a Go program with the race detector, with
// sources, cache and temporary files in the mount: the linker maps its
// output, and the program is executed from the mount. It imports little: with
// an empty cache, what it imports is compiled as well.
func TestCompile(t *testing.T) {
	need(t, "go", "gcc")
	m := newMount(t)
	src := filepath.Join(m.dir, "src")
	for _, d := range []string{"src", "cache", "tmp"} {
		must(t, os.Mkdir(filepath.Join(m.dir, d), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(src, "go.mod"), []byte("module example.com/built\n\ngo 1.21\n"), 0o644))
	var imports, calls strings.Builder
	for i := range 20 {
		pkg := fmt.Sprintf("p%d", i)
		must(t, os.Mkdir(filepath.Join(src, pkg), 0o755))
		must(t, os.WriteFile(filepath.Join(src, pkg, pkg+".go"), fmt.Appendf(nil,
			"// Package %s adds.\npackage %s\n\n// Add adds.\nfunc Add(n int) int { return n + %d }\n", pkg, pkg, i), 0o644))
		fmt.Fprintf(&imports, "\t\"example.com/built/%s\"\n", pkg)
		fmt.Fprintf(&calls, "\t\tn = %s.Add(n)\n", pkg)
	}
	must(t, os.WriteFile(filepath.Join(src, "main.go"), fmt.Appendf(nil, `package main

import (
	"os"
	"strconv"
	"sync"
%s)

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range make([]int, 4) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			n := 0
%s			mu.Lock()
			total += n
			mu.Unlock()
		}()
	}
	wg.Wait()
	os.Stdout.WriteString("total " + strconv.Itoa(total) + "\n")
}
`, imports.String(), calls.String()), 0o644))
	env := []string{"env", "CGO_ENABLED=1", "GOCACHE=" + filepath.Join(m.dir, "cache"), "GOTMPDIR=" + filepath.Join(m.dir, "tmp")}
	goTool := func(args ...string) string {
		return m.run(src, env[0], append(env[1:], append([]string{"go"}, args...)...)...)
	}
	goTool("build", "-race", "-o", "built", ".")
	if out := m.run(src, "./built"); !strings.Contains(out, "total 760") {
		t.Errorf("the program says %q", out)
	}
	first, err := os.ReadFile(filepath.Join(src, "built"))
	must(t, err)
	// Built again over the old one, from the cache: the same bytes.
	goTool("build", "-race", "-o", "built", ".")
	second, err := os.ReadFile(filepath.Join(src, "built"))
	must(t, err)
	if string(first) != string(second) {
		t.Errorf("the second build differs: %d and %d bytes", len(first), len(second))
	}
}
