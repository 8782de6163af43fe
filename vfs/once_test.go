package vfs

import (
	"context"
	"testing"

	"ogw/cluster/mem"
)

// TestToken has two processes over one store get the same requests.
func TestToken(t *testing.T) {
	disk := mem.NewDisk()
	first := openTest(t, mem.New(mem.Options{Disk: disk}))
	ctx := context.Background()
	under := func(id byte) context.Context { return WithToken(ctx, &Token{ID: [16]byte{id, id, id}}) }
	do := func(id byte, fs *FS) error {
		_, err := fs.Mkdir(under(id), Root, RootIno, "dir", 0o755)
		return err
	}
	want(t, do(1, first), nil)
	want(t, do(1, first), ErrExist) // the process that answered it remembers by itself
	want(t, do(2, first), ErrExist) // failed: leaves no record
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}

	second := openTest(t, mem.New(mem.Options{Disk: disk}))
	want(t, do(1, second), ErrDone)
	want(t, do(2, second), ErrExist)
	want(t, do(3, second), ErrExist)
	want(t, second.Rmdir(under(4), Root, RootIno, "dir"), nil)
	want(t, do(1, second), ErrDone) // however the directory fares since
	want(t, do(2, second), nil)

	// A token is for one change; what follows in the same context is free.
	both := under(5)
	if _, err := second.Mkdir(both, Root, RootIno, "a", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Mkdir(both, Root, RootIno, "b", 0o755); err != nil {
		t.Fatal(err)
	}
}

// The token is of the change alone, not of the writes before it that are stored
// first.
func TestTokenAfterWrites(t *testing.T) {
	disk := mem.NewDisk()
	ctx := context.Background()
	under := func() context.Context { return WithToken(ctx, &Token{ID: [16]byte{1}}) }
	cut := int64(1)
	other := NewCred(7, 0)
	first := openTest(t, mem.New(mem.Options{Disk: disk}))
	dir := mustMkdir(t, first, RootIno, "dir")
	a, file, _, err := first.Create(ctx, Root, dir, "f", CreateOptions{Mode: 0o644, Flags: OpenWrite})
	want(t, err, nil)
	_, err = file.WriteAt(ctx, []byte("bytes"), 0)
	want(t, err, nil)
	_, err = first.SetAttr(under(), other, a.Ino, SetAttr{Size: &cut})
	want(t, err, ErrAccess)
	want(t, file.Close(ctx), nil)
	want(t, first.Close(ctx), nil)

	second := openTest(t, mem.New(mem.Options{Disk: disk}))
	_, err = second.SetAttr(under(), other, a.Ino, SetAttr{Size: &cut})
	want(t, err, ErrAccess)
	_, err = second.SetAttr(under(), Root, a.Ino, SetAttr{Size: &cut})
	want(t, err, nil)
	want(t, second.Close(ctx), nil)

	third := openTest(t, mem.New(mem.Options{Disk: disk}))
	_, err = third.SetAttr(under(), Root, a.Ino, SetAttr{Size: &cut})
	want(t, err, ErrDone)
}
