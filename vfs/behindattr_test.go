package vfs

import "testing"

// What is set of a file between its close and the pass stays: rights, owner, times,
// attributes, a second name, and that its directory moved.
func TestSetBeforeStored(t *testing.T) {
	fs, _ := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	d, err := fs.Mkdir(relaxed, Root, b, "dir", 0o755)
	want(t, err, nil)
	ino := mustFile(t, fs, d.Ino, "file")
	closedBehind(t, fs, ino, "text", 0)
	mode, uid, old := uint32(0), uint32(1234), Time{Sec: 1_000_000_000, Nsec: 7}
	_, err = fs.SetAttr(relaxed, Root, ino, SetAttr{UID: &uid})
	want(t, err, nil)
	_, err = fs.SetAttr(relaxed, Root, ino, SetAttr{Mode: &mode})
	want(t, err, nil)
	_, err = fs.SetAttr(relaxed, Root, ino, SetAttr{Atime: &old, Mtime: &old})
	want(t, err, nil)
	want(t, fs.SetXattr(relaxed, Root, ino, Xattr{"user.color", []byte("red")}, 0), nil)
	_, err = fs.Link(relaxed, Root, ino, b, "second")
	want(t, err, nil)
	want(t, fs.Rename(relaxed, Root, EntryName{b, "dir"}, EntryName{b, "moved"}, 0), nil)
	if !fs.hasPieces(ino) {
		t.Error("it is stored already")
	}
	set := map[string]string{"user.color": "red"}
	check := func() {
		t.Helper()
		a, err := fs.GetAttr(bg, ino)
		want(t, err, nil)
		if a.Mode&ModePermMask != 0 || a.UID != uid || a.Mtime != old || a.Atime != old || a.Nlink != 2 || a.Size != 4 {
			t.Errorf("it is %+v", a)
		}
		for name, value := range set {
			if got, err := fs.GetXattr(bg, Root, ino, name); err != nil || string(got) != value {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		if got := readAll(t, fs, ino); len(got) != 4 {
			t.Errorf("it holds %q", got)
		}
	}
	check()
	want(t, fs.StoreClosed(relaxed), nil)
	check()
	closedBehind(t, fs, ino, "more", 0)
	set["security.capability"] = string(append([]byte{1, 0, 0, 2}, make([]byte, 16)...)) // as setcap(8) stores it
	want(t, fs.SetXattr(relaxed, Root, ino, Xattr{"security.capability", []byte(set["security.capability"])}, 0), nil)
	_, err = fs.SetAttr(relaxed, Root, ino, SetAttr{Atime: &old, Mtime: &old})
	want(t, err, nil)
	want(t, fs.StoreClosed(relaxed), nil)
	check()
	if fs.behind.len() != 0 || fs.opened(ino) != nil {
		t.Error("it is open still")
	}
}
