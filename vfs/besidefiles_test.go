package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// openFileAt opens a file in the bucket of both gateways at one of them.
func openFileAt(t *testing.T, fs *FS, name string, flags OpenFlags) *File {
	t.Helper()
	f, err := fs.Open(bg, Root, inBucket(t, fs, name), OpenRead|OpenWrite|flags)
	want(t, err, nil)
	return f
}

func bucketIno(t *testing.T, fs *FS) Ino { return mustLookup(t, fs, RootIno, "bucket").Ino }

func inBucket(t *testing.T, fs *FS, name string) Ino {
	t.Helper()
	return mustLookup(t, fs, bucketIno(t, fs), name).Ino
}

func writeThrough(t *testing.T, f *File, text string, off int64) {
	t.Helper()
	_, err := f.WriteAt(bg, []byte(text), off)
	want(t, err, nil)
}

func wantThrough(t *testing.T, f *File, text string) {
	t.Helper()
	got := make([]byte, len(text)+10)
	n, err := f.ReadAt(bg, got, 0)
	if want(t, err, io.EOF); string(got[:n]) != text {
		t.Errorf("the file holds %.40q, %d bytes, want %.40q", got[:n], n, text)
	}
}

// wantNothingLeft collects, and has no inode without links and no blob be left.
func (p *twoGateways) wantNothingLeft() {
	p.t.Helper()
	collect(p.t, p.a)
	n := 0
	want(p.t, p.a.Orphans(bg, func(Ino) error { n++; return nil }), nil)
	if blobs := countBlobs(p.t, p.c); n+blobs > 0 {
		p.t.Errorf("%d inodes without links and %d blobs are left", n, blobs)
	}
	rep, err := p.a.Check(bg, CheckOptions{})
	if want(p.t, err, nil); len(rep.Problems) > 0 {
		p.t.Errorf("check: %+v", rep.Problems)
	}
}

// What one gateway has open, another one that removes its name does not take away: it is
// read and written until it is closed. Who comes later does not find it.
func TestBesideUnlinked(t *testing.T) {
	p := openTwo(t)
	put(t, p.b, "open", blobBody)
	f := openFileAt(t, p.b, "open", 0)
	again := openFileAt(t, p.b, "open", 0)
	want(t, f.Close(bg), nil)
	ino := again.Ino()
	writeThrough(t, again, "unflushed", 0)
	_, err := p.a.DeleteObject(bg, ObjectName{"bucket", "open"}, DeleteOptions{})
	want(t, err, nil)
	collect(t, p.a)
	wantThrough(t, again, "unflushed"+blobBody[len("unflushed"):])
	want(t, again.Sync(bg), nil)
	writeThrough(t, again, "more of it", int64(len(blobBody)))
	want(t, again.Sync(bg), nil)
	collect(t, p.a)
	late, err := p.b.Open(bg, Root, ino, OpenRead) // it is in use there
	want(t, err, nil)
	want(t, again.Close(bg), nil)
	collect(t, p.a)
	wantThrough(t, late, "unflushed"+blobBody[len("unflushed"):]+"more of it")
	a, err := p.b.GetAttr(bg, ino)
	if want(t, err, nil); a.Nlink != 0 {
		t.Errorf("%d links", a.Nlink)
	}
	for range 2 {
		_, err = p.a.Open(bg, Root, ino, OpenRead)
		want(t, err, ErrStale)
		_, err = p.a.GetAttr(bg, ino)
		want(t, err, ErrStale)
	}
	want(t, late.Close(bg), nil)
	_, err = p.b.Open(bg, Root, ino, OpenRead)
	want(t, err, ErrStale)
	p.wantNothingLeft()
}

// So is what DeleteObjects removes, whose small files go without a look at what hangs on them.
func TestBesideDeleteObjects(t *testing.T) {
	p := openTwo(t)
	var files []*File
	var keys []string
	for _, text := range []string{"", "small", "not inline in these"} {
		key := "open" + text
		put(t, p.b, key, text)
		files, keys = append(files, openFileAt(t, p.b, key, 0)), append(keys, key)
	}
	results, err := p.a.DeleteObjects(bg, "bucket", keys)
	want(t, err, nil)
	collect(t, p.a)
	for i, f := range files {
		want(t, results[i].Err, nil)
		a, err := f.Attr(bg)
		if want(t, err, nil); a.Nlink != 0 {
			t.Errorf("%q has %d links", keys[i], a.Nlink)
		}
		wantThrough(t, f, keys[i][len("open"):])
		writeThrough(t, f, "more", 0)
		want(t, f.Sync(bg), nil)
		want(t, f.Close(bg), nil)
	}
	p.wantNothingLeft()
}

// What a door of another gateway holds stays until it is released, and a file without a
// name until it is closed or has one.
func TestBesideHeld(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "held", blobBody)
	h := p.b.NewHolder()
	ino := inBucket(t, p.b, "held")
	want(t, h.Hold(bg, ino, 1, h.Mark()), nil)
	want(t, p.a.Unlink(bg, Root, bucketIno(t, p.a), "held"), nil)
	_, named, err := p.b.OpenTemp(bg, Root, bucketIno(t, p.b), 0o644, OpenRead|OpenWrite)
	want(t, err, nil)
	_, nameless, err := p.b.OpenTemp(bg, Root, bucketIno(t, p.b), 0o644, OpenRead|OpenWrite)
	want(t, err, nil)
	collect(t, p.a)
	_, err = p.b.GetAttr(bg, ino)
	want(t, err, nil)
	again, err := p.b.Open(bg, Root, ino, OpenRead) // by its number
	want(t, err, nil)
	wantThrough(t, again, blobBody)
	want(t, again.Close(bg), nil)
	_, err = p.b.Link(bg, Root, named.Ino(), bucketIno(t, p.b), "named")
	want(t, err, nil)
	writeThrough(t, named, "text", 0)
	writeThrough(t, nameless, "text", 0)
	want(t, errors.Join(named.Close(bg), nameless.Close(bg)), nil)
	h.Release(ino, 1)
	p.wantNothingLeft()
	got, err := readObject(p.a, "bucket", "named")
	if want(t, err, nil); string(got) != "text" {
		t.Errorf("%q", got)
	}
}

// So do directories and links, and what is in a directory that is gone is not found.
func TestBesideHeldOthers(t *testing.T) {
	p := openTwo(t)
	h := p.b.NewHolder()
	bucket := bucketIno(t, p.a)
	mustMkdir(t, p.a, bucket, "dir")
	_, err := p.a.Symlink(bg, Root, bucket, "link", "target")
	want(t, err, nil)
	put(t, p.a, "implied/file", "x")
	dir, link, implied := inBucket(t, p.b, "dir"), inBucket(t, p.b, "link"), inBucket(t, p.b, "implied")
	for _, ino := range []Ino{dir, link, implied} {
		want(t, h.Hold(bg, ino, 1, h.Mark()), nil)
	}
	_, err = p.a.DeleteObject(bg, ObjectName{"bucket", "implied/file"}, DeleteOptions{})
	want(t, errors.Join(err, p.a.Rmdir(bg, Root, bucket, "dir"), p.a.Unlink(bg, Root, bucket, "link")), nil)
	collect(t, p.a)
	for _, ino := range []Ino{dir, link, implied} {
		a, err := p.b.GetAttr(bg, ino)
		if want(t, err, nil); a.Nlink != 0 {
			t.Errorf("%d links", a.Nlink)
		}
		_, err = p.a.GetAttr(bg, ino)
		want(t, err, ErrStale)
	}
	target, err := p.b.Readlink(bg, link)
	if want(t, err, nil); target != "target" {
		t.Errorf("%q", target)
	}
	_, err = p.b.Mkdir(bg, Root, dir, "in it", 0o755)
	want(t, err, ErrNotExist)
	_, err = p.b.Lookup(bg, Root, dir, "in it")
	want(t, err, ErrNotExist)
	h.Close()
	p.wantNothingLeft()
}

// Who holds what another gateway removed, and has it not open, is told, so that it goes.
func TestBesideHeldTold(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "held", blobBody)
	put(t, p.a, "named", "x")
	put(t, p.a, "open", "x")
	h := p.b.NewHolder()
	gone := make(chan Unlinked, 100)
	h.OnUnlinked(func(list []Unlinked) {
		for _, x := range list {
			h.Release(x.Ino, 1)
			gone <- x
		}
	})
	f := openFileAt(t, p.b, "open", 0)
	for _, name := range []string{"held", "named", "open"} {
		want(t, h.Hold(bg, inBucket(t, p.b, name), 1, h.Mark()), nil)
	}
	held, dir := inBucket(t, p.b, "held"), bucketIno(t, p.a)
	want(t, errors.Join(p.a.Unlink(bg, Root, dir, "held"), p.a.Unlink(bg, Root, dir, "open")), nil)
	collect(t, p.a)
	if x := <-gone; x != (Unlinked{Ino: held, Dir: dir, Name: "held"}) {
		t.Errorf("told of %+v", x)
	}
	want(t, f.Close(bg), nil)
	h.Release(f.Ino(), 1)
	want(t, p.a.Unlink(bg, Root, dir, "named"), nil)
	h.Close()
	p.wantNothingLeft()
}

// A kernel remembers more inodes than a gateway can name: those without links stay, and
// others are removed.
func TestBesideManyHeld(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "held", blobBody)
	put(t, p.a, "other", blobBody)
	h := p.b.NewHolder()
	ino := inBucket(t, p.b, "held")
	want(t, h.Hold(bg, ino, 1, h.Mark()), nil)
	for i := range Ino(10_000) { // stands for inodes with links
		want(t, h.Hold(bg, 1<<50+i, 1, h.Mark()), nil)
	}
	dir := bucketIno(t, p.a)
	want(t, errors.Join(p.a.Unlink(bg, Root, dir, "held"), p.a.Unlink(bg, Root, dir, "other")), nil)
	collect(t, p.a)
	n := 0
	want(t, p.a.Orphans(bg, func(Ino) error { n++; return nil }), nil)
	if blobs := countBlobs(t, p.c); n != 1 || blobs != 1 {
		t.Errorf("%d inodes without links and %d blobs are there, want 1 of each", n, blobs)
	}
	f, err := p.b.Open(bg, Root, ino, OpenRead)
	want(t, err, nil)
	wantThrough(t, f, blobBody)
	want(t, f.Close(bg), nil)
	h.Release(ino, 1)
	p.wantNothingLeft()
}

// What was looked up, and is removed at another gateway before it is held, is not held:
// the others may have asked in between who uses it.
func TestBesideHeldLate(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", blobBody)
	h := p.b.NewHolder()
	mark := h.Mark()
	ino := inBucket(t, p.b, "file")
	want(t, p.a.Unlink(bg, Root, bucketIno(t, p.a), "file"), nil)
	_, _ = p.b.session.Open.InUse(1)
	want(t, h.Hold(bg, ino, 1, mark), ErrStale)
	put(t, p.a, "file", "x")
	mark = h.Mark()
	_, _ = p.b.session.Open.InUse(1)
	want(t, h.Hold(bg, inBucket(t, p.b, "file"), 1, mark), nil) // it has a link
	h.Close()
	want(t, p.a.Unlink(bg, Root, bucketIno(t, p.a), "file"), nil)
	p.wantNothingLeft()
}

// What a process had in use that ended, the next one takes up before others remove it,
// however long that takes, if it comes before the other one is put out.
func TestBesideRestored(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", blobBody)
	ino := inBucket(t, p.a, "file")
	want(t, p.a.Unlink(bg, Root, bucketIno(t, p.a), "file"), nil)
	mine := *p.c
	mine.KV, mine.Blobs = borrowed{p.c.KV}, borrowedBlobs{p.c.Blobs}
	j, err := Join(bg, &mine, Gateway{Host: "next", Started: later(), Beside: true, Serves: true, Restores: true}, slog.New(slog.DiscardHandler))
	want(t, err, nil)
	defer func() { want(t, j.Close(), nil) }()
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		collect(t, p.a)
	}()
	cfg := besideConfig
	var h *Holder
	cfg.Restore = func(_ context.Context, fs *FS) error {
		time.Sleep(3 * BeatEvery) // while a collector asks
		h = fs.NewHolder()
		return fs.Orphans(bg, func(ino Ino) error { h.RestoreOrphan(ino, 1); return nil })
	}
	next, err := Open(bg, j, cfg)
	want(t, err, nil)
	<-collected
	f, err := next.Open(bg, Root, ino, OpenRead)
	want(t, err, nil)
	wantThrough(t, f, blobBody)
	want(t, f.Close(bg), nil)
	h.Close()
	p.wantNothingLeft()
	want(t, next.Close(bg), nil)
}

// A file that got a name again after the collector saw it without, and lost it again, is
// another case than the one that the collector asked about.
func TestBesideRelinked(t *testing.T) {
	p := openTwo(t)
	dir := bucketIno(t, p.b)
	_, f, err := p.b.OpenTemp(bg, Root, dir, 0o644, OpenRead|OpenWrite)
	want(t, err, nil)
	var seen []orphan
	seen, _, err = p.a.orphansFrom(bg, []byte{record.TabOrphan})
	if want(t, err, nil); len(seen) != 1 {
		t.Fatalf("%d without links", len(seen))
	}
	_, err = p.b.Link(bg, Root, f.Ino(), dir, "name")
	want(t, err, nil)
	want(t, p.b.Unlink(bg, Root, dir, "name"), nil)
	want(t, p.a.removeOrphans(bg, seen), nil)
	writeThrough(t, f, "text", 0)
	want(t, f.Sync(bg), nil)
	want(t, f.Close(bg), nil)
	p.wantNothingLeft()
}

// Who could open a file goes on using it, whenever another gateway removes it and
// collects.
func TestBesideUnlinkRace(t *testing.T) {
	p := openTwo(t)
	const files = 40
	for i := range files {
		put(t, p.b, string(rune('a'+i)), blobBody)
	}
	dir := bucketIno(t, p.b)
	done := make(chan struct{})
	var users, removers sync.WaitGroup
	for i := range files {
		name := string(rune('a' + i))
		ino := inBucket(t, p.b, name)
		users.Go(func() {
			for round := byte(0); ; round++ {
				f, err := p.b.Open(bg, Root, ino, OpenRead|OpenWrite)
				if errors.Is(err, ErrStale) {
					return
				}
				text := bytes.Repeat([]byte{round}, 20)
				_, e1 := f.WriteAt(bg, text, 0)
				e2 := f.Sync(bg)
				if i%2 == 0 {
					<-done // all the time
				}
				got := make([]byte, 20)
				_, e3 := f.ReadAt(bg, got, 0)
				if err := errors.Join(err, e1, e2, e3, f.Close(bg)); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%q, round %d: %v, read %q", name, round, err, got)
					return
				}
			}
		})
		removers.Go(func() {
			if err := p.a.Unlink(bg, Root, dir, name); err != nil {
				t.Error(err)
			}
		})
	}
	removers.Wait()
	for range 3 {
		_, err := p.a.Collect(bg)
		want(t, err, nil)
	}
	close(done)
	users.Wait()
	p.wantNothingLeft()
}

// Many files that are removed together go together, whatever hangs on them.
func TestBesideManyUnlinked(t *testing.T) {
	p := openTwo(t)
	dir := bucketIno(t, p.a)
	for i := range 20 {
		name := string(rune('a' + i))
		put(t, p.a, name, strings.Repeat("x", i*3))
		for k := range i {
			want(t, p.a.SetXattr(bg, Root, inBucket(t, p.a, name), Xattr{Name: "user." + string(rune('a'+k)), Value: []byte("v")}, 0), nil)
		}
		want(t, p.a.Unlink(bg, Root, dir, name), nil)
	}
	p.wantNothingLeft()
	n := 0
	want(t, p.a.view(bg, func(r cluster.Reader) error {
		from, to := record.Table(record.TabInode)
		n = 0
		return r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(_, _ []byte) error { n++; return nil })
	}), nil)
	if n != 2 {
		t.Errorf("%d inodes, want the root and the bucket", n)
	}
}

// What one gateway acknowledged, the next call at another one shows, also through a file
// that is open there since before, bytes and attributes alike.
func TestBesideFresh(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "first")
	fa, fb := openFileAt(t, p.a, "file", 0), openFileAt(t, p.b, "file", 0)
	ino, dir := fa.Ino(), bucketIno(t, p.b)
	now := func(what, text string, mode uint32) {
		t.Helper()
		wantThrough(t, fb, text)
		viaFile, err := fb.Attr(bg)
		want(t, err, nil)
		viaIno, err := p.b.GetAttr(bg, ino)
		want(t, err, nil)
		viaDir := viaIno
		want(t, p.b.ReadDir(bg, Root, dir, ReadDirOptions{Attrs: true}, func(e DirEntry) error { viaDir = *e.Attr; return nil }), nil)
		for _, a := range []Attr{viaFile, viaIno, viaDir, mustLookup(t, p.b, dir, "file")} {
			if a.Size != int64(len(text)) || a.Mode&0o777 != mode {
				t.Errorf("after %s: %d bytes, mode %o", what, a.Size, a.Mode)
			}
		}
	}
	now("PUT", "first", 0o644)
	text := []byte("first")
	for i := range 20 {
		writeThrough(t, fa, string(rune('a'+i)), int64(i%5))
		want(t, fa.Sync(bg), nil)
		text[i%5] = byte('a' + i)
		now("write", string(text), 0o644)
	}
	writeThrough(t, fa, blobBody, 3)
	want(t, fa.Sync(bg), nil)
	now("a long write", string(text[:3])+blobBody, 0o644)
	size, mode := int64(2), uint32(0o600)
	_, err := p.a.SetAttr(bg, Root, ino, SetAttr{Size: &size})
	want(t, err, nil)
	now("truncation", string(text[:2]), 0o644)
	_, err = p.a.SetAttr(bg, Root, ino, SetAttr{Mode: &mode})
	want(t, err, nil)
	now("chmod", string(text[:2]), 0o600)
	put(t, p.a, "file", "second")
	now("PUT over it", "second", 0o600)
	want(t, p.a.Rename(bg, Root, EntryName{dir, "file"}, EntryName{dir, "other"}, 0), nil)
	_, err = p.b.Lookup(bg, Root, dir, "file")
	want(t, err, ErrNotExist)
	wantNames(t, p.b, dir, "other")
	want(t, p.a.Unlink(bg, Root, dir, "other"), nil)
	wantNames(t, p.b, dir)
	wantThrough(t, fb, "second")
	want(t, errors.Join(fa.Close(bg), fb.Close(bg)), nil)
	p.wantNothingLeft()
}

// What is not stored yet at one gateway is merged into what another one stored meanwhile.
func TestBesideMerge(t *testing.T) {
	p := openTwo(t)
	for _, x := range []struct {
		what  string
		begin string
		other func(f *File)
		want  string
	}{
		{"other ranges", "0123456789", func(f *File) { writeThrough(t, f, "xy", 0) }, "xy2345ab89"},
		{"the same range", "0123456789", func(f *File) { writeThrough(t, f, "xyz", 5) }, "01234xab89"},
		{"a longer file", "0123456789", func(f *File) { writeThrough(t, f, "xyz", 10) }, "012345ab89xyz"},
		{"a long one", blobBody, func(f *File) { writeThrough(t, f, blobBody, 50_000) }, blobBody[:6] + "ab" + blobBody[8:50_000] + blobBody},
		{"a cut before", "0123456789", func(f *File) {
			size := int64(3)
			_, err := p.b.SetAttr(bg, Root, f.Ino(), SetAttr{Size: &size})
			want(t, err, nil)
		}, "012\x00\x00\x00ab"},
		{"a cut behind", "0123456789", func(f *File) {
			size := int64(9)
			_, err := p.b.SetAttr(bg, Root, f.Ino(), SetAttr{Size: &size})
			want(t, err, nil)
		}, "012345ab8"},
	} {
		put(t, p.a, "file", x.begin)
		fa, fb := openFileAt(t, p.a, "file", 0), openFileAt(t, p.b, "file", 0)
		writeThrough(t, fa, "ab", 6)
		unflushed, err := fa.Attr(bg)
		want(t, err, nil)
		x.other(fb)
		want(t, fb.Sync(bg), nil)
		before, err := p.b.GetAttr(bg, fb.Ino())
		want(t, err, nil)
		wantThrough(t, fa, x.want)
		want(t, fa.Sync(bg), nil)
		t.Log(x.what)
		wantThrough(t, fa, x.want)
		wantThrough(t, fb, x.want)
		after, err := p.b.GetAttr(bg, fb.Ino())
		if want(t, err, nil); after.Mtime == before.Mtime || after.CtimeNS <= before.CtimeNS || after.Mtime == unflushed.Mtime {
			t.Errorf("%s: times %v and %v, then %v: who has the bytes of before keeps them", x.what, before.Mtime, unflushed.Mtime, after.Mtime)
		}
		want(t, errors.Join(fa.Close(bg), fb.Close(bg)), nil)
	}
}

// What was written to a content that another gateway replaced is dropped, and the writers
// learn of it; who opens the file then writes to the new one.
func TestBesideReplaced(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "file", "0123456789")
	f := openFileAt(t, p.a, "file", 0)
	writeThrough(t, f, "ab", 6)
	put(t, p.b, "file", "another one")
	losses := p.a.Losses()
	want(t, f.Sync(bg), ErrStale)
	if p.a.Losses() == losses {
		t.Error("the loss is not counted")
	}
	_, err := f.WriteAt(bg, []byte("x"), 0)
	want(t, err, ErrStale)
	g := openFileAt(t, p.a, "file", 0)
	writeThrough(t, g, "A", 0)
	want(t, errors.Join(g.Sync(bg), g.Close(bg)), nil)
	_ = f.Close(bg)
	if text, _ := get(t, p.b, "file"); text != "Another one" {
		t.Errorf("%q", text)
	}
	// One that only read goes on with the new one.
	g = openFileAt(t, p.b, "file", 0)
	put(t, p.a, "file", "third")
	wantThrough(t, g, "third")
	writeThrough(t, g, "T", 0)
	want(t, errors.Join(g.Sync(bg), g.Close(bg)), nil)
	if text, _ := get(t, p.a, "file"); text != "Third" {
		t.Errorf("%q", text)
	}
}

// Writers at both gateways, each to a range of its own: what one synced, it finds at the
// other gateway, whatever the others write and how they cut the file.
func TestBesideWriters(t *testing.T) {
	p := openTwo(t)
	const writers, slot, rounds = 4, 30, 60
	put(t, p.a, "file", strings.Repeat("-", writers*slot))
	var wg sync.WaitGroup
	for w := range writers {
		mine, other := p.a, p.b
		if w%2 == 1 {
			mine, other = other, mine
		}
		f, g := openFileAt(t, mine, "file", 0), openFileAt(t, other, "file", 0)
		wg.Go(func() {
			for i := range rounds {
				text := bytes.Repeat([]byte{byte('a' + (i+w)%26)}, slot)
				_, e1 := f.WriteAt(bg, text, int64(w*slot))
				e2 := f.Sync(bg)
				got := make([]byte, slot)
				_, e3 := g.ReadAt(bg, got, int64(w*slot))
				if errors.Is(e3, io.EOF) {
					e3 = nil
				}
				if err := errors.Join(e1, e2, e3); err != nil || !bytes.Equal(got, text) {
					t.Errorf("writer %d, round %d: %v, read %q, wrote %q", w, i, err, got, text)
					return
				}
				if w == 0 && i%10 == 0 { // and back
					end := int64(writers*slot + i)
					if _, err := mine.SetAttr(bg, Root, f.Ino(), SetAttr{Size: &end}); err != nil {
						t.Error(err)
					}
				}
			}
			if err := errors.Join(f.Close(bg), g.Close(bg)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	want(t, p.a.Unlink(bg, Root, bucketIno(t, p.a), "file"), nil)
	p.wantNothingLeft()
}

// Appenders at both gateways lose nothing of one another: each line is there once, whole,
// where its writer was told.
func TestBesideAppend(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "log", "")
	const each = 40
	var mu sync.Mutex
	lines := map[string]int64{}
	var wg sync.WaitGroup
	for w := range 4 {
		f := openFileAt(t, []*FS{p.a, p.b}[w%2], "log", OpenAppend)
		wg.Go(func() {
			for i := range each {
				line := strings.Repeat(string(rune('a'+w)), 1+i%7) + strings.Repeat("x", i%20) + string(rune('0'+i)) + "\n"
				off, err := f.Append(bg, []byte(line))
				if i%3 == 0 {
					err = errors.Join(err, f.Sync(bg))
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				lines[line] = off
				mu.Unlock()
			}
			if err := f.Close(bg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := readObject(p.b, "bucket", "log")
	want(t, err, nil)
	for line, off := range lines {
		if off+int64(len(line)) > int64(len(text)) || string(text[off:off+int64(len(line))]) != line {
			t.Errorf("%q is not at %d", line, off)
		}
	}
	if n := bytes.Count(text, []byte("\n")); n != 4*each || len(lines) != n {
		t.Errorf("%d lines of %d", n, 4*each)
	}
}

// inParts sets n keys of an inode, attributes or links, in transactions of a few: more than an
// operation would, or than one transaction removes.
func inParts(t *testing.T, fs *FS, ino Ino, n int, key func(i int) []byte) {
	t.Helper()
	const part = 20
	for from := 0; from < n; from += part {
		want(t, fs.update(bg, func(tx cluster.Txn, o *op) error {
			for i := from; i < min(n, from+part); i++ {
				if err := tx.Set(key(i), []byte("v")); err != nil {
					return err
				}
			}
			inode, err := record.GetInode(tx, ino)
			if err != nil {
				return err
			}
			inode.Set(record.FlagXattrs|record.FlagLinks, true)
			return o.putChanged(tx, inode)
		}), nil)
	}
}

// Inodes with more attributes than one transaction removes go, and all that was deleted
// after them.
func TestBesideManyXattrs(t *testing.T) {
	p := openTwo(t)
	for i := range 8 {
		key := fmt.Sprint("many", i)
		ino := put(t, p.a, key, blobBody).Ino
		inParts(t, p.a, ino, 10+20*i, func(j int) []byte { return record.XattrKey(ino, fmt.Sprint("user.", j)) })
		_, err := p.b.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
		want(t, err, nil)
	}
	put(t, p.a, "after", blobBody)
	_, err := p.a.DeleteObject(bg, ObjectName{"bucket", "after"}, DeleteOptions{})
	want(t, err, nil)
	p.wantNothingLeft()
}

// An orphan that cannot be removed keeps nothing else.
func TestBesideStuckOrphan(t *testing.T) {
	p := openTwo(t)
	stuck := 0
	if p.a.kv.Limits().Ops > 0 {
		stuck = 1
	}
	for i := range 3 {
		key := fmt.Sprint("key", i)
		ino := put(t, p.a, key, blobBody).Ino
		_, err := p.b.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
		want(t, err, nil)
		if i == 0 { // links that nobody counts
			inParts(t, p.a, ino, 100, func(j int) []byte { return record.LinkKey(ino, RootIno, fmt.Sprint(j)) })
		}
	}
	collect(t, p.a)
	left := 0
	want(t, p.a.Orphans(bg, func(Ino) error { left++; return nil }), nil)
	if blobs := countBlobs(t, p.c); left != stuck || blobs != stuck {
		t.Errorf("%d orphans and %d blobs are left, want %d", left, blobs, stuck)
	}
}
