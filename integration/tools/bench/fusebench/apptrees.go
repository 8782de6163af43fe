package fusebench

import (
	"os"
	"path/filepath"
	"time"
)

// What the apps do with a tree of files. Archive, repositories and the source of copies
// are on the local disk, in the page cache.

func archiveOf(dir string) string    { return filepath.Join(os.TempDir(), filepath.Base(dir)+".tar") }
func repositoryOf(dir string) string { return filepath.Join(os.TempDir(), filepath.Base(dir)+".git") }

func pack(dir string, s Scale) error { return packTree(archiveOf(dir), s.Tree) }

// unpack makes a tree and returns how many files a second.
func unpack(dir, name string) (float64, error) {
	to := filepath.Join(dir, name)
	if err := os.Mkdir(to, 0o755); err != nil {
		return 0, err
	}
	return perTree(to, func() error { return run("tar", "-C", to, "-xf", archiveOf(dir)) })
}

// perTree returns the files of a tree by the time that fn takes.
func perTree(tree string, fn func() error) (float64, error) {
	begin := time.Now()
	if err := fn(); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	n, err := countFiles(tree)
	return float64(n) / took.Seconds(), err
}

func untarAgain(dir string, _ Scale) (float64, error) {
	defer os.RemoveAll(filepath.Join(dir, "untar"))
	return unpack(dir, "untar")
}

// untarOnce makes the tree that other rows walk.
func untarOnce(dir string, s Scale) error {
	if err := pack(dir, s); err != nil {
		return err
	}
	defer os.Remove(archiveOf(dir))
	_, err := unpack(dir, "tree")
	return err
}

func copyTree(dir string, s Scale) (float64, error) {
	to := filepath.Join(dir, "copy")
	defer os.RemoveAll(to)
	return perTree(s.Tree, func() error { return run("cp", "-r", s.Tree, to) })
}

func find(dir string, _ Scale) (float64, error) {
	tree := filepath.Join(dir, "tree")
	return perTree(tree, func() error { return run("find", tree, "-name", "no such name") })
}

func lsLong(dir string, s Scale) (float64, error) {
	begin := time.Now()
	if err := run("ls", "-l", filepath.Join(dir, "listing")); err != nil {
		return 0, err
	}
	return rate(s.Listing, begin), nil
}

func grep(dir string, _ Scale) (float64, error) {
	tree := filepath.Join(dir, "tree")
	grepped := func() error { return run("sh", "-c", `! grep -rqF "no such""text" "$0"`, tree) }
	if err := grepped(); err != nil { // the pages come into the cache
		return 0, err
	}
	return perTree(tree, grepped)
}

// gitArgs are for a repository on the local disk, whose files are in the tree.
func gitArgs(dir string, args ...string) []string {
	return append([]string{"--git-dir=" + repositoryOf(dir), "--work-tree=" + filepath.Join(dir, "tree")}, args...)
}

func addAll(dir string, _ Scale) error {
	if err := run("git", gitArgs(dir, "init", "-q")...); err != nil {
		return err
	}
	return run("git", gitArgs(dir, "add", "-A")...)
}

func status(dir string, _ Scale) (float64, error) {
	return perTree(filepath.Join(dir, "tree"), func() error { return run("git", gitArgs(dir, "status", "--porcelain")...) })
}

// makeRepository makes what is cloned: a tenth of the tree.
func makeRepository(dir string, s Scale) error {
	at := []string{"--git-dir=" + repositoryOf(dir), "--work-tree=" + filepath.Join(s.Tree, "go")}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "tree"}} {
		if err := run("git", append(at[:len(at):len(at)], args...)...); err != nil {
			return err
		}
	}
	return nil
}

func clone(dir string, _ Scale) (float64, error) {
	to := filepath.Join(dir, "clone")
	defer os.RemoveAll(to)
	begin := time.Now()
	if err := run("git", "clone", "-q", "--no-local", repositoryOf(dir), to); err != nil {
		return 0, err
	}
	return rate(1, begin), nil
}

// cleanApps removes what the apps left on the local disk for a target.
func cleanApps(dir string) {
	for _, name := range []string{archiveOf(dir), repositoryOf(dir)} {
		os.RemoveAll(name)
	}
}
