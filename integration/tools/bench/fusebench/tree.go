package fusebench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// packTree makes the archive of s.Tree that untar unpacks, and returns how many
// files it holds.
func packTree(archive, tree string) error {
	return run("tar", "-C", tree, "-cf", archive, ".")
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %.500s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// rate is how often n things were done since begin.
func rate(n int, begin time.Time) float64 { return float64(n) / time.Since(begin).Seconds() }

// untar unpacks the tree. The archive is on the local disk, in the page cache.
func untar(dir string, s Scale) (float64, error) {
	archive := filepath.Join(os.TempDir(), filepath.Base(dir)+".tar")
	defer os.Remove(archive)
	if err := packTree(archive, s.Tree); err != nil {
		return 0, err
	}
	to := filepath.Join(dir, "tree")
	if err := os.Mkdir(to, 0o755); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := run("tar", "-C", to, "-xf", archive); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	n, err := countFiles(to)
	return float64(n) / took.Seconds(), err
}

func countFiles(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	return n, err
}

// gitStatus asks for the status of the unpacked tree. The repository itself
// is on the local disk; what is measured is that git looks at every file.
func gitStatus(dir string, cold bool) (float64, error) {
	tree := filepath.Join(dir, "tree")
	repo := filepath.Join(os.TempDir(), filepath.Base(dir)+".git")
	args := []string{"--git-dir=" + repo, "--work-tree=" + tree}
	if cold {
		if err := run("git", append(args, "init", "-q")...); err != nil {
			return 0, err
		}
		if err := run("git", append(args, "add", "-A")...); err != nil {
			return 0, err
		}
		if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
			return 0, err
		}
	} else {
		defer os.RemoveAll(repo)
	}
	begin := time.Now()
	if err := run("git", append(args, "status", "--porcelain")...); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	n, err := countFiles(tree)
	return float64(n) / took.Seconds(), err
}
