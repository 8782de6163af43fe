package nfsserver

import (
	"context"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

var photos = Export{Path: "/photos", Squash: SquashNone}

// onBothKinds runs fn over a store of this process alone, and over one that
// others may change, where less can be remembered.
func onBothKinds(t *testing.T, exports []Export, fn func(t *testing.T, s *site)) {
	for _, exclusive := range []bool{true, false} {
		t.Run(map[bool]string{true: "alone", false: "shared"}[exclusive], func(t *testing.T) {
			disk := mem.NewDisk()
			clu := mem.New(mem.Options{Disk: disk})
			if !exclusive {
				clu = joined(t, clu)
			}
			fn(t, openSiteOver(t, disk, clu, vfs.Config{}, exports...))
		})
	}
}

// hand is another door: it does things as the superuser.
type hand struct {
	t  *testing.T
	fs *vfs.FS
}

func (s *site) hand(t *testing.T) hand { return hand{t, s.fs} }

func (h hand) ino(path string) vfs.Ino {
	h.t.Helper()
	a, err := h.fs.Resolve(context.Background(), vfs.Root, path, false)
	if err != nil {
		h.t.Fatal(err)
	}
	return a.Ino
}

func (h hand) mkdir(dir, name string) {
	h.t.Helper()
	if _, err := h.fs.Mkdir(context.Background(), vfs.Root, h.ino(dir), name, 0o777); err != nil {
		h.t.Fatal(err)
	}
}

func (h hand) rmdir(name string) {
	h.t.Helper()
	if err := h.fs.Rmdir(context.Background(), vfs.Root, vfs.RootIno, name); err != nil {
		h.t.Fatal(err)
	}
}

func (h hand) symlink(dir, name, target string) {
	h.t.Helper()
	if _, err := h.fs.Symlink(context.Background(), vfs.Root, h.ino(dir), name, target); err != nil {
		h.t.Fatal(err)
	}
}

func (h hand) rename(dir, name, to, newName string) {
	h.t.Helper()
	if err := h.fs.Rename(context.Background(), vfs.Root, vfs.EntryName{Dir: h.ino(dir), Name: name}, vfs.EntryName{Dir: h.ino(to), Name: newName}, 0); err != nil {
		h.t.Fatal(err)
	}
}

// TestMountFollowsNoLinkOut: links below an export lead round in it, and none
// leads to it.
func TestMountFollowsNoLinkOut(t *testing.T) {
	s := newSite(t, photos, Export{Path: "/way/photos"}, Export{Path: "/a/link"})
	h := s.hand(t)
	for _, name := range []string{"photos", "other", "a"} {
		h.mkdir("/", name)
	}
	h.mkdir("/photos", "in")
	h.symlink("/", "way", "/")
	h.symlink("/a", "link", "../photos")
	h.symlink("/photos", "top", "/")
	h.symlink("/photos", "up", "../../..")
	h.symlink("/photos", "aside", "../other")
	h.symlink("/photos/in", "back", "/in")
	c := s.mount("/photos", 0)
	_, in, _ := c.lookup(c.root, "in")
	for _, x := range []struct {
		path string
		want Status
		fh   []byte
	}{
		{"/photos/top", OK, c.root},
		{"/photos/up", OK, c.root},
		{"/photos/top/in/back", OK, in},
		{"/photos/aside", ErrNoEnt, nil},
		{"/photos/top/other", ErrNoEnt, nil},
		{"/photos/../other", ErrNoEnt, nil},
		{"/way/photos", ErrNotDir, nil}, // the export's own path
		{"/a/link", ErrNotDir, nil},
		{"/a/link/in", ErrNotDir, nil},
	} {
		st, fh := s.dial().mnt(x.path)
		if Status(st) != x.want || string(fh) != string(x.fh) {
			t.Errorf("MNT %s: %v, handle %x; want %v, %x", x.path, Status(st), fh, x.want, x.fh)
		}
	}
}

// TestExportOfABucketMadeAnew: its old handles are stale, and nobody walks
// out of the new one.
func TestExportOfABucketMadeAnew(t *testing.T) {
	onBothKinds(t, []Export{photos}, func(t *testing.T, s *site) {
		h := s.hand(t)
		h.mkdir("/", "photos")
		h.mkdir("/", "other")
		old := s.mount("/photos", 0)
		st, _, _ := old.lookup(old.root, "..")
		old.must("..", st)
		h.rmdir("photos")
		st, _ = old.getattr(old.root)
		old.want("the root of what is gone", st, ErrStale)
		h.mkdir("/", "photos")
		h.mkdir("/photos", "in")
		st, _ = old.getattr(old.root)
		old.want("the root of what was there before", st, ErrStale)
		c := s.mount("/photos", 0)
		_, in, _ := c.lookup(c.root, "in")
		for at, way := in, 0; way < 3; way++ {
			st, up, _ := c.lookup(at, "..")
			if c.must("..", st); string(up) != string(c.root) {
				t.Errorf("step %d up leads to %x, the root is %x", way+1, up, c.root)
			}
			at = up
		}
		st, list, _ := c.readdir(c.root, 0, 4096, true)
		if c.must("READDIRPLUS", st); string(list[1].fh) != string(c.root) || list[1].fileid != list[0].fileid {
			t.Errorf("the root's .. is %+v", list[1])
		}
	})
}

// TestExportMadeAnewWhileUsed: a mount in which a program has the old directory does not
// keep it as the export's.
func TestExportMadeAnewWhileUsed(t *testing.T) {
	onBothKinds(t, []Export{photos}, func(t *testing.T, s *site) {
		h, ctx := s.hand(t), context.Background()
		h.mkdir("/", "photos")
		mount := s.fs.NewHolder()
		t.Cleanup(mount.Close)
		if err := mount.Hold(ctx, h.ino("/photos"), 1, mount.Mark()); err != nil {
			t.Fatal(err)
		}
		c := s.mount("/photos", 0)
		stale := func(what string) {
			t.Helper()
			st, _, _ := c.lookup(c.root, "x")
			c.want("LOOKUP: "+what, st, ErrStale)
			st, _, _ = c.readdir(c.root, 0, 4096, false)
			c.want("READDIR: "+what, st, ErrStale)
			c.want("RENAME: "+what, c.rename(c.root, "x", c.root, "y"), ErrStale)
		}
		st, _, _ := c.lookup(c.root, "..")
		c.must("..", st)
		h.rmdir("photos")
		stale("the root of what is gone")
		h.mkdir("/", "photos")
		stale("the root of what was there before")
		isStale := func() bool { st, _ := c.getattr(c.root); return st == ErrStale }
		if s.fs.Exclusive() && !isStale() {
			t.Error("it is the export's root still")
		}
		eventually(t, "beside others it is not after a second", isStale)
	})
}

// TestHandlesOfWhatIsMovedOut are stale in the export, and good again when it
// comes back; those of the whole are good all the time.
func TestHandlesOfWhatIsMovedOut(t *testing.T) {
	onBothKinds(t, []Export{photos, everyone}, handlesOfWhatIsMovedOut)
}

func handlesOfWhatIsMovedOut(t *testing.T, s *site) {
	h := s.hand(t)
	for _, name := range []string{"photos", "other"} {
		h.mkdir("/", name)
	}
	h.mkdir("/photos", "in")
	h.mkdir("/photos/in", "deep")
	c, whole := s.mount("/photos", 0), s.mount("/", 0)
	_, in, _ := c.lookup(c.root, "in")
	_, deep, _ := c.lookup(in, "deep")
	_, file, _ := c.create(deep, "file", createGuarded, set{})
	_, linked, _ := c.create(deep, "linked", createGuarded, set{})
	_, other, _ := whole.lookup(whole.root, "other")
	check := func(what string, want map[string]Status) {
		t.Helper()
		for range 2 { // looked up, and from memory
			for name, fh := range map[string][]byte{"in": in, "deep": deep, "file": file, "linked": linked} {
				st, _ := c.getattr(fh)
				c.want(what+": GETATTR of "+name, st, want[name])
				st, _ = c.access(fh, accessRead)
				c.want(what+": ACCESS of "+name, st, want[name])
			}
		}
	}
	check("as made", nil)
	h.rename("/photos", "in", "/other", "in")
	out := map[string]Status{"in": ErrStale, "deep": ErrStale, "file": ErrStale, "linked": ErrStale}
	check("the directory moved out", out)
	for name, st := range map[string]Status{
		"READ":    first(c.read(file, 0, 10)),
		"WRITE":   statusOfWrite(c.write(file, 0, fileSync, []byte("x"))),
		"CREATE":  first(c.create(deep, "new", createGuarded, set{})),
		"LOOKUP":  first(c.lookup(deep, "..")),
		"READDIR": first(c.readdir(deep, 0, 4096, true)),
		"LINK in": c.link(file, c.root, "stolen"),
		"RENAME":  c.rename(deep, "file", c.root, "stolen"),
		"REMOVE":  c.unlink(procRemove, deep, "file"),
	} {
		c.want(name+" of what moved out", st, ErrStale)
	}
	c.want("RENAME between exports", c.rename(c.root, "x", other, "x"), ErrXDev)
	h.rename("/other", "in", "/photos", "in")
	check("back again", nil)
	h.rename("/photos/in/deep", "file", "/other", "file")
	check("the file moved out", map[string]Status{"file": ErrStale})
	if _, err := s.fs.Link(context.Background(), vfs.Root, h.ino("/photos/in/deep/linked"), h.ino("/other"), "second"); err != nil {
		t.Fatal(err)
	}
	check("a second link outside", map[string]Status{"file": ErrStale})
	h.rename("/photos/in/deep", "linked", "/other", "first")
	check("both links outside", map[string]Status{"file": ErrStale, "linked": ErrStale})
	h.rename("/other", "second", "/photos", "second")
	check("one of them inside", map[string]Status{"file": ErrStale})
	if err := s.fs.Unlink(context.Background(), vfs.Root, h.ino("/photos"), "second"); err != nil {
		t.Fatal(err)
	}
	check("that one removed", map[string]Status{"file": ErrStale, "linked": ErrStale})
	h.rename("/", "photos", "/", "renamed")
	for _, fh := range [][]byte{c.root, in, deep} {
		st, _ := c.getattr(fh)
		c.want("the export's directory has another name", st, ErrStale)
	}
	st, _ := c.mnt("/photos")
	c.want("mounting it", Status(st), ErrNoEnt)
}

func statusOfWrite[T any](st Status, _ T) Status { return st }

// joined returns c for a process that uses it beside others.
func joined(t *testing.T, c *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	c, err := vfs.Join(context.Background(), c, vfs.Gateway{Host: "test", PID: 1, Beside: true, Serves: true}, testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// borrowed is an engine that somebody else closes.
type borrowed struct{ cluster.KV }

func (borrowed) Close() error { return nil }

// TestMovedByAnotherProcess: it is noticed within the time in which doors may
// be behind others' changes.
func TestMovedByAnotherProcess(t *testing.T) {
	disk := mem.NewDisk()
	one := mem.New(mem.Options{Disk: disk})
	s := openSiteOver(t, disk, joined(t, one), vfs.Config{}, photos)
	left := joined(t, &cluster.Cluster{KV: borrowed{one.KV}, Blobs: one.Blobs})
	t.Cleanup(func() { _ = left.KV.Close() })
	other, err := vfs.Open(context.Background(), left, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	h := hand{t, other}
	h.mkdir("/", "photos")
	h.mkdir("/photos", "in")
	c := s.mount("/photos", 0)
	_, in, _ := c.lookup(c.root, "in")
	st, _ := c.getattr(in)
	c.must("before", st)
	h.rename("/photos", "in", "/", "out")
	eventually(t, "what another process moved out is stale", func() bool {
		st, _ := c.getattr(in)
		return st == ErrStale
	})
}

// TestUnlockOfWhatIsMovedOut: what a client holds it can give up wherever the
// file is now, and it learns nothing of others' locks there.
func TestUnlockOfWhatIsMovedOut(t *testing.T) {
	a := newLocker(t, "127.0.0.2", 0)
	s := lockSite(t, mem.NewDisk(), a.port, 0, everyone, photos)
	h := s.hand(t)
	h.mkdir("/", "photos")
	a.at(s)
	c := s.mount("/photos", 0)
	_, fh, _ := c.create(c.root, "f", createGuarded, set{})
	a.want("inside", isGranted, ask{proc: nlmLock, svid: 1, length: 10, fh: fh})
	h.rename("/photos", "f", "/", "out")
	a.want("LOCK", isStale, ask{proc: nlmLock, svid: 1, start: 20, length: 10, fh: fh})
	a.want("TEST", isStale, ask{proc: nlmTest, svid: 2, length: 10, fh: fh})
	a.want("UNLOCK", isGranted, ask{proc: nlmUnlock, svid: 1, length: 10, fh: fh})
	if n := s.fs.Locks().Count(); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}
