package iofs_test

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/fstest"

	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/iofs"
)

var bg = context.Background()

func open(t testing.TB) *vfs.FS {
	t.Helper()
	c := mem.New(mem.Options{})
	v, err := vfs.Open(bg, c, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(v.Close(bg), c.Close()); err != nil {
			t.Error(err)
		}
	})
	return v
}

func write(t testing.TB, v *vfs.FS, dir vfs.Ino, name, text string) {
	t.Helper()
	_, f, _, err := v.Create(bg, vfs.Root, dir, name, vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenWrite})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bg, []byte(text), 0)
	if err := errors.Join(err, f.Close(bg)); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, v *vfs.FS, dir vfs.Ino, name string) vfs.Ino {
	t.Helper()
	a, err := v.Mkdir(bg, vfs.Root, dir, name, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	return a.Ino
}

func TestFS(t *testing.T) {
	v := open(t)
	b := mkdir(t, v, vfs.RootIno, "bucket")
	d := mkdir(t, v, b, "dir")
	mkdir(t, v, d, "empty")
	write(t, v, b, "hello", "hello, world")
	write(t, v, d, "nested", "n")
	write(t, v, vfs.RootIno, "outside", "secret")
	if _, err := v.Symlink(bg, vfs.Root, b, "link", "dir/nested"); err != nil {
		t.Fatal(err)
	}
	fsys, err := iofs.New(bg, v, vfs.Root, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(fsys, "hello", "dir/nested", "dir/empty", "link"); err != nil {
		t.Error(err)
	}
	if text, err := fs.ReadFile(fsys, "hello"); err != nil || string(text) != "hello, world" {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := v.Symlink(bg, vfs.Root, b, "escape", "../../outside"); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(fsys, "escape"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link out of the view: %v", err)
	}
	// The view stays with the directory.
	if err := v.Rename(bg, vfs.Root, vfs.EntryName{Dir: vfs.RootIno, Name: "bucket"}, vfs.EntryName{Dir: vfs.RootIno, Name: "other"}, 0); err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(fsys, "link"); err != nil || string(text) != "n" {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestErrors(t *testing.T) {
	v := open(t)
	write(t, v, vfs.RootIno, "f", "")
	fsys, err := iofs.New(bg, v, vfs.NewCred(10, 10), "/")
	if err != nil {
		t.Fatal(err)
	}
	mode := uint32(0)
	a, err := v.Resolve(bg, vfs.Root, "f", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.SetAttr(bg, vfs.Root, a.Ino, vfs.SetAttr{Mode: &mode}); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]error{
		"none": fs.ErrNotExist, "/f": fs.ErrInvalid, "f/x": syscall.ENOTDIR, "f": fs.ErrPermission, "../f": fs.ErrInvalid,
	} {
		if _, err := fsys.Open(name); !errors.Is(err, target) {
			t.Errorf("%q: %v, want %v", name, err, target)
		}
	}
	if nobody, err := iofs.New(bg, v, nil, "/"); err != nil {
		t.Error(err)
	} else if _, err := nobody.Open("f"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without a credential: %v", err)
	}
	if _, err := iofs.New(bg, v, vfs.Root, "/f"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a view of a file: %v", err)
	}
}

// TestNoSearch: a directory that may be read and not searched shows names and types.
func TestNoSearch(t *testing.T) {
	v := open(t)
	d := mkdir(t, v, vfs.RootIno, "d")
	write(t, v, d, "f", "text")
	mkdir(t, v, d, "sub")
	mode := uint32(0o744)
	if _, err := v.SetAttr(bg, vfs.Root, d, vfs.SetAttr{Mode: &mode}); err != nil {
		t.Fatal(err)
	}
	fsys, err := iofs.New(bg, v, vfs.NewCred(10, 10), "/")
	if err != nil {
		t.Fatal(err)
	}
	open, err := fsys.Open("d")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for name, list := range map[string]func() ([]fs.DirEntry, error){
		"by name": func() ([]fs.DirEntry, error) { return fs.ReadDir(fsys, "d") },
		"opened":  func() ([]fs.DirEntry, error) { return open.(fs.ReadDirFile).ReadDir(-1) },
	} {
		entries, err := list()
		if err != nil || len(entries) != 2 || entries[0].Name() != "f" || entries[0].IsDir() || !entries[1].IsDir() || entries[1].Type() != fs.ModeDir {
			t.Fatalf("%s: %v, %v", name, entries, err)
		}
		for _, e := range entries {
			if _, err := e.Info(); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: info of %s: %v", name, e.Name(), err)
			}
		}
	}
}
