package vfs

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

const hotPage = 4 << 10

// hotPattern writes pages of f one at a time, in any order, and makes each durable.
// It returns what the file holds then.
func hotPattern(t *testing.T, f *File, pages, rounds int) []byte {
	t.Helper()
	return hotPatternOf(t, f, hotPage, pages, rounds)
}

func hotPatternOf(t *testing.T, f *File, size, pages, rounds int) []byte {
	t.Helper()
	data := make([]byte, pages*size)
	for i := range rounds {
		for _, at := range rand.Perm(pages) {
			page := data[at*size : (at+1)*size]
			for j := range page {
				page[j] = byte(i + at*j)
			}
			_, err := f.WriteAt(bg, page, int64(at*size))
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
		}
	}
	return data
}

func extentLengths(t *testing.T, fs *FS, ino Ino) (lengths []int64, used int64) {
	t.Helper()
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		list, more, err := extents.LoadPage(r, n.Content, 0, n.Size, extents.PageBounds{Extents: math.MaxInt, InlineBytes: math.MaxInt})
		if more {
			t.Error("there are more extents")
		}
		lengths, used = nil, n.Used
		for i := range list {
			lengths = append(lengths, list[i].Len)
		}
		return err
	}), nil)
	return lengths, used
}

// Who writes pages of a file one at a time has each stored by itself: not with the
// pages beside it.
func TestHotPages(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
	for _, first := range []int{0, 200 << 10} { // nothing below, or a blob
		ino := mustFile(t, fs, RootIno, "hot"+string(rune('a'+first>>10&1)))
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		if first > 0 {
			_, err := f.WriteAt(bg, make([]byte, first), 0)
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
		}
		data := hotPattern(t, f, 50, 3)
		lengths, used := extentLengths(t, fs, ino)
		if len(lengths) != 50 || slices.Max(lengths) != hotPage || used != int64(len(data)) {
			t.Errorf("%d used in extents of %v", used, lengths)
		}
		if !bytes.Equal(readAll(t, fs, ino), data) {
			t.Error("content differs")
		}
		want(t, f.Close(bg), nil)
		want(t, fs.Unlink(bg, Root, RootIno, "hot"+string(rune('a'+first>>10&1))), nil)
	}
}

// Who overwrites whole pages, one or several at a time, reads no old page; who
// overwrites a part of one reads that.
func TestHotPagesAreNotRead(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ino := mustFile(t, fs, RootIno, "hot")
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		hotPattern(t, f, 50, 1)
		reads := &extentReads{KV: fs.kv}
		setKV(fs, reads)
		data := hotPattern(t, f, 50, 2)
		for at := 0; at < len(data); at += 3 * hotPage {
			copy(data[at:], bytes.Repeat([]byte{'x'}, hotPage))
			_, err := f.WriteAt(bg, data[at:at+hotPage], int64(at))
			want(t, err, nil)
		}
		want(t, f.Sync(bg), nil)
		if reads.n > 0 {
			t.Errorf("%d extents were read", reads.n)
		}
		copy(data[hotPage+5:], "part")
		_, err := f.WriteAt(bg, []byte("part"), hotPage+5)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		if reads.n == 0 {
			t.Error("a part of a page was overwritten without reading it: reads are not counted")
		}
		if lengths, used := extentLengths(t, fs, ino); len(lengths) != 50 || used != int64(len(data)) {
			t.Errorf("%d used in extents of %v", used, lengths)
		}
		if !bytes.Equal(readAll(t, fs, ino), data) {
			t.Error("content differs")
		}
		want(t, f.Close(bg), nil)
	})
}

// Writers of a file that nobody reads load no extents, not even with the first write
// after the file was opened or changed elsewhere.
func TestWritersLoadNoExtents(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ino := mustFile(t, fs, RootIno, "hot")
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		data := hotPattern(t, f, 50, 1)
		want(t, f.Close(bg), nil)
		reads := 0
		hook(fs).reader = func(r cluster.Reader) cluster.Reader { return &extentScans{r, &reads} }
		f = mustOpen(t, fs, ino, OpenRead|OpenWrite)
		for i := range 3 {
			page := data[i*hotPage : (i+1)*hotPage]
			copy(page, "written")
			_, err := f.WriteAt(bg, page, int64(i*hotPage))
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
			_, err = fs.SetAttr(bg, Root, ino, SetAttr{Mode: new(uint32)})
			want(t, err, nil)
		}
		if reads > 0 {
			t.Errorf("extents were looked up %d times", reads)
		}
		if !bytes.Equal(readAll(t, fs, ino), data) {
			t.Error("content differs")
		}
		if reads == 0 {
			t.Error("the file was read, and no extent: they are not counted")
		}
		want(t, f.Close(bg), nil)
	})
}

// extentScans counts reads of extents within views.
type extentScans struct {
	cluster.Reader
	n *int
}

func (r *extentScans) count(key []byte) {
	if key[0] == record.TabExtent {
		*r.n++
	}
}

func (r *extentScans) Get(key []byte) ([]byte, error) {
	r.count(key)
	return r.Reader.Get(key)
}

func (r *extentScans) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	r.count(start)
	return r.Reader.Scan(start, end, o, fn)
}

// A file that fits one inline extent stays one, however it is written.
func TestHotSmallFile(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
	ino := mustFile(t, fs, RootIno, "small")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	data := hotPattern(t, f, 4, 2)
	if lengths, _ := extentLengths(t, fs, ino); len(lengths) > 4 {
		t.Errorf("extents of %v", lengths)
	}
	_, err := f.WriteAt(bg, []byte("across"), hotPage-3)
	want(t, err, nil)
	want(t, f.Sync(bg), nil)
	copy(data[hotPage-3:], "across")
	if !bytes.Equal(readAll(t, fs, ino), data) {
		t.Error("content differs")
	}
	want(t, f.Close(bg), nil)
}

// After its own flush a writer needs nothing from the store, and after what others
// did it does.
func TestWriterFollowsItsFlush(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
	ino := mustFile(t, fs, RootIno, "file")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite|OpenAppend)
	write := func(s string) {
		t.Helper()
		_, err := f.WriteAt(bg, []byte(s), 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		f.of.mu.RLock()
		defer f.of.mu.RUnlock()
		if !f.of.current() || f.of.snap.reader != nil {
			t.Error("a flush left a snapshot that is old, or has extents")
		}
	}
	write("one ")
	write("two ")
	if got := readAll(t, fs, ino); string(got) != "one two " {
		t.Errorf("read %q", got)
	}
	size := int64(3)
	_, err := fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
	want(t, err, nil)
	write("!")
	if got := readAll(t, fs, ino); string(got) != "one!" {
		t.Errorf("read %q after it was cut", got)
	}
	want(t, f.Close(bg), nil)
}

// A file that is changed again and again is compacted in a pause, and without one
// after a minute.
func TestCompactionWaits(t *testing.T) {
	var clock atomic.Int64
	clock.Store(time.Now().UnixNano())
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true,
		Now: func() time.Time { return time.Unix(0, clock.Load()) }})
	ino := mustFile(t, fs, RootIno, "hot")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	const pages = content.CompactExtents + 8
	small := make([]int64, content.CompactExtents) // makes chance a certainty
	compacted := func() bool {
		want(t, fs.contents.Compact(bg), nil)
		lengths, _ := extentLengths(t, fs, ino)
		return len(lengths) < pages/2
	}
	for _, pause := range []bool{true, false} {
		data := hotPattern(t, f, pages, 1)
		fs.contents.Flushed(ino, slices.Values(small))
		passes := 0
		for ; !compacted(); passes++ {
			if passes > 20 {
				t.Fatal("it never came")
			}
			if pause {
				clock.Add(int64(3 * time.Second))
			}
		}
		if pause && passes != 2 || !pause && passes != 12 {
			t.Errorf("pause %v: compacted after %d passes", pause, passes)
		}
		if !bytes.Equal(readAll(t, fs, ino), data) {
			t.Error("content differs")
		}
	}
	want(t, f.Close(bg), nil)
}

// A compaction goes on behind what it loads at once, and has pages of every size.
func TestCompactionOfManyPages(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
	for _, size := range []int{hotPage, 8 << 10, 16 << 10} {
		ino := mustFile(t, fs, RootIno, "hot"+strconv.Itoa(size))
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		data := hotPatternOf(t, f, size, 4*content.CompactExtents+100, 1)
		want(t, fs.contents.CompactFile(bg, ino, content.CompactExtents, content.CompactWindow), nil)
		if lengths, used := extentLengths(t, fs, ino); len(lengths) > content.CompactExtents || used != int64(len(data)) {
			t.Errorf("pages of %d: %d used in %d extents", size, used, len(lengths))
		}
		if !bytes.Equal(readAll(t, fs, ino), data) {
			t.Errorf("pages of %d: content differs", size)
		}
		want(t, f.Close(bg), nil)
	}
}

// A compaction of a file that changes meanwhile copies none of it.
func TestCompactionGivesUp(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
	ino := mustFile(t, fs, RootIno, "hot")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	data := hotPattern(t, f, 4*content.CompactExtents, 1)
	h := hook(fs)
	h.viewed = func() { // the extents were read
		h.viewed = nil
		_, err := f.WriteAt(bg, []byte("new"), 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		fs.contents.Engine = untouchedBlobs{fs.blobs, t}
	}
	want(t, fs.contents.CompactFile(bg, ino, content.CompactExtents, content.CompactWindow), ErrStale)
	fs.contents.Engine = fs.blobs
	copy(data, "new")
	if !bytes.Equal(readAll(t, fs, ino), data) {
		t.Error("content differs")
	}
	want(t, f.Close(bg), nil)
}

// untouchedBlobs takes no blob.
type untouchedBlobs struct {
	cluster.Blobs
	t *testing.T
}

func (b untouchedBlobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	b.t.Errorf("blob %v is written", id)
	return b.Blobs.Create(ctx, id, sizeHint)
}
