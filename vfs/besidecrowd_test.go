package vfs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ogw/cluster/mem"
)

// TestBesideManyOpen: a gateway that has more files open, each read once, than it can name to the
// others, does not keep them from removing what was deleted.
func TestBesideManyOpen(t *testing.T) {
	p := &twoGateways{t: t, c: mem.New(mem.Options{})}
	a := bucketFS(t, p.open(beside(t, p.c)))
	b := p.open(beside(t, p.c))
	dir := mustMkdir(t, b, RootIno, "d")
	var files []*File
	for i := range 8300 {
		_, f, _, err := b.Create(bg, Root, dir, fmt.Sprint(i), CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
		want(t, err, nil)
		_, err = f.WriteAt(bg, []byte("x"), 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		_, err = f.ReadAt(bg, make([]byte, 1), 0)
		want(t, err, nil)
		files = append(files, f)
	}
	put(t, a, "key", blobBody)
	_, err := a.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
	want(t, err, nil)
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	_, err = a.Collect(ctx)
	want(t, err, nil)
	if n := countBlobs(t, p.c); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
	for _, f := range files {
		text := make([]byte, 1)
		if _, err := f.ReadAt(bg, text, 0); err != nil || text[0] != 'x' {
			t.Fatalf("a file that is open: %q, %v", text, err)
		}
		want(t, f.Close(bg), nil)
	}
}

// TestBesideRepeats: a request that is sent again is carried out once, though the clock of the
// gateway that it reaches next is an hour ahead, or a server was away for hours.
func TestBesideRepeats(t *testing.T) {
	p := &twoGateways{t: t, c: mem.New(mem.Options{})}
	cfg := besideConfig
	cfg.Now = func() time.Time { return time.Now().Add(12 * time.Hour) }
	a := p.open(beside(t, p.c))
	b, err := Open(bg, beside(t, p.c), cfg)
	want(t, err, nil)
	defer func() { want(t, b.Close(bg), nil) }()
	ino := mustFile(t, a, RootIno, "f")
	repeat := func(fs *FS) error {
		f, err := fs.Open(bg, Root, ino, OpenWrite)
		want(t, err, nil)
		_, err = f.Append(WithToken(bg, &Token{ID: [16]byte{9}}), []byte("line\n"))
		want(t, f.Close(bg), nil)
		return err
	}
	want(t, repeat(a), nil)
	want(t, repeat(b), ErrDone)
	wantFile(t, b, ino, "line\n")
}
