package billyfs_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/billyfs"
	"ogw/vfs/internal/record"

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

// What may be read and not searched cannot be listed with attributes.
func TestNoSearch(t *testing.T) {
	c := mem.New(mem.Options{})
	v, err := vfs.Open(bg, c, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(v.Close(bg), c.Close()) }()
	a, err := v.Mkdir(bg, vfs.Root, vfs.RootIno, "bucket", 0o744)
	if err == nil {
		_, err = v.Mkdir(bg, vfs.Root, a.Ino, "d", 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := billyfs.New(bg, v, vfs.NewCred(10, 10), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := fsys.ReadDir("/"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v, %v", list, err)
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

// slow is an engine in which the transactions of a gateway that store a file, once armed, wait
// until another one has the lock, or a moment.
type slow struct {
	cluster.KV
	armed  atomic.Bool
	locked chan struct{}
}

func (k *slow) Close() error { return nil } // somebody else does

type blobs struct{ cluster.Blobs }

func (blobs) Close() error { return nil }

func (k *slow) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return k.KV.Update(ctx, func(t cluster.Txn) error { return fn(slowTxn{t, k}) })
}

type slowTxn struct {
	cluster.Txn
	k *slow
}

func (t slowTxn) Set(key, value []byte) error {
	if key[0] == record.TabInode && t.k.armed.Swap(false) {
		select {
		case <-t.k.locked:
		case <-time.After(200 * time.Millisecond):
		}
	}
	return t.Txn.Set(key, value)
}

// Whoever gets the lock at another gateway reads what was written under it, whether it ended by
// Unlock or by Close, and through whichever open of the file.
func TestLockBeside(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	open := func() (*billyfs.FS, *slow) {
		mine := *c
		k := &slow{KV: c.KV, locked: make(chan struct{}, 1)}
		mine.KV, mine.Blobs = k, blobs{c.Blobs}
		j, err := vfs.Join(bg, &mine, vfs.Gateway{Host: "test", PID: 1, Started: time.Now(), Beside: true}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		v, err := vfs.Open(bg, j, vfs.Config{NoBackground: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Close(bg) })
		if _, err = v.Mkdir(bg, vfs.Root, vfs.RootIno, "bucket", 0o755); err != nil && !errors.Is(err, vfs.ErrExist) {
			t.Fatal(err)
		}
		fsys, err := billyfs.New(bg, v, vfs.Root, "/bucket")
		if err != nil {
			t.Fatal(err)
		}
		return fsys, k
	}
	here, k := open()
	there, _ := open()
	for how, release := range map[string]func(billy.File) error{"Unlock": billy.File.Unlock, "Close": billy.File.Close, "Close of another": billy.File.Close} {
		if err := util.WriteFile(here, how, []byte("0"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := here.OpenFile(how, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		other, err := there.OpenFile(how, os.O_RDWR, 0)
		if err = errors.Join(err, f.Lock()); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			err := other.Lock()
			k.locked <- struct{}{}
			got <- err
		}()
		writer := f
		if how == "Close of another" {
			if writer, err = here.OpenFile(how, os.O_RDWR, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := writer.Write([]byte("1")); err != nil {
			t.Fatal(err)
		}
		k.armed.Store(true)
		released := make(chan error, 1)
		go func() { released <- release(f) }()
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := other.ReadAt(b, 0); err != nil || string(b) != "1" {
			t.Errorf("after %s: %q, %v", how, b, err)
		}
		if err := errors.Join(<-released, other.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Close ends a Lock that waits, and the lock is not left behind.
func TestCloseWhileLocking(t *testing.T) {
	fsys, closeAll, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	holder, err := fsys.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		waits, err := fsys.Open("f")
		if err != nil {
			t.Fatal(err)
		}
		if err := holder.Lock(); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { got <- waits.Lock() }()
		time.Sleep(100 * time.Microsecond) // so that Close meets Lock at each of its steps
		freed := make(chan error, 1)
		go func() { freed <- holder.Unlock() }()
		if err := errors.Join(waits.Close(), <-freed); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil && !errors.Is(err, os.ErrClosed) {
			t.Fatalf("Lock of a closed file: %v", err)
		}
	}
	if err := holder.Lock(); err != nil {
		t.Fatal(err)
	}
}

// A file that is closed while it is read, at an offset or not, says so.
func TestCloseWhileReading(t *testing.T) {
	fsys, closeAll, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	if err := util.WriteFile(fsys, "f", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func(billy.File) error{
		func(f billy.File) error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		func(f billy.File) error {
			if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		},
	} {
		for range 100 {
			f, err := fsys.Open("f")
			if err != nil {
				t.Fatal(err)
			}
			began, got := make(chan bool), make(chan error, 1)
			go func() {
				err := read(f)
				close(began)
				for err == nil {
					err = read(f)
				}
				got <- err
			}()
			<-began
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-got; !errors.Is(err, os.ErrClosed) {
				t.Fatalf("a closed file: %v", err)
			}
		}
	}
}

// Nothing in a view of a directory leads out of it.
func TestChrootLinks(t *testing.T) {
	fsys, closeAll, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	if err := errors.Join(util.WriteFile(fsys, "b/secret", []byte("text"), 0o600), fsys.MkdirAll("b/empty", 0o755), fsys.MkdirAll("a", 0o755)); err != nil {
		t.Fatal(err)
	}
	sub, err := fsys.Chroot("a")
	if err != nil {
		t.Fatal(err)
	}
	if sub.Root() != "/a" {
		t.Errorf("its root is %q", sub.Root())
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(sub.Symlink("../b", "up"), sub.Symlink("/b", "top"), sub.Symlink("up", "chain"), sub.Symlink("../b/secret", "file")))
	ch := sub.(billy.Change)
	now := time.Now()
	for _, link := range []string{"up", "top", "chain"} {
		for name, do := range map[string]func() error{
			"Stat":                 func() error { _, err := sub.Stat(link + "/secret"); return err },
			"Lstat":                func() error { _, err := sub.Lstat(link + "/secret"); return err },
			"Open":                 func() error { _, err := sub.Open(link + "/secret"); return err },
			"ReadDir":              func() error { _, err := sub.ReadDir(link); return err },
			"Remove":               func() error { return sub.Remove(link + "/secret") },
			"rmdir":                func() error { return sub.Remove(link + "/empty") },
			"Rename":               func() error { return sub.Rename(link+"/secret", "stolen") },
			"Chmod":                func() error { return ch.Chmod(link+"/secret", 0o777) },
			"Lchown":               func() error { return ch.Lchown(link+"/secret", 1, 1) },
			"Chtimes":              func() error { return ch.Chtimes(link+"/secret", now, now) },
			"Chmod of a directory": func() error { return ch.Chmod(link, 0o700) },
		} {
			if err := do(); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, billy.ErrCrossedBoundary) {
				t.Errorf("%s through %s: %v", name, link, err)
			}
		}
	}
	if inner, err := sub.Chroot("up"); err != nil {
		t.Error(err)
	} else if _, err := inner.Stat("secret"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a view through a link that leads out: %v", err)
	}
	for _, link := range []string{"up", "top", "chain"} {
		// What makes missing directories makes them below the root, or fails.
		_ = util.WriteFile(sub, link+"/made", []byte("text"), 0o600)
		_ = sub.MkdirAll(link+"/new", 0o755)
		_ = sub.Symlink("x", link+"/link")
		_, _ = sub.TempFile(link, "temp")
		must(util.WriteFile(sub, "mine", nil, 0o600))
		_ = sub.Rename("mine", link+"/moved")
	}
	_ = util.WriteFile(sub, "file", []byte("other"), 0o600)
	list, err := fsys.ReadDir("b")
	must(err)
	if len(list) != 2 {
		t.Errorf("there are %d entries outside, want 2", len(list))
	}
	i, err := fsys.Stat("b/secret")
	must(err)
	if i.Mode() != 0o600 || i.Size() != 4 || i.Sys().(*vfs.Attr).UID != 0 {
		t.Errorf("the file outside: %v", i)
	}
	if _, err := sub.Chroot("../b"); !errors.Is(err, billy.ErrCrossedBoundary) {
		t.Errorf("a view of a name that leads out: %v", err)
	}
}

// A view of a directory that is not there makes it, again after it was removed.
func TestChrootMissing(t *testing.T) {
	fsys, closeAll, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	sub, err := fsys.Chroot("x/y")
	if err == nil {
		sub, err = sub.Chroot("z")
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := sub.Stat("f"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file of a missing directory: %v", err)
		}
		if err := util.WriteFile(sub, "f", []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := util.ReadFile(fsys, "x/y/z/f"); err != nil || string(b) != "text" {
			t.Errorf("from above: %q, %v", b, err)
		}
		if err := util.RemoveAll(fsys, "x"); err != nil {
			t.Fatal(err)
		}
	}
}
