package nfsvm

import (
	"fmt"
	"ogw/integration/testenv"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// number reads a size from the environment.
func number(t *testing.T, name string, otherwise int64) string {
	t.Helper()
	if v := os.Getenv(name); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		otherwise = n
	}
	return strconv.FormatInt(otherwise, 10)
}

// guestprog builds the program of that name for the guest.
func guestprog(t *testing.T) map[string]string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guestprog")
	cmd := exec.Command("go", "build", "-o", out, "./guestprog")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building guestprog: %v\n%s", err, b)
	}
	return map[string]string{"bin/guestprog": out}
}

// programs returns what the guest needs to run programs of this machine:
// themselves, and the libraries that they load.
func programs(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, p := range paths {
		files[strings.TrimPrefix(p, "/")] = p
		out, err := exec.Command("ldd", p).Output()
		if err != nil {
			t.Fatalf("libraries of %s: %v", p, err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if !strings.HasPrefix(word, "/") {
				continue
			}
			real, err := filepath.EvalSymlinks(word)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(word, "/")] = real
		}
	}
	return files
}

// repository makes a git repository with some history.
func repository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	script := fmt.Sprintf(`set -e
		git init -q %[1]s && cd %[1]s
		git config user.name host && git config user.email host@example.org
		for part in bufio bytes encoding net; do
			cp -r %[2]s/$part . && git add . && git commit -q -m $part
		done
		git rm -q -r encoding && git commit -q -m "encoding goes" && git tag v1`, dir, testenv.GoSources(t))
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("making a repository: %v\n%s", err, out)
	}
	return dir
}
