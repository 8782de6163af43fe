package integration

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

const (
	// goTree is the part of the Go toolchain's sources that TestGoTree carries;
	// OGW_GO_TREE says otherwise ("." is all).
	goTree = "crypto"
	// goTreeFiles is the least that it holds: more than a page of a listing.
	goTreeFiles = 1001
)

// TestGoTree carries a tree of the Go toolchain's sources through every door:
// in over S3, compared over FUSE, read over NFS, fetched over REST, renamed
// over FUSE and listed over S3 at once, written over NFS and read over S3.
func TestGoTree(t *testing.T) {
	s := newServer(t, options{})
	tree := filepath.Join(testenv.GoSources(t), cmp.Or(os.Getenv("OGW_GO_TREE"), goTree))
	files := listFiles(t, tree)
	if len(files) < goTreeFiles {
		t.Fatalf("%s has only %d files", tree, len(files))
	}
	file := largest(t, tree, files)
	s.makeBucket("gosrc")
	s.AWS("s3", "sync", "--only-show-errors", "--no-follow-symlinks", tree, "s3://gosrc/src")

	mnt := s.Mount()
	s.Command("diff", "-r", "--no-dereference", tree, filepath.Join(mnt, "gosrc/src"))

	t.Run("libnfs", func(t *testing.T) { readOverNFS(t, s.with(t), tree, files) })
	t.Run("curl", func(t *testing.T) {
		s := s.with(t)
		for _, f := range sample(files, 20) {
			got := s.Command("curl", "-sSf", "http://"+s.REST+"/gosrc/src/"+f)
			sameBytes(t, f, []byte(got), readFile(t, filepath.Join(tree, f)))
		}
	})
	t.Run("whereis and purge", func(t *testing.T) {
		s := s.with(t)
		out := s.OGW("whereis", "gosrc/src/"+file)
		if !strings.Contains(out, "gosrc/src/"+file) {
			t.Errorf("whereis does not name the object:\n%s", out)
		}
		if out, err := s.Try(binary, "whereis", "--config", s.Config, "gosrc/src/no/such/file"); err == nil ||
			!strings.Contains(out, "does not exist") {
			t.Errorf("whereis of what does not exist: %v\n%s", err, out)
		}
		s.OGW("purge", "gosrc/src/"+file)
		sameBytes(t, "after purge", readFile(t, filepath.Join(mnt, "gosrc/src", file)), readFile(t, filepath.Join(tree, file)))
	})
	t.Run("rename over FUSE, list over S3", func(t *testing.T) {
		s := s.with(t)
		if err := os.Rename(filepath.Join(mnt, "gosrc/src"), filepath.Join(mnt, "gosrc/renamed")); err != nil {
			t.Fatal(err)
		}
		out := s.AWS("s3", "ls", "--recursive", "s3://gosrc/")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != len(files) {
			t.Errorf("%d keys after the rename, %d files before", len(lines), len(files))
		}
		for _, l := range lines {
			if !strings.Contains(l, " renamed/") {
				t.Fatalf("an old key is still listed: %s", l)
			}
		}
	})
	t.Run("write over NFS, read over S3", func(t *testing.T) {
		s := s.with(t)
		src := filepath.Join(tree, file)
		s.Command("nfs-cp", src, s.NFSURL("/gosrc/from-nfs"))
		out := filepath.Join(testenv.TempDir(t), "out")
		s.AWS("s3", "cp", "--only-show-errors", "s3://gosrc/from-nfs", out)
		sameBytes(t, "from-nfs", readFile(t, out), readFile(t, src))
	})
	t.Run("check", func(t *testing.T) { checkClean(t, s) })
}

// readOverNFS lists the tree and reads a sample with libnfs's tools.
func readOverNFS(t *testing.T, s *server, tree string, files []string) {
	out := s.Command("nfs-ls", "-R", s.NFSURL("/gosrc/src"))
	listed := 0
	for _, l := range strings.Split(out, "\n") {
		if strings.HasPrefix(l, "-") {
			listed++
		}
	}
	if listed != len(files) {
		t.Errorf("nfs-ls shows %d files, there are %d", listed, len(files))
	}
	for _, f := range sample(files, 100) {
		want := readFile(t, filepath.Join(tree, f))
		if len(want) == 0 {
			continue // nfs-cat fails on empty files, whatever the server
		}
		sameBytes(t, f, []byte(s.Command("nfs-cat", s.NFSURL("/gosrc/src/"+f))), want)
	}
}

func listFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(root, p)
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// largest returns the largest of files below root.
func largest(t *testing.T, root string, files []string) (name string) {
	t.Helper()
	size := int64(-1)
	for _, f := range files {
		info, err := os.Stat(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			name, size = f, info.Size()
		}
	}
	return name
}

// sample returns n of list, spread evenly.
func sample(list []string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sameBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes differ from the %d expected", what, len(got), len(want))
	}
}

// checkClean runs ogw check and wants no problem.
func checkClean(t *testing.T, s *server) {
	t.Helper()
	if out, err := s.Try(binary, "check", "--config", s.Config, "--data"); err != nil {
		t.Errorf("ogw check: %v\n%s", err, out)
	}
}
