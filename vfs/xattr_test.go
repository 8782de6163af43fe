package vfs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestXattrs(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustFile(t, fs, RootIno, "f")
		set := func(name, value string, flags XattrFlags) error {
			return fs.SetXattr(bg, Root, f, Xattr{Name: name, Value: []byte(value)}, flags)
		}
		_, err := fs.GetXattr(bg, Root, f, "user.a")
		want(t, err, ErrNoAttr)
		want(t, set("user.a", "1", XattrReplace), ErrNoAttr)
		want(t, set("user.a", "1", XattrCreate), nil)
		want(t, set("user.a", "2", XattrCreate), ErrExist)
		want(t, set("user.a", "", XattrReplace), nil)
		v, err := fs.GetXattr(bg, Root, f, "user.a")
		if err != nil || v == nil || len(v) != 0 {
			t.Errorf("an empty value reads %v, %v", v, err)
		}
		want(t, set("trusted.t", "1", 0), nil)
		want(t, set("security.s", "1", 0), nil)
		want(t, set("system.other", "1", 0), ErrNotSupported)
		want(t, set("nothing", "1", 0), ErrNotSupported)
		want(t, set("user.", "1", 0), ErrInvalid)
		want(t, set("user."+strings.Repeat("n", 251), "1", 0), ErrRange)
		want(t, set("user.big", strings.Repeat("v", MaxXattrValueBytes+1), 0), ErrAttrTooLarge)
		want(t, set("ogw.key", "x", 0), ErrPerm)
		big := strings.Repeat("v", MaxXattrValueBytes)
		want(t, set("user.big", big, 0), nil)
		if v, err := fs.GetXattr(bg, Root, f, "user.big"); err != nil || !bytes.Equal(v, []byte(big)) {
			t.Errorf("big value: %d bytes, %v", len(v), err)
		}
		list, err := fs.ListXattr(bg, Root, f)
		if w := []string{"security.s", "trusted.t", "user.a", "user.big"}; err != nil || !slices.Equal(list, w) {
			t.Errorf("names %q, %v", list, err)
		}
		list, err = fs.ListXattr(bg, cred(10, 20), f)
		if w := []string{"security.s", "user.a", "user.big"}; err != nil || !slices.Equal(list, w) {
			t.Errorf("a user sees %q, %v", list, err)
		}
		want(t, fs.RemoveXattr(bg, Root, f, "user.a"), nil)
		want(t, fs.RemoveXattr(bg, Root, f, "user.a"), ErrNoAttr)
		if v, err := fs.GetXattr(bg, Root, f, "ogw.key"); err != nil || string(v) != "f" {
			t.Errorf("ogw.key is %q, %v", v, err)
		}
		want(t, fs.Unlink(bg, Root, RootIno, "f"), nil)
		noLeftovers(t, fs)
	})
}

func TestXattrRights(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustFile(t, fs, RootIno, "f")
		d := mustMkdir(t, fs, RootIno, "d")
		l, err := fs.Symlink(bg, Root, RootIno, "l", "f")
		want(t, err, nil)
		user := cred(10, 20)
		_, err = fs.SetAttr(bg, Root, f, SetAttr{Mode: ptr(uint32(0o602))})
		want(t, err, nil)
		_, err = fs.SetAttr(bg, Root, d, SetAttr{Mode: ptr(uint32(0o1777))})
		want(t, err, nil)
		want(t, fs.SetXattr(bg, user, f, Xattr{Name: "user.a"}, 0), nil)
		_, err = fs.GetXattr(bg, user, f, "user.a")
		want(t, err, ErrAccess)
		want(t, fs.SetXattr(bg, user, d, Xattr{Name: "user.a"}, 0), ErrPerm) // sticky, not the owner
		want(t, fs.SetXattr(bg, user, f, Xattr{Name: "trusted.a"}, 0), ErrPerm)
		want(t, fs.SetXattr(bg, user, f, Xattr{Name: "security.a"}, 0), ErrPerm)
		want(t, fs.SetXattr(bg, Root, f, Xattr{Name: "trusted.a"}, 0), nil)
		_, err = fs.GetXattr(bg, user, f, "trusted.a")
		want(t, err, ErrNoAttr)
		want(t, fs.SetXattr(bg, Root, l.Ino, Xattr{Name: "user.a"}, 0), ErrPerm)
		want(t, fs.SetXattr(bg, Root, l.Ino, Xattr{Name: "trusted.a"}, 0), nil)
	})
}

// An engine with small transactions bounds the attributes so that the file
// can still be removed.
func TestManyXattrs(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustFile(t, fs, RootIno, "f")
		var err error
		n := 0
		for ; n < 200 && err == nil; n++ {
			err = fs.SetXattr(bg, Root, f, Xattr{Name: fmt.Sprintf("user.%d", n)}, 0)
		}
		if fs.kv.Limits().Ops > 0 {
			want(t, err, ErrNoSpace)
		} else {
			want(t, err, nil)
		}
		want(t, fs.Unlink(bg, Root, RootIno, "f"), nil)
		noLeftovers(t, fs)
	})
}

// User metadata is bounded as the attributes are that it is, so that the object can be
// replaced, copied and removed.
func TestManyUserMeta(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		name := ObjectName{"bucket", "a/b/c/o"}
		most := fs.kv.Limits().Ops / 3
		if most == 0 {
			most = 200
		}
		putMany := func(n int, value string) error {
			user := make(map[string]string)
			for i := range n {
				user[fmt.Sprint(i)] = value
			}
			_, err := fs.PutObject(bg, name, strings.NewReader("x"), PutOptions{Size: 1, Meta: ObjectMeta{User: user}})
			return err
		}
		over := error(nil)
		if fs.kv.Limits().Ops > 0 {
			over = ErrAttrTooLarge
		}
		want(t, putMany(most+1, "v"), over)
		want(t, putMany(most, "v"), nil)
		want(t, putMany(most, "other"), nil)
		_, err := fs.CopyObject(bg, name, ObjectName{"bucket", "copy"}, CopyOptions{})
		want(t, err, nil)
		info, err := fs.HeadObject(bg, ObjectName{"bucket", "copy"}, GetOptions{})
		if want(t, err, nil); len(info.Meta.User) != most {
			t.Errorf("the copy has %d", len(info.Meta.User))
		}
		want(t, fs.SetXattr(bg, Root, info.Ino, Xattr{Name: "user.more"}, 0), map[bool]error{true: ErrNoSpace}[over != nil])
		want(t, putMany(1, "v"), nil)
		at, err := fs.HeadObject(bg, name, GetOptions{})
		want(t, err, nil)
		want(t, fs.SetXattr(bg, Root, at.Ino, Xattr{Name: "trusted.a"}, 0), nil)
		want(t, putMany(most, "v"), over)
		want(t, putMany(most-1, "v"), nil)
		for _, key := range []string{"copy", name.Key} {
			_, err := fs.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
			want(t, err, nil)
		}
		want(t, fs.DeleteBucket(bg, "bucket"), nil)
		noLeftovers(t, fs)
	})
}

// All attributes of an inode have a bound in bytes, and HeadObject a smaller one; a copy
// takes all.
func TestXattrBytes(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		ino := put(t, fs, "k", "x").Ino
		set := func(i, size int) error {
			return fs.SetXattr(bg, Root, ino, Xattr{Name: fmt.Sprintf("user.%02d", i), Value: make([]byte, size)}, 0)
		}
		const most = 16
		for i := range most {
			want(t, set(i, MaxXattrValueBytes), nil)
		}
		want(t, set(most, 1), ErrNoSpace)
		want(t, set(0, 1), nil)
		want(t, set(most, MaxXattrValueBytes), ErrNoSpace)
		want(t, set(most, MaxXattrValueBytes-1), nil)
		want(t, set(0, 2), ErrNoSpace)
		want(t, set(0, 1), nil)
		_, err := fs.CopyObject(bg, ObjectName{"bucket", "k"}, ObjectName{"bucket", "copy"}, CopyOptions{})
		want(t, err, nil)
		info, err := fs.HeadObject(bg, ObjectName{"bucket", "copy"}, GetOptions{})
		want(t, err, nil)
		if list, err := fs.ListXattr(bg, Root, info.Ino); err != nil || len(list) != most+1 {
			t.Errorf("the copy has %d, %v", len(list), err)
		}
		if len(info.Meta.User) != 2 || info.MissingUser != most-1 {
			t.Errorf("%d of the user metadata are shown, %d are missing", len(info.Meta.User), info.MissingUser)
		}
	})
}

func TestVirtualXattrs(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		text := strings.Repeat("x", fs.cfg.InlineBytes+1)
		put, err := fs.PutObject(bg, ObjectName{"bucket", "a//o"}, strings.NewReader(text), PutOptions{Size: -1})
		want(t, err, nil)
		small := mustFile(t, fs, b, "small")
		for _, c := range []struct {
			ino   Ino
			name  string
			match func(string) bool
		}{
			{put.Ino, "ogw.key", func(s string) bool { return s == "bucket/a//o" }},
			{put.Ino, "ogw.etag", func(s string) bool { return s == string(put.ETag) }},
			{put.Ino, "ogw.whereis", func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("0+%d blob ", len(text))) }},
			{b, "ogw.key", func(s string) bool { return s == "bucket/" }},
			{small, "ogw.whereis", func(s string) bool { return s == "" }},
			{small, "ogw.etag", func(s string) bool { return strings.Contains(s, "-") }},
		} {
			v, err := fs.GetXattr(bg, cred(10, 10), c.ino, c.name)
			if err != nil || !c.match(string(v)) {
				t.Errorf("%s is %q, %v", c.name, v, err)
			}
		}
		_, err = fs.GetXattr(bg, Root, small, "ogw.none")
		want(t, err, ErrNoAttr)
		list, err := fs.ListXattr(bg, Root, put.Ino)
		if err != nil || len(list) != 0 {
			t.Errorf("names %q, %v", list, err)
		}
	})
}
