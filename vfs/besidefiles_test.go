package vfs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

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
