package vfs

import (
	"bytes"
	"testing"

	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

func ace(tag, perm uint16, id uint32) posixacl.Entry {
	return posixacl.Entry{Tag: tag, Perm: perm, ID: id}
}

func makeACL(entries ...posixacl.Entry) []byte { return posixacl.ACL(entries).Encode() }

// base returns the entries of a mode, with a mask, and extra between.
func aclOf(mode uint32, mask uint16, extra ...posixacl.Entry) []byte {
	var users, groups posixacl.ACL
	for _, e := range extra {
		if e.Tag == posixacl.User {
			users = append(users, e)
		} else {
			groups = append(groups, e)
		}
	}
	a := append(posixacl.ACL{ace(posixacl.UserObj, uint16(mode>>6&7), 0)}, users...)
	a = append(append(a, ace(posixacl.GroupObj, uint16(mode>>3&7), 0)), groups...)
	return append(a, ace(posixacl.Mask, mask, 0), ace(posixacl.Other, uint16(mode&7), 0)).Encode()
}

func TestAccessACL(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustFile(t, fs, RootIno, "f")
		_, err := fs.SetAttr(bg, Root, f, SetAttr{UID: ptr(uint32(10)), GID: ptr(uint32(20))})
		want(t, err, nil)
		value := aclOf(0o640, 6, ace(posixacl.User, 6, 11), ace(posixacl.User, 7, 12), ace(posixacl.Group, 2, 30), ace(posixacl.Group, 4, 31))
		want(t, fs.SetXattr(bg, cred(11, 20), f, Xattr{Name: posixacl.XattrAccess, Value: value}, 0), ErrPerm)
		want(t, fs.SetXattr(bg, cred(10, 20), f, Xattr{Name: posixacl.XattrAccess, Value: value}, 0), nil)
		if a, _ := fs.GetAttr(bg, f); a.Mode&0o777 != 0o660 {
			t.Errorf("mode %o: the group bits must be the mask", a.Mode&0o777)
		}
		got, err := fs.GetXattr(bg, Root, f, posixacl.XattrAccess)
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
		want(t, fs.RemoveXattr(bg, Root, f, posixacl.XattrAccess), nil)
		_, err = fs.GetXattr(bg, Root, f, posixacl.XattrAccess)
		want(t, err, ErrNoAttr)
		// One without more than a mode is only a mode.
		min := makeACL(ace(posixacl.UserObj, 7, 0), ace(posixacl.GroupObj, 5, 0), ace(posixacl.Other, 1, 0))
		want(t, fs.SetXattr(bg, Root, f, Xattr{Name: posixacl.XattrAccess, Value: min}, 0), nil)
		if a, _ := fs.GetAttr(bg, f); a.Mode&0o777 != 0o751 {
			t.Errorf("mode %o", a.Mode&0o777)
		}
		_, err = fs.GetXattr(bg, Root, f, posixacl.XattrAccess)
		want(t, err, ErrNoAttr)
	})
}

func TestDefaultACL(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "d")
		f := mustFile(t, fs, d, "before")
		value := aclOf(0o750, 7, ace(posixacl.User, 7, 11))
		want(t, fs.SetXattr(bg, Root, f, Xattr{Name: posixacl.XattrDefault, Value: value}, 0), ErrAccess)
		want(t, fs.SetXattr(bg, Root, d, Xattr{Name: posixacl.XattrDefault, Value: value}, 0), nil)
		user := NewCred(0, 0)
		user.Umask = 0o077
		a, _, _, err := fs.Create(bg, user, d, "f", CreateOptions{NoOpen: true, Mode: 0o664})
		want(t, err, nil)
		if a.Mode&0o777 != 0o660 { // user 6&7, mask 6&7, other 4&0; no umask
			t.Errorf("mode %o", a.Mode&0o777)
		}
		got, err := fs.GetXattr(bg, Root, a.Ino, posixacl.XattrAccess)
		want(t, err, nil)
		if w := aclOf(0o650, 6, ace(posixacl.User, 7, 11)); !bytes.Equal(got, w) {
			t.Errorf("ACL %x, want %x", got, w)
		}
		_, err = fs.GetXattr(bg, Root, a.Ino, posixacl.XattrDefault)
		want(t, err, ErrNoAttr)
		sub, err := fs.Mkdir(bg, user, d, "sub", 0o777)
		want(t, err, nil)
		got, err = fs.GetXattr(bg, Root, sub.Ino, posixacl.XattrDefault)
		want(t, err, nil)
		if !bytes.Equal(got, value) {
			t.Errorf("inherited default ACL %x, want %x", got, value)
		}
		l, err := fs.Symlink(bg, user, d, "l", "f")
		want(t, err, nil)
		if l.Mode&0o777 != 0o777 {
			t.Errorf("symlink mode %o", l.Mode)
		}
		want(t, fs.SetXattr(bg, Root, l.Ino, Xattr{Name: posixacl.XattrAccess, Value: value}, 0), ErrNotSupported)
		temp, file, err := fs.OpenTemp(bg, user, d, 0o664, OpenWrite)
		want(t, err, nil)
		if temp.Mode != a.Mode {
			t.Errorf("mode %o of a file without a name, want %o", temp.Mode, a.Mode)
		}
		got, err = fs.GetXattr(bg, Root, temp.Ino, posixacl.XattrAccess)
		want(t, err, nil)
		if w := aclOf(0o650, 6, ace(posixacl.User, 7, 11)); !bytes.Equal(got, w) {
			t.Errorf("ACL %x of a file without a name, want %x", got, w)
		}
		want(t, file.Close(bg), nil)
		removeAll(t, fs, d)
		want(t, fs.Rmdir(bg, Root, RootIno, "d"), nil)
		noLeftovers(t, fs)
	})
}

func TestBadACL(t *testing.T) {
	good := aclOf(0o750, 7, ace(posixacl.User, 7, 11))
	for _, c := range []struct {
		name string
		b    []byte
		err  error
	}{
		{"good", good, nil},
		{"cut", good[:len(good)-1], ErrInvalid},
		{"version", append([]byte{3}, good[1:]...), ErrNotSupported},
		{"no mask", makeACL(ace(posixacl.UserObj, 7, 0), ace(posixacl.User, 7, 1), ace(posixacl.GroupObj, 5, 0), ace(posixacl.Other, 1, 0)), ErrInvalid},
		{"order", makeACL(ace(posixacl.Other, 7, 0), ace(posixacl.GroupObj, 5, 0), ace(posixacl.UserObj, 1, 0)), ErrInvalid},
		{"twice", makeACL(ace(posixacl.UserObj, 7, 0), ace(posixacl.UserObj, 7, 0), ace(posixacl.GroupObj, 5, 0), ace(posixacl.Other, 1, 0)), ErrInvalid},
		{"no other", makeACL(ace(posixacl.UserObj, 7, 0), ace(posixacl.GroupObj, 5, 0)), ErrInvalid},
		{"bits", makeACL(ace(posixacl.UserObj, 8, 0), ace(posixacl.GroupObj, 5, 0), ace(posixacl.Other, 1, 0)), ErrInvalid},
		{"tag", makeACL(ace(posixacl.UserObj, 7, 0), ace(3, 5, 0), ace(posixacl.GroupObj, 5, 0), ace(posixacl.Other, 1, 0)), ErrInvalid},
	} {
		_, err := posixacl.Parse(c.b)
		if c.err == nil && err != nil || c.err != nil && err == nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}

func FuzzACL(f *testing.F) {
	f.Add(aclOf(0o750, 7, ace(posixacl.User, 7, 11)))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := posixacl.Parse(b)
		if err != nil || a == nil {
			return
		}
		if again, err := posixacl.Parse(a.Encode()); err != nil || again.Mode() != a.Mode() {
			t.Errorf("%x: encoding does not parse: %v", b, err)
		}
		perm.GrantedByACL(a, NewCred(1, 2), &record.Inode{}, 7)
	})
}
