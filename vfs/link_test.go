package vfs

import (
	"strings"
	"testing"
)

func TestLinks(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		d := mustMkdir(t, fs, b, "d")
		f := mustFile(t, fs, b, "f")
		link := func(ino, dir Ino, name string) error { _, err := fs.Link(bg, Root, ino, dir, name); return err }
		want(t, link(f, d, "g"), nil)
		want(t, link(f, d, "g"), ErrExist)
		want(t, link(f, b, "."), ErrExist)
		want(t, link(d, b, "h"), ErrPerm)
		want(t, link(f, f, "h"), ErrNotDir)
		want(t, link(f, b, "h"), nil)
		check := func(nlink uint32, key string) {
			t.Helper()
			a, err := fs.GetAttr(bg, f)
			want(t, err, nil)
			k, err := fs.KeyOf(bg, f)
			want(t, err, nil)
			if a.Nlink != nlink || k != key {
				t.Errorf("%d links, key %q; want %d, %q", a.Nlink, k, nlink, key)
			}
		}
		check(3, "bucket/h")
		want(t, fs.Unlink(bg, Root, b, "h"), nil)
		a, err := fs.GetAttr(bg, f)
		want(t, err, nil)
		if a.Nlink != 2 {
			t.Errorf("%d links", a.Nlink)
		}
		want(t, fs.Unlink(bg, Root, b, "f"), nil)
		check(1, "bucket/d/g")
		want(t, fs.Rename(bg, Root, EntryName{d, "g"}, EntryName{b, "k"}, 0), nil)
		check(1, "bucket/k")
		want(t, fs.Rename(bg, Root, EntryName{RootIno, "bucket"}, EntryName{RootIno, "other"}, 0), nil)
		check(1, "other/k")
		want(t, fs.Unlink(bg, Root, b, "k"), nil)
		want(t, link(f, b, "z"), ErrStale)
		want(t, fs.Rmdir(bg, Root, b, "d"), nil)
		want(t, fs.Rmdir(bg, Root, RootIno, "other"), nil)
		noLeftovers(t, fs)
	})
}

// TestLinkRemoved: what nobody can name any more gets no name again, though it is open; what
// never had one gets one.
func TestLinkRemoved(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		link := func(ino Ino, name string) error { _, err := fs.Link(bg, Root, ino, b, name); return err }
		removed := mustOpen(t, fs, mustFile(t, fs, b, "removed"), OpenRead|OpenWrite)
		want(t, fs.Unlink(bg, Root, b, "removed"), nil)
		_, temp, err := fs.OpenTemp(bg, Root, b, 0o644, OpenRead|OpenWrite)
		want(t, err, nil)
		want(t, link(removed.Ino(), "again"), ErrNotExist)
		want(t, link(temp.Ino(), "name"), nil)
		wantNames(t, fs, b, "name")
		want(t, fs.Unlink(bg, Root, b, "name"), nil)
		want(t, link(temp.Ino(), "again"), ErrNotExist)
		want(t, removed.Close(bg), nil)
		want(t, temp.Close(bg), nil)
		want(t, fs.Rmdir(bg, Root, RootIno, "bucket"), nil)
		noLeftovers(t, fs)
	})
}

func TestSymlinks(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		sym := func(name, target string) error { _, err := fs.Symlink(bg, Root, RootIno, name, target); return err }
		want(t, sym("l", ""), ErrNotExist)
		want(t, sym("l", strings.Repeat("x", MaxSymlinkBytes+1)), ErrNameTooLong)
		long := strings.Repeat("x", MaxSymlinkBytes)
		want(t, sym("l", long), nil)
		a := mustLookup(t, fs, RootIno, "l")
		if !a.IsSymlink() || a.Size != MaxSymlinkBytes {
			t.Errorf("attributes %+v", a)
		}
		if s, err := fs.Readlink(bg, a.Ino); err != nil || s != long {
			t.Errorf("target of %d bytes, %v", len(s), err)
		}
		_, err := fs.Readlink(bg, RootIno)
		want(t, err, ErrInvalid)
		_, err = fs.SetAttr(bg, Root, a.Ino, SetAttr{Size: ptr(int64(0))})
		want(t, err, ErrInvalid)
	})
}

func TestResolve(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		d := mustMkdir(t, fs, b, "d")
		f := mustFile(t, fs, d, "f")
		for name, target := range map[string]string{"rel": "d/f", "abs": "/bucket/d", "loop": "loop", "up": "../bucket/./d//"} {
			_, err := fs.Symlink(bg, Root, b, name, target)
			want(t, err, nil)
		}
		for _, c := range []struct {
			path   string
			follow bool
			ino    Ino
			err    error
		}{
			{"", true, RootIno, nil},
			{"/", true, RootIno, nil},
			{"/..", true, RootIno, nil},
			{"bucket/d/f", false, f, nil},
			{"/bucket//d/./../d/f", false, f, nil},
			{"bucket/rel", true, f, nil},
			{"bucket/abs/f", false, f, nil},
			{"bucket/up", true, d, nil},
			{"bucket/abs/", false, d, nil},
			{"bucket/d/f/", false, 0, ErrNotDir},
			{"bucket/d/f/x", false, 0, ErrNotDir},
			{"bucket/none", true, 0, ErrNotExist},
			{"bucket/loop", true, 0, ErrInvalid},
		} {
			a, err := fs.Resolve(bg, Root, c.path, c.follow)
			want(t, err, c.err)
			if a.Ino != c.ino {
				t.Errorf("%q leads to %d, want %d", c.path, a.Ino, c.ino)
			}
		}
		if a, err := fs.Resolve(bg, Root, "bucket/rel", false); err != nil || !a.IsSymlink() {
			t.Errorf("the link itself: %+v, %v", a, err)
		}
		if k, err := fs.KeyOf(bg, d); err != nil || k != "bucket/d/" {
			t.Errorf("key %q, %v", k, err)
		}
		if k, err := fs.KeyOf(bg, RootIno); err != nil || k != "" {
			t.Errorf("key of the root %q, %v", k, err)
		}
	})
}
