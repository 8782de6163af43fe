package apps

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGit clones a repository into the mount, checks it whole, works in it,
// packs it, and clones it back.
func TestGit(t *testing.T) {
	need(t, "git")
	m := newMount(t)
	origin := filepath.Join(m.base, "origin")
	makeRepository(t, m, origin)

	clone := filepath.Join(m.dir, "clone")
	m.run(m.dir, "git", "clone", "-q", "file://"+origin, clone)
	m.run(clone, "git", "fsck", "--full", "--strict")
	if out := m.run(clone, "git", "status", "--porcelain"); out != "" {
		t.Errorf("a fresh clone differs from its index:\n%s", tail(out))
	}
	m.run(m.base, "diff", "-r", "--no-dereference", "--exclude=.git", origin, clone)

	for i := range 5 {
		m.run(clone, "git", "checkout", "-q", "-b", fmt.Sprintf("work%d", i))
		name := filepath.Join(clone, fmt.Sprintf("new%d", i))
		must(t, os.WriteFile(name, []byte(strings.Repeat(name, 1000)), 0o644))
		m.run(clone, "git", "mv", fmt.Sprintf("dir/moved%d", i), "dir/sub")
		m.run(clone, "git", "add", "-A")
		m.run(clone, "git", "commit", "-q", "-m", fmt.Sprintf("work %d", i))
		m.run(clone, "git", "checkout", "-q", "main")
	}
	m.run(clone, "git", "merge", "-q", "-m", "merge", "work3", "work4")
	m.run(clone, "git", "gc", "-q", "--prune=now", "--aggressive")
	m.run(clone, "git", "fsck", "--full", "--strict")
	if out := m.run(clone, "git", "status", "--porcelain"); out != "" {
		t.Errorf("status after gc:\n%s", tail(out))
	}
	back := filepath.Join(m.base, "back")
	m.run(m.base, "git", "clone", "-q", clone, back)
	m.run(back, "git", "fsck", "--full", "--strict")
	m.run(m.base, "diff", "-r", "--no-dereference", "--exclude=.git", clone, back)
	m.run(m.dir, "rm", "-rf", clone)
}

// makeRepository makes some commits of real sources.
func makeRepository(t *testing.T, m *mount, origin string) {
	t.Helper()
	must(t, os.Mkdir(origin, 0o755))
	m.run(m.base, "git", "config", "--global", "user.email", "test@example.com")
	m.run(m.base, "git", "config", "--global", "user.name", "test")
	m.run(m.base, "git", "config", "--global", "init.defaultBranch", "main")
	m.run(m.base, "git", "config", "--global", "core.fsyncMethod", "fsync")
	m.run(origin, "git", "init", "-q")
	m.run(m.base, "cp", "-r", filepath.Join(goRoot(t), "src/net"), filepath.Join(origin, "net"))
	m.run(origin, "git", "add", "-A")
	m.run(origin, "git", "commit", "-q", "-m", "net")
	must(t, os.MkdirAll(filepath.Join(origin, "dir/sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(origin, "dir/sub/keep"), nil, 0o755))
	must(t, os.Symlink("sub/keep", filepath.Join(origin, "dir/link")))
	for i := range 5 {
		must(t, os.WriteFile(filepath.Join(origin, fmt.Sprintf("dir/moved%d", i)), fmt.Appendf(nil, "%d", i), 0o644))
		m.run(origin, "git", "add", "-A")
		m.run(origin, "git", "commit", "-q", "-m", fmt.Sprintf("commit %d", i))
	}
	m.run(origin, "git", "rm", "-q", "-r", "net/http/httptest")
	m.run(origin, "git", "commit", "-q", "-m", "removed")
}
