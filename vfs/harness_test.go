package vfs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// engines are the settings under which every behaviour must hold.
var engines = []struct {
	name string
	open func(t testing.TB) *cluster.Cluster
}{
	{"mem", func(t testing.TB) *cluster.Cluster { return mem.New(mem.Options{}) }},
	{"worst", func(t testing.TB) *cluster.Cluster { return mem.New(mem.Distributed(1)) }},
	{"local", openLocal},
}

// openLocal opens the embedded engine on a folder of the test's own.
func openLocal(t testing.TB) *cluster.Cluster {
	t.Helper()
	c, err := local.Open(context.Background(), local.Options{Dir: t.TempDir(), CacheBytes: 8 << 20, SegmentBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openTest opens a namespace over c without background work.
func openTest(t testing.TB, c *cluster.Cluster) *FS {
	t.Helper()
	return openTestWith(t, c, Config{})
}

func openTestWith(t testing.TB, c *cluster.Cluster, cfg Config) *FS {
	t.Helper()
	cfg.NoBackground = true
	fs, err := Open(context.Background(), c, cfg)
	for range 100 { // an engine that forgets outcomes: opening is idempotent
		if !errors.Is(err, ErrUnavailable) {
			break
		}
		fs, err = Open(context.Background(), c, cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	return fs
}

// onEngines runs a test over every engine.
func onEngines(t *testing.T, test func(t *testing.T, fs *FS)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, openTest(t, e.open(t)))
		})
	}
}

// borrowed is an engine that somebody else closes.
type borrowed struct{ cluster.KV }

func (borrowed) Close() error { return nil }

type borrowedBlobs struct{ cluster.Blobs }

func (borrowedBlobs) Close() error { return nil }

// beside returns c for a process that uses it beside others, which leaves it with the
// test. c is closed by the caller, after that.
func beside(t testing.TB, c *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	mine := *c
	mine.KV, mine.Blobs = borrowed{c.KV}, borrowedBlobs{c.Blobs}
	j, err := Join(bg, &mine, Gateway{Host: "test", PID: 1, Started: time.Now(), Beside: true, Serves: true}, slog.New(slog.DiscardHandler))
	want(t, err, nil)
	t.Cleanup(func() { want(t, j.Close(), nil) })
	return j
}

var bg = context.Background()

// want fails unless err is target (nil: no error).
func want(t testing.TB, err, target error) {
	t.Helper()
	if target == nil && err != nil || target != nil && !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func mustMkdir(t testing.TB, fs *FS, dir Ino, name string) Ino {
	t.Helper()
	a, err := fs.Mkdir(bg, Root, dir, name, 0o755)
	want(t, err, nil)
	return a.Ino
}

// mustFile makes an empty file.
func mustFile(t testing.TB, fs *FS, dir Ino, name string) Ino {
	t.Helper()
	a, _, _, err := fs.Create(bg, Root, dir, name, CreateOptions{Mode: 0o644, Exclusive: true, NoOpen: true})
	want(t, err, nil)
	return a.Ino
}

// mustImplied makes an empty file under stored names below dir, with implied
// directories, as an object operation does.
func mustImplied(t testing.TB, fs *FS, dir Ino, comps ...string) Ino {
	t.Helper()
	var ino Ino
	err := fs.update(bg, func(tx cluster.Txn, o *op) error {
		parent, err := o.makeParents(tx, dir, comps[:len(comps)-1], Root)
		if err != nil {
			return err
		}
		id, err := o.newID()
		if err != nil {
			return err
		}
		n := o.newInode(id, ModeRegular|0o644, Root)
		n.Parent, n.Name = parent, comps[len(comps)-1]
		ino = n.Ino
		if err := record.PutInode(tx, n); err != nil {
			return err
		}
		return o.addEntry(tx, parent, &record.Dentry{Name: n.Name, Ino: n.Ino, Mode: ModeRegular})
	})
	want(t, err, nil)
	return ino
}

// names lists a directory as the POSIX doors show it, sorted.
func names(t testing.TB, fs *FS, dir Ino) []string {
	t.Helper()
	list := []string{}
	err := fs.ReadDir(bg, Root, dir, ReadDirOptions{Attrs: true}, func(e DirEntry) error {
		if e.Attr == nil || e.Attr.Mode&ModeTypeMask != e.Mode || e.Attr.Ino != e.Ino {
			t.Errorf("entry %q: attributes %+v do not fit", e.Name, e.Attr)
		}
		if e.Mode == ModeDirectory {
			e.Name += "/"
		}
		list = append(list, e.Name)
		return nil
	})
	want(t, err, nil)
	slices.Sort(list)
	return list
}

func wantNames(t testing.TB, fs *FS, dir Ino, expect ...string) {
	t.Helper()
	slices.Sort(expect)
	if got := names(t, fs, dir); !slices.Equal(got, expect) {
		t.Fatalf("directory holds %q, want %q", got, expect)
	}
}

// mustLookup returns the attributes of dir/name.
func mustLookup(t testing.TB, fs *FS, dir Ino, name string) Attr {
	t.Helper()
	a, err := fs.Lookup(bg, Root, dir, name)
	want(t, err, nil)
	return a
}
