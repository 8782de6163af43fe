package billyfs_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/billyfs"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/test"
	"github.com/go-git/go-billy/v5/util"
	check "gopkg.in/check.v1"
)

var bg = context.Background()

// suite is go-billy's own conformance suite over a fresh namespace.
type suite struct {
	test.FilesystemSuite
	close func() error
}

func (s *suite) SetUpTest(c *check.C) {
	fsys, closeAll, err := open()
	c.Assert(err, check.IsNil)
	s.FilesystemSuite, s.close = test.NewFilesystemSuite(fsys), closeAll
}

func (s *suite) TearDownTest(c *check.C) { c.Assert(s.close(), check.IsNil) }

func TestConformance(t *testing.T) {
	r := check.Run(&suite{}, &check.RunConf{})
	if !r.Passed() || r.Succeeded < 50 {
		t.Error(r)
	}
	t.Log(r)
}

// open returns a view of a bucket of a new namespace.
func open() (*billyfs.FS, func() error, error) {
	c := mem.New(mem.Options{})
	v, err := vfs.Open(bg, c, vfs.Config{NoBackground: true})
	if err != nil {
		return nil, nil, err
	}
	closeAll := func() error { return errors.Join(v.Close(bg), c.Close()) }
	if _, err := v.Mkdir(bg, vfs.Root, vfs.RootIno, "bucket", 0o755); err != nil {
		return nil, nil, err
	}
	fsys, err := billyfs.New(bg, v, vfs.Root, "/bucket")
	return fsys, closeAll, err
}

func TestChange(t *testing.T) {
	fsys, closeAll, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	if err := util.WriteFile(fsys, "d/f", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Symlink("f", "d/l"); err != nil {
		t.Fatal(err)
	}
	sub, err := fsys.Chroot("d")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 5)
	ch := sub.(billy.Change)
	err = errors.Join(ch.Chmod("f", 0o751|os.ModeSticky), ch.Chown("f", 10, 20), ch.Chown("f", -1, 21),
		ch.Chtimes("l", at, at), ch.Lchown("l", 7, 7))
	if err != nil {
		t.Fatal(err)
	}
	i, err := fsys.Stat("d/f")
	if err != nil {
		t.Fatal(err)
	}
	a := i.Sys().(*vfs.Attr)
	if i.Mode() != 0o751|os.ModeSticky || a.UID != 10 || a.GID != 21 || !i.ModTime().Equal(at) {
		t.Errorf("file %v, %+v", i, a)
	}
	if i, err := fsys.Lstat("d/l"); err != nil || i.Sys().(*vfs.Attr).UID != 7 {
		t.Errorf("link %v, %v", i, err)
	}
}

// A lock of one file keeps another that is open on the same inode waiting.
func TestLock(t *testing.T) {
	fsys, closeAll, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	a, err := fsys.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	b, err := fsys.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Lock(); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- b.Lock() }()
	select {
	case err := <-got:
		t.Fatalf("the lock was given twice: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := a.Close(); err != nil { // which unlocks
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Unlock(), b.Close()); err != nil {
		t.Fatal(err)
	}
}
