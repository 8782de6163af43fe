package vfs

import "testing"

// What replaces bytes that a program cut from an open file is stored by its close.
func TestCutBehindIsStored(t *testing.T) {
	fs, _ := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	put(t, fs, "file", "old")
	ino := mustLookup(t, fs, b, "file").Ino
	size := int64(0)
	f, err := fs.Open(relaxed, Root, ino, OpenWrite)
	want(t, err, nil)
	_, err = fs.SetAttr(relaxed, Root, ino, SetAttr{Size: &size})
	want(t, err, nil)
	_, err = f.WriteAt(relaxed, []byte("new"), 0)
	want(t, err, nil)
	waited := false
	want(t, f.SaveBehind(relaxed, func() { waited = true }), nil)
	if fs.hasPieces(ino) || !waited {
		t.Errorf("in memory alone: %v, told that it waits: %v", fs.hasPieces(ino), waited)
	}
	_, err = f.WriteAt(relaxed, []byte("more"), 3)
	want(t, err, nil)
	want(t, f.SaveBehind(relaxed, func() {}), nil)
	if !fs.hasPieces(ino) {
		t.Error("what replaces nothing is stored by the close")
	}
	want(t, f.CloseBehind(relaxed), nil)
	want(t, fs.StoreClosed(relaxed), nil)
	wantText(t, fs, ino, "newmore")
}

// Two files that change places are both stored before.
func TestExchangedBehindIsStored(t *testing.T) {
	fs, _ := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	one, two := mustFile(t, fs, b, "one"), mustFile(t, fs, b, "two")
	for range 2 {
		closedBehind(t, fs, one, "1", 0)
		closedBehind(t, fs, two, "2", 0)
		want(t, fs.Rename(relaxed, Root, EntryName{b, "one"}, EntryName{b, "two"}, RenameExchange), nil)
		if fs.hasPieces(one) || fs.hasPieces(two) {
			t.Error("one is in memory alone")
		}
	}
	want(t, fs.StoreClosed(relaxed), nil)
	wantText(t, fs, mustLookup(t, fs, b, "one").Ino, "1")
}
