package vfs

import (
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// readClock is a namespace with a clock of the test's own.
type readClock struct {
	*FS
	now time.Time
	ino Ino
}

func newReadClock(t *testing.T, c *cluster.Cluster, cfg Config) *readClock {
	t.Helper()
	r := &readClock{now: time.Unix(1_700_000_000, 0)}
	cfg.Now = func() time.Time { r.now = r.now.Add(time.Second); return r.now }
	r.FS = openTestWith(t, c, cfg)
	r.ino = mustFile(t, r.FS, RootIno, "f")
	return r
}

// read reads through a File and returns the access time then.
func (r *readClock) read(t *testing.T) Time {
	t.Helper()
	f, err := r.Open(bg, Root, r.ino, OpenRead)
	want(t, err, nil)
	f.Accessed(bg)
	f.Accessed(bg)
	want(t, f.Close(bg), nil)
	return r.atime(t)
}

func (r *readClock) atime(t *testing.T) Time {
	t.Helper()
	a, err := r.GetAttr(bg, r.ino)
	want(t, err, nil)
	return a.Atime
}

// Reads move the access time as relatime says: it is shown at once, and stored in
// batches.
func TestRelatime(t *testing.T) {
	r := newReadClock(t, openLocal(t), Config{})
	made := r.atime(t)
	first := r.read(t)
	if first.UnixNS() <= made.UnixNS() {
		t.Fatalf("the first read left %v", first)
	}
	if again := r.read(t); again != first {
		t.Errorf("the second read moved it to %v", again)
	}
	stored := func() Time {
		t.Helper()
		var n *record.Inode
		want(t, r.view(bg, func(x cluster.Reader) (err error) { n, err = record.GetInode(x, r.ino); return err }), nil)
		return n.Atime
	}
	if stored() != made {
		t.Error("a read was stored by itself")
	}
	want(t, r.storeReads(bg), nil)
	if stored() != first || r.atime(t) != first {
		t.Errorf("stored is %v, shown %v, want %v", stored(), r.atime(t), first)
	}
	r.now = r.now.Add(25 * time.Hour)
	r.reads.NextTurn()
	late := r.read(t)
	if late == first {
		t.Error("a read after a day did not move it")
	}
	f, err := r.Open(bg, Root, r.ino, OpenRead|OpenWrite)
	want(t, err, nil)
	f.Accessed(bg)
	_, err = f.WriteAt(bg, []byte("x"), 0)
	want(t, err, nil)
	f.Accessed(bg)
	if got := r.atime(t); got == late {
		t.Error("a read after a write did not move it")
	}
	want(t, f.Close(bg), nil)
}

// A listing that goes on shows reads since it began.
func TestReadWhileListed(t *testing.T) {
	fs := openTest(t, openLocal(t))
	var inos []Ino
	for _, name := range []string{"a", "b", "c"} {
		inos = append(inos, mustFile(t, fs, RootIno, name))
	}
	s := fs.OpenDirStream(RootIno)
	list := func(after string, fn func(e *DirEntry) error) {
		t.Helper()
		want(t, s.Read(bg, Root, ReadDirOptions{After: after, Attrs: true}, fn), nil)
	}
	var first string
	list("", func(e *DirEntry) error {
		if first != "" {
			return cluster.ErrStop
		}
		first = e.Pos
		return nil
	})
	for _, ino := range inos {
		fs.Accessed(bg, ino)
	}
	list(first, func(e *DirEntry) error {
		a, err := fs.GetAttr(bg, e.Ino)
		if want(t, err, nil); e.Attr.Atime != a.Atime || a.Atime.UnixNS() <= a.BtimeNS {
			t.Errorf("%s: listed with %v, has %v", e.Name, e.Attr.Atime, a.Atime)
		}
		return nil
	})
}

// Who sets an access time, be it the old one, has the last word.
func TestSetAtimeAfterRead(t *testing.T) {
	r := newReadClock(t, openLocal(t), Config{})
	made := r.atime(t)
	r.read(t)
	_, err := r.SetAttr(bg, Root, r.ino, SetAttr{Atime: &made})
	want(t, err, nil)
	want(t, r.storeReads(bg), nil)
	if got := r.atime(t); got != made {
		t.Errorf("%v, want %v", got, made)
	}
}

// Neither +A nor the configuration lets reads move it; directories and links count
// like files.
func TestNoAtime(t *testing.T) {
	r := newReadClock(t, mem.New(mem.Options{}), Config{})
	made := r.atime(t)
	want(t, r.SetFlags(bg, Root, r.ino, FlagNoAtime), nil)
	if got := r.read(t); got != made {
		t.Error("with +A a read moved it")
	}
	want(t, r.SetFlags(bg, Root, r.ino, 0), nil)
	if got := r.read(t); got == made {
		t.Error("without +A a read did not move it")
	}
	dir := mustMkdir(t, r.FS, RootIno, "d")
	before, err := r.GetAttr(bg, dir)
	want(t, err, nil)
	r.Accessed(bg, dir)
	a, err := r.GetAttr(bg, dir)
	if want(t, err, nil); a.Atime == before.Atime {
		t.Error("the listing of a directory did not move it")
	}
	off := newReadClock(t, mem.New(mem.Options{}), Config{NoAtime: true})
	made = off.atime(t)
	if off.read(t) != made {
		t.Error("with NoAtime a read moved it")
	}
}

// The end of a process stores what is in memory.
func TestReadsStoredAtClose(t *testing.T) {
	c := openLocal(t)
	fs, err := Open(bg, c, Config{NoBackground: true})
	want(t, err, nil)
	ino := mustFile(t, fs, RootIno, "f")
	fs.Accessed(bg, ino)
	read, err := fs.GetAttr(bg, ino)
	want(t, err, nil)
	want(t, fs.Close(bg), nil)
	a, err := openTest(t, c).GetAttr(bg, ino)
	if want(t, err, nil); a.Atime != read.Atime {
		t.Errorf("%v, want %v", a.Atime, read.Atime)
	}
}

// What noting a read adds to one.
func BenchmarkAccessed(b *testing.B) {
	fs := openTest(b, mem.New(mem.Options{}))
	_, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(b, err, nil)
	_, err = f.WriteAt(bg, make([]byte, 4096), 0)
	want(b, err, nil)
	want(b, f.Sync(bg), nil)
	run := func(name string, note bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				buf := make([]byte, 4096)
				for pb.Next() {
					_, _ = f.ReadAt(bg, buf, 0)
					if note {
						f.Accessed(bg)
					}
				}
			})
		})
	}
	run("read", false)
	run("noted", true)
	want(b, f.Close(bg), nil)
}
