package local

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder whose locks say something, whatever file system tests are on.
func openFolder(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := OpenFolder(dir, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// onDisk returns a new folder, on a file system that one kernel has to itself.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	f := openFolder(t, dir)
	if f.Close(); f.held == "" {
		t.Skip("locks on this file system prove nothing")
	}
	return dir
}

func enter(t *testing.T, dir string, id uint64) []uint64 {
	t.Helper()
	f := openFolder(t, dir)
	defer f.Close()
	before, err := f.Enter(id)
	if err != nil {
		t.Fatal(err)
	}
	return before
}

// Who comes learns who was there before.
func TestEnter(t *testing.T) {
	dir := onDisk(t)
	var want []uint64
	for id := uint64(1); id <= 3; id++ {
		if got := enter(t, dir, id); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", id, got, want)
		}
		want = append(want, id)
	}
	f := openFolder(t, dir)
	for id := uint64(4); id <= 5; id++ { // its tries
		if got, err := f.Enter(id); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v, %v", id, got, want, err)
		}
		want = append(want, id)
	}
	if info, err := os.Stat(filepath.Join(dir, record.EnteredFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A folder names the last ones only.
func TestEnterMany(t *testing.T) {
	dir := onDisk(t)
	f := openFolder(t, dir)
	var all []uint64
	for id := uint64(1); id <= 200; id++ {
		if _, err := f.Enter(id); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	f.Close()
	got := enter(t, dir, 201)
	if n := len(got); n == 0 || !slices.Equal(got, all[200-n:]) {
		t.Errorf("%v", got)
	}
	if info, err := os.Stat(filepath.Join(dir, record.EnteredFile)); err != nil || info.Size() > record.MaxEnteredBytes {
		t.Errorf("%v, %v", info, err)
	}
}

// The gateways of a copied folder may be alive: only who holds the very lock that they held
// knows that they are not.
func TestEnterCopy(t *testing.T) {
	for name, change := range map[string]func(dir string) (string, error){
		"a copy": func(dir string) (string, error) {
			to := filepath.Join(filepath.Dir(dir), "copy")
			return to, exec.Command("cp", "-a", dir, to).Run()
		},
		"a copy in its place": func(dir string) (string, error) {
			to := filepath.Join(filepath.Dir(dir), "moved")
			return dir, errors.Join(os.Rename(dir, to), exec.Command("cp", "-a", to, dir).Run())
		},
		"a lock that was removed": func(dir string) (string, error) {
			return dir, os.Remove(filepath.Join(dir, record.LockFile))
		},
		"a lock that was replaced": func(dir string) (string, error) {
			lock := filepath.Join(dir, record.LockFile)
			return dir, errors.Join(os.WriteFile(lock+"2", nil, 0o600), os.Rename(lock+"2", lock))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := onDisk(t)
			alive := openFolder(t, dir)
			if _, err := alive.Enter(1); err != nil {
				t.Fatal(err)
			}
			to, err := change(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := enter(t, to, 2); len(got) > 0 {
				t.Errorf("%v has ended", got)
			}
			if got := enter(t, to, 3); !slices.Equal(got, []uint64{2}) {
				t.Errorf("then %v", got)
			}
			if got, err := alive.Enter(4); err != nil || slices.Contains(got, 2) {
				t.Errorf("the first one knows of %v, %v", got, err)
			}
		})
	}
}

// What another start of the machine wrote, or is no such file, says nothing.
func TestEnterUnknown(t *testing.T) {
	for name, change := range map[string]func(s string) string{
		"another start of the machine": func(s string) string { return strings.Replace(s, "boot ", "boot 0", 1) },
		"another device":               func(s string) string { return strings.Replace(s, "device ", "device 1", 1) },
		"a line that is cut off":       func(s string) string { return s[:len(s)-1] },
		"more than text":               func(s string) string { return s + "\x00" },
		"too much":                     func(s string) string { return s + strings.Repeat("0000000000000001\n", 1000) },
		"nothing":                      func(string) string { return "" },
	} {
		dir := onDisk(t)
		enter(t, dir, 1)
		path := filepath.Join(dir, record.EnteredFile)
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(change(string(b))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := enter(t, dir, 2); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		if got := enter(t, dir, 3); !slices.Equal(got, []uint64{2}) {
			t.Errorf("%s: then %v", name, got)
		}
	}
}

// Where numbers of inodes may come again, a lock proves nothing.
func TestEnterTmpfs(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "ogw-test-*")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if found, err := statfsType(dir); err != nil || found != unix.TMPFS_MAGIC {
		t.Skipf("/dev/shm is %x, %v", found, err)
	}
	dir = filepath.Join(dir, "data")
	for id := uint64(1); id <= 2; id++ {
		if got := enter(t, dir, id); len(got) > 0 {
			t.Errorf("%v has ended", got)
		}
	}
}

// Where the lock proves nothing, nobody is said to have ended, and nothing is written.
func TestEnterWithoutProof(t *testing.T) {
	dir := onDisk(t)
	enter(t, dir, 1)
	f := openFolder(t, dir)
	f.held = ""
	if got, err := f.Enter(2); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	f.Close()
	if got := enter(t, dir, 3); !slices.Equal(got, []uint64{1}) {
		t.Errorf("%v", got)
	}
}

// A file that cannot be written is an error; who was there before is known all the same.
func TestEnterUnwritable(t *testing.T) {
	dir := onDisk(t)
	enter(t, dir, 1)
	if err := os.Mkdir(filepath.Join(dir, record.EnteredFile+".new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, record.EnteredFile+".new", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFolder(t, dir)
	if got, err := f.Enter(2); err == nil || !slices.Equal(got, []uint64{1}) {
		t.Errorf("%v, %v", got, err)
	}
}
