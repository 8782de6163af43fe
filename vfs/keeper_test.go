package vfs

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// bookKeeper keeps writes as a ledger does.
type bookKeeper struct {
	writes   []*KeptWrite // nil: stored
	reserved int
	over     bool // it was told of more than there was room for
}

func (k *bookKeeper) Reserve(_ context.Context, n int) (done func(), err error) {
	k.reserved += n
	return func() { k.reserved -= n }, nil
}

func (k *bookKeeper) Keep(w *KeptWrite) uint64 {
	k.over = k.over || len(w.Data) > k.reserved
	c := *w
	c.Data = bytes.Clone(w.Data)
	k.writes = append(k.writes, &c)
	return uint64(len(k.writes) - 1)
}

func (k *bookKeeper) Stored(ino Ino, mark uint64) {
	for i, w := range k.writes[:mark+1] {
		if w != nil && w.Ino == ino {
			k.writes[i] = nil
		}
	}
}

func (k *bookKeeper) live() (list []*KeptWrite) {
	for _, w := range k.writes {
		if w != nil {
			list = append(list, w)
		}
	}
	return list
}

func TestKeeper(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	a, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	if err != nil {
		t.Fatal(err)
	}
	k := &bookKeeper{}
	f.KeepWith(k)
	write := func(text string, off int64) {
		t.Helper()
		if _, err := f.WriteAt(bg, []byte(text), off); err != nil {
			t.Fatal(err)
		}
	}
	write("hello", 0)
	write("J", 0)
	if off, err := f.Append(WithWriteTag(bg, 9), []byte(" world")); err != nil || off != 5 {
		t.Fatal(off, err)
	}
	live := k.live()
	if len(live) != 3 || live[2].Off != 5 || live[2].Tag != 9 || live[0].Tag != 0 || live[0].Ino != a.Ino {
		t.Fatalf("kept %+v", live)
	}

	// A process that begins where this one is killed has the bytes.
	again := openBeside(t, c)
	g, err := again.Open(bg, Root, a.Ino, OpenRead|OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range live {
		want(t, g.Rewrite(bg, w), nil)
	}
	b := make([]byte, 20)
	if n, _ := g.ReadAt(bg, b, 0); string(b[:n]) != "Jello world" {
		t.Fatalf("%q", b[:n])
	}
	if err := g.Close(bg); err != nil {
		t.Fatal(err)
	}
}

func TestKeeperStored(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	_, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	if err != nil {
		t.Fatal(err)
	}
	k := &bookKeeper{}
	f.KeepWith(k)
	for range 2 {
		if _, err := f.WriteAt(bg, []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		if len(k.live()) != 1 {
			t.Fatalf("%d writes are kept", len(k.live()))
		}
		if err := fs.Flush(bg, f.Ino()); err != nil {
			t.Fatal(err)
		}
		if len(k.live()) != 0 {
			t.Fatal("kept after it was stored")
		}
	}
	if err := f.Close(bg); err != nil {
		t.Fatal(err)
	}
}

// What was written to a content that was replaced is not written to the next.
func TestKeeperReplaced(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	if err := fs.Flush(bg, 12345); err != nil { // nobody has it open
		t.Fatal(err)
	}
	_, err := fs.CreateBucketWith(bg, "bucket", Root, BucketOptions{})
	want(t, err, nil)
	_, f, _, err := fs.Create(bg, Root, mustLookup(t, fs, RootIno, "bucket").Ino, "f",
		CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	k := &bookKeeper{}
	f.KeepWith(k)
	_, err = f.WriteAt(bg, []byte("old"), 0)
	want(t, err, nil)
	live := k.live()
	if len(live) != 1 {
		t.Fatalf("%d writes are kept", len(live))
	}
	again := openBeside(t, c)
	_, err = again.PutObject(bg, "bucket", "f", strings.NewReader("new content"), PutOptions{Size: 11})
	want(t, err, nil)
	g, err := again.Open(bg, Root, live[0].Ino, OpenWrite)
	want(t, err, nil)
	want(t, g.Rewrite(bg, live[0]), ErrStale)
	want(t, g.Close(bg), nil)
}

// openBeside opens the namespace as a process does whose predecessor was killed.
func openBeside(t *testing.T, c *cluster.Cluster) *FS {
	t.Helper()
	fs, err := Open(bg, c, Config{NoBackground: true})
	want(t, err, nil)
	return fs
}

// Room is reserved for all that is kept, also for copies by way of the buffers.
func TestKeeperReserve(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	_, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	k := &bookKeeper{}
	f.KeepWith(k)
	_, err = f.WriteAt(bg, make([]byte, 9<<20), 0)
	want(t, err, nil)
	_, err = f.Append(bg, []byte("x"))
	want(t, err, nil)
	before := len(k.writes)
	n, err := f.CopyRange(bg, 1<<20, f, 0, 1000)
	if n != 1000 || err != nil || len(k.writes) == before {
		t.Fatalf("%d bytes, %v; %d of it kept", n, err, len(k.writes)-before)
	}
	if k.over || k.reserved != 0 {
		t.Errorf("kept without room: %v; %d bytes stay reserved", k.over, k.reserved)
	}
	want(t, f.Close(bg), nil)
}
