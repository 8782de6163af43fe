package nfsserver

import (
	"testing"

	"ogw/vfs"
)

// File flags hold for clients of NFS, also for writes that are on their way.
func TestFileFlags(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, dir, _ := c.mkdir(c.root, "dir", set{})
	_, f, attr := c.create(dir, "f", createGuarded, set{})
	st, _ := c.write(f, 0, unstable, []byte("text"))
	c.must("write", st)
	flag := func(flags vfs.FileFlags) {
		t.Helper()
		if err := s.fs.SetFlags(t.Context(), vfs.Root, vfs.Ino(attr.fileid), flags); err != nil {
			t.Fatal(err)
		}
	}
	mode, size := uint32(0o600), uint64(1)
	overwrite := func(what string, off uint64, text string, want Status) {
		t.Helper()
		st, _ := c.write(f, off, unstable, []byte(text))
		c.want(what, st, want)
	}
	held := func() {
		t.Helper()
		c.want("chmod", c.setattr(f, set{mode: &mode}, nil), ErrPerm)
		c.want("truncate", c.setattr(f, set{size: &size}, nil), ErrPerm)
		c.want("remove", c.unlink(procRemove, dir, "f"), ErrPerm)
		c.want("rename", c.rename(dir, "f", dir, "g"), ErrPerm)
		c.want("link", c.link(f, dir, "l"), ErrPerm)
		st, _, _ := c.create(dir, "f", createUnchecked, set{size: &size})
		c.want("create over it", st, ErrPerm)
		overwrite("write", 0, "T", ErrPerm)
	}
	flag(vfs.FlagImmutable)
	held()
	overwrite("append", 4, "!", ErrPerm)
	flag(vfs.FlagAppend)
	held()
	overwrite("append", 4, "!", OK)
	overwrite("append with the page before", 0, "text!!", OK)
	flag(0)
	// Without execution by the group, so that it does not go with the bytes.
	c.must("chmod", c.setattr(f, set{mode: ptr(uint32(0o2606))}, nil))
	flag(vfs.FlagAppend)
	other := s.mount("/", 1001)
	other.must("append by another", firstOf(other.write(f, 6, unstable, []byte("?"))))
	if _, a := c.getattr(f); a.mode&0o7777 != 0o606 {
		t.Errorf("mode %o after an append by another", a.mode&0o7777)
	}
	st, got, _ := c.read(f, 0, 100)
	if c.must("read", st); string(got) != "text!!?" {
		t.Errorf("the file holds %q", got)
	}
	// Whoever comes first after a restart reads.
	_, unread, made := c.create(c.root, "unread", createGuarded, set{})
	if err := s.fs.SetFlags(t.Context(), vfs.Root, vfs.Ino(made.fileid), vfs.FlagImmutable); err != nil {
		t.Fatal(err)
	}
	st, _, _ = c.read(unread, 0, 100)
	c.must("read what is immutable", st)
	flag(0)
	c.want("remove", c.unlink(procRemove, dir, "f"), OK)
}

// READ moves the access time, which its own answer shows.
func TestAccessTime(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, f, made := c.create(c.root, "f", createGuarded, set{})
	st, _ := c.write(f, 0, fileSync, []byte("text"))
	c.must("write", st)
	st, _, _ = c.read(f, 0, 100)
	c.must("read", st)
	st, first := c.getattr(f)
	if c.must("getattr", st); first.atime <= made.atime {
		t.Errorf("atime %d, was %d", first.atime, made.atime)
	}
	st, _, _ = c.read(f, 0, 100)
	c.must("read", st)
	if _, again := c.getattr(f); again.atime != first.atime {
		t.Errorf("a second read moves it to %d, was %d", again.atime, first.atime)
	}
}
