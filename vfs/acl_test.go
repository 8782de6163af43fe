package vfs

import (
	"bytes"
	"testing"

	"ogw/vfs/internal/record"
)

func makeACL(entries ...aclEntry) []byte { return acl(entries).encode() }

// base returns the entries of a mode, with a mask, and extra between.
func aclOf(mode uint32, mask uint16, extra ...aclEntry) []byte {
	var users, groups acl
	for _, e := range extra {
		if e.tag == aclUser {
			users = append(users, e)
		} else {
			groups = append(groups, e)
		}
	}
	a := append(acl{{aclUserObj, uint16(mode >> 6 & 7), 0}}, users...)
	a = append(append(a, aclEntry{aclGroupObj, uint16(mode >> 3 & 7), 0}), groups...)
	return append(a, aclEntry{aclMask, mask, 0}, aclEntry{aclOther, uint16(mode & 7), 0}).encode()
}

func TestAccessACL(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustFile(t, fs, RootIno, "f")
		_, err := fs.SetAttr(bg, Root, f, SetAttr{UID: ptr(uint32(10)), GID: ptr(uint32(20))})
		want(t, err, nil)
		value := aclOf(0o640, 6, aclEntry{aclUser, 6, 11}, aclEntry{aclUser, 7, 12}, aclEntry{aclGroup, 2, 30}, aclEntry{aclGroup, 4, 31})
		want(t, fs.SetXattr(bg, cred(11, 20), f, xattrAccessACL, value, 0), ErrPerm)
		want(t, fs.SetXattr(bg, cred(10, 20), f, xattrAccessACL, value, 0), nil)
		if a, _ := fs.GetAttr(bg, f); a.Mode&0o777 != 0o660 {
			t.Errorf("mode %o: the group bits must be the mask", a.Mode&0o777)
		}
		got, err := fs.GetXattr(bg, Root, f, xattrAccessACL)
		want(t, err, nil)
		if !bytes.Equal(got, value) {
			t.Errorf("ACL %x, want %x", got, value)
		}
		for _, c := range []struct {
			cred  *Cred
			allow uint32
		}{
			{cred(10, 99), AccessRead | AccessWrite},
			{cred(11, 99), AccessRead | AccessWrite},
			{cred(12, 99), AccessRead | AccessWrite}, // 7 under mask 6
			{cred(13, 20), AccessRead},
			{cred(13, 30), AccessWrite},
			{cred(13, 30, 31), AccessRead | AccessWrite}, // each by one of the groups
			{cred(13, 99), 0},
		} {
			for _, bit := range []uint32{AccessRead, AccessWrite, AccessExec} {
				if err := fs.Access(bg, c.cred, f, bit); (err == nil) != (c.allow&bit != 0) {
					t.Errorf("%+v, access %d: %v", c.cred, bit, err)
				}
			}
		}
		// Both at once need one entry that grants both.
		want(t, fs.Access(bg, cred(13, 30, 31), f, AccessRead|AccessWrite), ErrAccess)
		// chmod moves the mask.
		_, err = fs.SetAttr(bg, Root, f, SetAttr{Mode: ptr(uint32(0o600))})
		want(t, err, nil)
		want(t, fs.Access(bg, cred(11, 99), f, AccessRead), ErrAccess)
		// Removing it leaves the mode.
		want(t, fs.RemoveXattr(bg, Root, f, xattrAccessACL), nil)
		_, err = fs.GetXattr(bg, Root, f, xattrAccessACL)
		want(t, err, ErrNoAttr)
		// One without more than a mode is only a mode.
		min := makeACL(aclEntry{aclUserObj, 7, 0}, aclEntry{aclGroupObj, 5, 0}, aclEntry{aclOther, 1, 0})
		want(t, fs.SetXattr(bg, Root, f, xattrAccessACL, min, 0), nil)
		if a, _ := fs.GetAttr(bg, f); a.Mode&0o777 != 0o751 {
			t.Errorf("mode %o", a.Mode&0o777)
		}
		_, err = fs.GetXattr(bg, Root, f, xattrAccessACL)
		want(t, err, ErrNoAttr)
	})
}

func TestDefaultACL(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "d")
		f := mustFile(t, fs, d, "before")
		value := aclOf(0o750, 7, aclEntry{aclUser, 7, 11})
		want(t, fs.SetXattr(bg, Root, f, xattrDefaultACL, value, 0), ErrAccess)
		want(t, fs.SetXattr(bg, Root, d, xattrDefaultACL, value, 0), nil)
		user := &Cred{Umask: 0o077}
		a, _, _, err := fs.Create(bg, user, d, "f", CreateOptions{NoOpen: true, Mode: 0o664})
		want(t, err, nil)
		if a.Mode&0o777 != 0o660 { // user 6&7, mask 6&7, other 4&0; no umask
			t.Errorf("mode %o", a.Mode&0o777)
		}
		got, err := fs.GetXattr(bg, Root, a.Ino, xattrAccessACL)
		want(t, err, nil)
		if w := aclOf(0o650, 6, aclEntry{aclUser, 7, 11}); !bytes.Equal(got, w) {
			t.Errorf("ACL %x, want %x", got, w)
		}
		_, err = fs.GetXattr(bg, Root, a.Ino, xattrDefaultACL)
		want(t, err, ErrNoAttr)
		sub, err := fs.Mkdir(bg, user, d, "sub", 0o777)
		want(t, err, nil)
		got, err = fs.GetXattr(bg, Root, sub.Ino, xattrDefaultACL)
		want(t, err, nil)
		if !bytes.Equal(got, value) {
			t.Errorf("inherited default ACL %x, want %x", got, value)
		}
		l, err := fs.Symlink(bg, user, d, "l", "f")
		want(t, err, nil)
		if l.Mode&0o777 != 0o777 {
			t.Errorf("symlink mode %o", l.Mode)
		}
		want(t, fs.SetXattr(bg, Root, l.Ino, xattrAccessACL, value, 0), ErrNotSupported)
		removeAll(t, fs, d)
		want(t, fs.Rmdir(bg, Root, RootIno, "d"), nil)
		noLeftovers(t, fs)
	})
}

func TestBadACL(t *testing.T) {
	good := aclOf(0o750, 7, aclEntry{aclUser, 7, 11})
	for _, c := range []struct {
		name string
		b    []byte
		err  error
	}{
		{"good", good, nil},
		{"cut", good[:len(good)-1], ErrInvalid},
		{"version", append([]byte{3}, good[1:]...), ErrNotSupported},
		{"no mask", makeACL(aclEntry{aclUserObj, 7, 0}, aclEntry{aclUser, 7, 1}, aclEntry{aclGroupObj, 5, 0}, aclEntry{aclOther, 1, 0}), ErrInvalid},
		{"order", makeACL(aclEntry{aclOther, 7, 0}, aclEntry{aclGroupObj, 5, 0}, aclEntry{aclUserObj, 1, 0}), ErrInvalid},
		{"twice", makeACL(aclEntry{aclUserObj, 7, 0}, aclEntry{aclUserObj, 7, 0}, aclEntry{aclGroupObj, 5, 0}, aclEntry{aclOther, 1, 0}), ErrInvalid},
		{"no other", makeACL(aclEntry{aclUserObj, 7, 0}, aclEntry{aclGroupObj, 5, 0}), ErrInvalid},
		{"bits", makeACL(aclEntry{aclUserObj, 8, 0}, aclEntry{aclGroupObj, 5, 0}, aclEntry{aclOther, 1, 0}), ErrInvalid},
		{"tag", makeACL(aclEntry{aclUserObj, 7, 0}, aclEntry{3, 5, 0}, aclEntry{aclGroupObj, 5, 0}, aclEntry{aclOther, 1, 0}), ErrInvalid},
	} {
		_, err := parseACL(c.b)
		if c.err == nil && err != nil || c.err != nil && err == nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}

func FuzzACL(f *testing.F) {
	f.Add(aclOf(0o750, 7, aclEntry{aclUser, 7, 11}))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseACL(b)
		if err != nil || a == nil {
			return
		}
		if again, err := parseACL(a.encode()); err != nil || again.mode() != a.mode() {
			t.Errorf("%x: encoding does not parse: %v", b, err)
		}
		a.rights(&Cred{UID: 1, GID: 2}, &record.Inode{}, 7)
	})
}
