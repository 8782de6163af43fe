package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// fillStore opens the store in dir and writes what makes files of every kind,
// unless it is there.
func fillStore(t *testing.T, dir string) {
	t.Helper()
	c := openAt(t, Options{Dir: dir})
	for i, size := range []int{100, smallMax + 1} {
		if err := storeBlob(c.Blobs, cluster.BlobID{Content: uint64(i + 1), Seq: 1}, make([]byte, size)); err != nil && !errors.Is(err, cluster.ErrExists) {
			t.Fatal(err)
		}
	}
	err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), make([]byte, separateBytes)) })
	if err = errors.Join(err, c.KV.(*KV).db.Flush(), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// openToOthers lists what in dir has rights for others, or the wrong type.
func openToOthers(t *testing.T, dir string) (found []string, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		files++
		want := fs.FileMode(fileio.FileMode)
		if e.IsDir() {
			want = fileio.FolderMode
		}
		if info.Mode().Perm() != want {
			found = append(found, path+" "+info.Mode().String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, files
}

// TestPrivateFiles: neither the umask nor the mode of a folder that was there
// opens anything to others, and what an earlier version made is closed.
func TestPrivateFiles(t *testing.T) {
	for _, umask := range []int{0, 0o22, 0o777} {
		old := unix.Umask(umask)
		dir := filepath.Join(t.TempDir(), "data")
		err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755))
		if err == nil {
			fillStore(t, dir)
		}
		unix.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		if found, files := openToOthers(t, dir); len(found) > 0 || files < 260 {
			t.Errorf("umask %03o: of %d files, others may use %v", umask, files, found)
		}
	}
}

func TestPrivateAfterUpgrade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fillStore(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != fileio.FolderMode {
		t.Errorf("the folder that was made has mode %v, %v", info.Mode(), err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if blob, _ := filepath.Match(filepath.Join(dir, record.BlobDir, "*", "*"), path); blob {
			return err // see makeStorePrivate
		}
		mode := fs.FileMode(0o644)
		if e.IsDir() {
			mode = 0o755
		}
		return errors.Join(err, os.Chmod(path, mode))
	})
	if err != nil {
		t.Fatal(err)
	}
	fillStore(t, dir) // opens it again
	if found, _ := openToOthers(t, dir); len(found) > 0 {
		t.Errorf("after the start, others may use %v", found)
	}
}

func TestExposedFolder(t *testing.T) {
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777 | os.ModeSticky} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Open(ctx, Options{Dir: dir})
		if !errors.Is(err, cluster.ErrExposed) || !strings.Contains(err.Error(), "chmod go-w "+dir) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	var warned strings.Builder
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	openAt(t, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&warned, nil))}).Close()
	if !strings.Contains(warned.String(), "others may enter") {
		t.Errorf("the log has no warning: %s", warned.String())
	}
}

// TestLinksInFolder: whatever in the data folder is a symbolic link, the store
// is not opened, and what it leads to is left alone.
func TestLinksInFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fillStore(t, dir)
	tables, err := filepath.Glob(filepath.Join(dir, record.MetaDir, "*"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	names := append(tables, filepath.Join(dir, record.BlobDir, "00"))
	for _, name := range []string{record.FormatFile, record.LockFile, record.MarkFile, record.ReserveFile, record.MetaDir, record.SegmentDir, record.BlobDir} {
		names = append(names, filepath.Join(dir, name))
	}
	for _, name := range names {
		away := filepath.Join(t.TempDir(), "elsewhere")
		if err := errors.Join(os.Rename(name, away), os.Symlink(away, name)); err != nil {
			t.Fatal(err)
		}
		if c, err := Open(ctx, Options{Dir: dir}); err == nil {
			c.Close()
			t.Errorf("opened with %s being a symbolic link", name)
		} else if !errors.Is(err, cluster.ErrExposed) && !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(os.Remove(name), os.Rename(away, name)); err != nil {
			t.Fatal(err)
		}
	}
	openAt(t, Options{Dir: dir}).Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	openAt(t, Options{Dir: link}).Close() // the operator's choice
}

// TestPrivateWithoutProc: where /proc is not mounted, modes are changed all the
// same, or the start logs that they are not.
func TestPrivateWithoutProc(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	if err := chmodByName(at, 0o600, "/nonexistent"); !errors.Is(err, errNoChmod) || errors.Is(err, os.ErrNotExist) {
		t.Errorf("without fchmodat2: %v", err) // what is not there is passed over
	}
	switch err := unix.Fchmodat(at, "", 0o700, unix.AT_EMPTY_PATH); {
	case errors.Is(err, unix.EOPNOTSUPP):
		t.Log("this kernel has no fchmodat2")
	case err != nil:
		t.Error(err)
	default:
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	if err := chmodPath(at, 0o600); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}
