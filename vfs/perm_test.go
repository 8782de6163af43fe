package vfs

import (
	"testing"

	"ogw/vfs/internal/posixacl"
)

func ptr[T any](v T) *T { return &v }

func cred(uid, gid uint32, groups ...uint32) *Cred { return NewCred(uid, gid, groups...) }

func TestAccess(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustFile(t, fs, RootIno, "f")
		d := mustMkdir(t, fs, RootIno, "d")
		for _, c := range []struct {
			mode  uint32
			cred  *Cred
			allow uint32
		}{
			{0o640, cred(10, 20), AccessRead | AccessWrite},
			{0o640, cred(11, 20), AccessRead},
			{0o640, cred(11, 21, 19, 20), AccessRead},
			{0o640, cred(11, 21), 0},
			{0o077, cred(10, 20), 0}, // the owner's bits count for the owner
			{0o707, cred(11, 20), 0},
			{0o003, cred(11, 21), AccessWrite | AccessExec},
			{0o000, cred(0, 0), AccessRead | AccessWrite},
			{0o010, cred(0, 0), AccessRead | AccessWrite | AccessExec},
			{0o000, CheckedCred(11, 0), AccessRead | AccessWrite | AccessExec},
		} {
			_, err := fs.SetAttr(bg, Root, f, SetAttr{Mode: ptr(c.mode), UID: ptr(uint32(10)), GID: ptr(uint32(20)), KeepSetID: true})
			want(t, err, nil)
			for _, bit := range []uint32{AccessRead, AccessWrite, AccessExec} {
				err := fs.Access(bg, c.cred, f, bit)
				if (err == nil) != (c.allow&bit != 0) {
					t.Errorf("mode %o, %+v, access %d: %v", c.mode, c.cred, bit, err)
				}
			}
		}
		_, err := fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(uint32(0))})
		want(t, err, nil)
		want(t, fs.Access(bg, Root, d, AccessExec), nil)
	})
}

func TestDirectoryRights(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "d")
		mustFile(t, fs, d, "f")
		user := cred(10, 20)
		mode := func(m uint32) {
			_, err := fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(m)})
			want(t, err, nil)
		}
		lookup := func() error { _, err := fs.Lookup(bg, user, d, "f"); return err }
		create := func(name string) error {
			_, _, _, err := fs.Create(bg, user, d, name, CreateOptions{NoOpen: true, Exclusive: true})
			return err
		}
		list := func() error {
			return fs.ReadDir(bg, user, d, ReadDirOptions{Attrs: true}, func(DirEntry) error { return nil })
		}
		mode(0o700)
		want(t, lookup(), ErrAccess)
		want(t, list(), ErrAccess)
		want(t, create("f"), ErrAccess) // not ErrExist: that would reveal it
		mode(0o704)
		want(t, lookup(), ErrAccess)
		want(t, list(), nil)
		mode(0o701)
		want(t, lookup(), nil)
		want(t, list(), ErrAccess)
		want(t, create("f"), ErrExist)
		want(t, create("g"), ErrAccess)
		want(t, fs.Unlink(bg, user, d, "f"), ErrAccess)
		want(t, fs.Unlink(bg, user, d, "none"), ErrNotExist)
		want(t, fs.Rename(bg, user, EntryName{d, "f"}, EntryName{d, "h"}, 0), ErrAccess)
		mode(0o703)
		want(t, create("g"), nil)
		want(t, fs.Rename(bg, user, EntryName{d, "f"}, EntryName{d, "h"}, 0), nil)
		want(t, fs.Unlink(bg, user, d, "h"), nil)
		if a := mustLookup(t, fs, d, "g"); a.UID != 10 || a.GID != 20 {
			t.Errorf("owner %d:%d", a.UID, a.GID)
		}
		// A directory that changes its parent is written to.
		sub := mustMkdir(t, fs, d, "sub")
		e := mustMkdir(t, fs, RootIno, "e")
		_, err := fs.SetAttr(bg, Root, e, SetAttr{Mode: ptr(uint32(0o777))})
		want(t, err, nil)
		want(t, fs.Rename(bg, user, EntryName{d, "sub"}, EntryName{e, "sub"}, 0), ErrAccess)
		want(t, fs.Rename(bg, user, EntryName{d, "sub"}, EntryName{d, "sub2"}, 0), nil)
		_, err = fs.SetAttr(bg, Root, sub, SetAttr{Mode: ptr(uint32(0o777))})
		want(t, err, nil)
		want(t, fs.Rename(bg, user, EntryName{d, "sub2"}, EntryName{e, "sub"}, 0), nil)
	})
}

// TestListingWithoutSearch: who may read a directory and not search it is given names, as
// by Lookup no attributes, in all pages.
func TestListingWithoutSearch(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "d")
		for _, name := range []string{"a", "b", "c"} {
			mustFile(t, fs, d, name)
		}
		list := func(c *Cred) (names, attrs int) {
			t.Helper()
			count := func(e *DirEntry) error {
				if names++; e.Attr != nil {
					attrs++
				}
				return nil
			}
			want(t, fs.ReadDir(bg, c, d, ReadDirOptions{Attrs: true, Few: 1}, func(e DirEntry) error { return count(&e) }), nil)
			want(t, fs.OpenDirStream(d).Read(bg, c, ReadDirOptions{Attrs: true}, count), nil)
			return names, attrs
		}
		check := func(what string, c *Cred, want int) {
			t.Helper()
			if names, attrs := list(c); names != 6 || attrs != want {
				t.Errorf("%s: %d names, %d with attributes, want %d", what, names, attrs, want)
			}
		}
		user, named := cred(10, 20), cred(11, 21)
		_, err := fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(uint32(0o744)), UID: ptr(uint32(12))})
		want(t, err, nil)
		check("mode 744", user, 0)
		check("its owner", cred(12, 20), 6)
		check("root", Root, 6)
		check("who checked", CheckedCred(10, 20), 6)
		value := aclOf(0o755, 7, ace(posixacl.User, 4, 10), ace(posixacl.User, 5, 11))
		want(t, fs.SetXattr(bg, Root, d, Xattr{Name: posixacl.XattrAccess, Value: value}, 0), nil)
		check("an ACL that lets read", user, 0)
		check("an ACL that lets search", named, 6)
	})
}

func TestStickyDirectory(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "tmp")
		_, err := fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(uint32(0o1777)), UID: ptr(uint32(30))})
		want(t, err, nil)
		a, b := cred(10, 10), cred(11, 11)
		for _, name := range []string{"x", "y"} {
			_, _, _, err := fs.Create(bg, a, d, name, CreateOptions{NoOpen: true, Mode: 0o666})
			want(t, err, nil)
		}
		_, _, _, err = fs.Create(bg, b, d, "mine", CreateOptions{NoOpen: true, Mode: 0o666})
		want(t, err, nil)
		want(t, fs.Unlink(bg, b, d, "x"), ErrPerm)
		want(t, fs.Rename(bg, b, EntryName{d, "x"}, EntryName{d, "z"}, 0), ErrPerm)
		want(t, fs.Rename(bg, b, EntryName{d, "mine"}, EntryName{d, "x"}, 0), ErrPerm)
		want(t, fs.Unlink(bg, cred(30, 30), d, "y"), nil) // the directory's owner
		want(t, fs.Unlink(bg, a, d, "x"), nil)            // the file's owner
		_, err = fs.Mkdir(bg, a, d, "dir", 0o777)
		want(t, err, nil)
		want(t, fs.Rmdir(bg, b, d, "dir"), ErrPerm)
		want(t, fs.Rmdir(bg, Root, d, "dir"), nil)
	})
}

func TestSetgidDirectory(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "d")
		_, err := fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(uint32(0o2777)), GID: ptr(uint32(77))})
		want(t, err, nil)
		user := cred(10, 20)
		user.Umask = 0o022
		a, _, _, err := fs.Create(bg, user, d, "f", CreateOptions{NoOpen: true, Mode: 0o2775})
		want(t, err, nil)
		if a.GID != 77 || a.Mode&ModePermMask != 0o755 {
			t.Errorf("file: group %d, mode %o", a.GID, a.Mode)
		}
		a, err = fs.Mkdir(bg, user, d, "sub", 0o777)
		want(t, err, nil)
		if a.GID != 77 || a.Mode&ModePermMask != 0o2755 {
			t.Errorf("directory: group %d, mode %o", a.GID, a.Mode)
		}
		member := cred(10, 20, 77)
		a, _, _, err = fs.Create(bg, member, d, "g", CreateOptions{NoOpen: true, Mode: 0o2755})
		want(t, err, nil)
		if a.Mode&ModePermMask != 0o2755 {
			t.Errorf("a member's file: mode %o", a.Mode)
		}
		for c, mode := range map[*Cred]uint32{user: 0o755, member: 0o2775} {
			a, f, err := fs.OpenTemp(bg, c, d, 0o2775, OpenWrite)
			want(t, err, nil)
			if a.GID != 77 || a.Mode&ModePermMask != mode {
				t.Errorf("a file without a name: group %d, mode %o, want %o", a.GID, a.Mode, mode)
			}
			want(t, f.Close(bg), nil)
		}
	})
}

func TestSetAttrRights(t *testing.T) {
	owner, member, other := cred(10, 20), cred(10, 20, 21), cred(11, 20)
	for _, c := range []struct {
		name string
		cred *Cred
		set  SetAttr
		err  error
		mode uint32 // 0: as it was (06754)
	}{
		{"chmod by the owner", owner, SetAttr{Mode: ptr(uint32(0o600))}, nil, 0o600},
		{"chmod by another", other, SetAttr{Mode: ptr(uint32(0o600))}, ErrPerm, 0},
		{"setgid by a member", owner, SetAttr{Mode: ptr(uint32(0o2700))}, nil, 0o2700},
		{"setgid by no member", cred(10, 99), SetAttr{Mode: ptr(uint32(0o2700))}, nil, 0o700},
		{"sticky on a file", owner, SetAttr{Mode: ptr(uint32(0o1700))}, nil, 0o1700},
		{"chown by the owner", owner, SetAttr{UID: ptr(uint32(11))}, ErrPerm, 0},
		{"chown to oneself", owner, SetAttr{UID: ptr(uint32(10))}, nil, 0o754},
		{"chown by the superuser", Root, SetAttr{UID: ptr(uint32(11))}, nil, 0o754},
		{"chown that keeps", Root, SetAttr{UID: ptr(uint32(11)), KeepSetID: true}, nil, 0},
		{"chgrp to a group of one's own", member, SetAttr{GID: ptr(uint32(21))}, nil, 0o754},
		{"chgrp to another group", owner, SetAttr{GID: ptr(uint32(21))}, ErrPerm, 0},
		{"chgrp by another", other, SetAttr{GID: ptr(uint32(20))}, ErrPerm, 0},
		{"times by the owner", owner, SetAttr{Mtime: &Time{Sec: 5}}, nil, 0},
		{"times by another", other, SetAttr{Mtime: &Time{Sec: 5}}, ErrPerm, 0},
		{"now by another", other, SetAttr{MtimeNow: true, AtimeNow: true}, ErrAccess, 0},
		{"now by who may write", CheckedCred(12, 0), SetAttr{MtimeNow: true, AtimeNow: true}, nil, 0},
		{"one now by another", other, SetAttr{MtimeNow: true}, ErrPerm, 0},
		{"setuid off by who may write", CheckedCred(12, 0), SetAttr{DropSetID: ModeSetUID}, nil, 0o2754},
		{"setgid off by the owner, and no other bit", owner, SetAttr{DropSetID: ModeSetGID | 0o777}, nil, 0o4754},
		{"setuid off by another", other, SetAttr{DropSetID: ModeSetUID}, ErrAccess, 0},
		{"guard differs", Root, SetAttr{Mode: ptr(uint32(0)), GuardCtimeNS: ptr(int64(1))}, ErrConflict, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := openTest(t, engines[0].open(t))
			f := mustFile(t, fs, RootIno, "f")
			a, err := fs.SetAttr(bg, Root, f, SetAttr{UID: ptr(uint32(10)), GID: ptr(uint32(20)), Mode: ptr(uint32(0o6754))})
			want(t, err, nil)
			if a.Mode&ModePermMask != 0o6754 {
				t.Fatalf("mode %o", a.Mode)
			}
			_, err = fs.SetAttr(bg, c.cred, f, c.set)
			want(t, err, c.err)
			if c.mode == 0 {
				c.mode = 0o6754
			}
			b, err := fs.GetAttr(bg, f)
			want(t, err, nil)
			if b.Mode&ModePermMask != c.mode {
				t.Errorf("mode %o, want %o", b.Mode&ModePermMask, c.mode)
			}
			if (b.CtimeNS > a.CtimeNS) != (c.err == nil) {
				t.Errorf("ctime %d before, %d after", a.CtimeNS, b.CtimeNS)
			}
		})
	}
}

func TestMknodRights(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		_, err := fs.SetAttr(bg, Root, RootIno, SetAttr{Mode: ptr(uint32(0o777))})
		want(t, err, nil)
		user := cred(10, 20)
		_, err = fs.Mknod(bg, user, RootIno, "dev", NodeOptions{Mode: ModeChar | 0o666, Rdev: 0x103})
		want(t, err, ErrPerm)
		a, err := fs.Mknod(bg, Root, RootIno, "dev", NodeOptions{Mode: ModeChar | 0o666, Rdev: 0x103})
		want(t, err, nil)
		if a.Rdev != 0x103 || a.Mode != ModeChar|0o666 {
			t.Errorf("device %+v", a)
		}
		for _, kind := range []uint32{ModeFIFO, ModeSocket, ModeRegular, 0} {
			_, err := fs.Mknod(bg, user, RootIno, "n", NodeOptions{Mode: kind | 0o600, Rdev: 7})
			want(t, err, nil)
			if a := mustLookup(t, fs, RootIno, "n"); a.Rdev != 0 || a.Mode&ModeTypeMask == 0 {
				t.Errorf("node %+v", a)
			}
			want(t, fs.Unlink(bg, user, RootIno, "n"), nil)
		}
		_, err = fs.Mknod(bg, Root, RootIno, "n", NodeOptions{Mode: ModeDirectory})
		want(t, err, ErrPerm)
		_, err = fs.Mknod(bg, Root, RootIno, "n", NodeOptions{Mode: ModeSymlink})
		want(t, err, ErrInvalid)
		want(t, fs.Unlink(bg, Root, RootIno, "dev"), nil)
		_, err = fs.SetAttr(bg, Root, RootIno, SetAttr{Mode: ptr(uint32(0o755))})
		want(t, err, nil)
		noLeftovers(t, fs)
	})
}
