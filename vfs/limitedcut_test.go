package vfs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// holdsOf returns how many contents hold others.
func holdsOf(t *testing.T, fs *FS) (n int) {
	t.Helper()
	from, to := record.Table(record.TabRef)
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n = 0
		return r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(k, v []byte) error {
			n++
			return nil
		})
	}), nil)
	return n
}

// What is cut beside many extents may be named by each of them: a transaction of an
// engine with limits cannot look at all, and the collector does.
func TestCutBesideManyExtents(t *testing.T) {
	const page, many, sources = 4 << 10, 300, 8
	limits := cluster.Limits{Ops: 128, Bytes: 3 << 19}
	for _, how := range []string{"overwrite", "truncate", "punch"} {
		t.Run(how, func(t *testing.T) {
			fs := openContentTest(t, mem.New(mem.Options{Limits: limits}), Config{InlineBytes: 1})
			f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
			data := bytes.Repeat([]byte{1}, 2*many*page)
			_, err := f.WriteAt(bg, data[:many*page], 0) // blobs, of which the ends stay
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
			for at := range many {
				_, err = f.WriteAt(bg, []byte{2}, int64(at*page))
				want(t, err, nil)
				data[at*page] = 2
			}
			want(t, f.Sync(bg), nil)
			for i := range sources {
				src := mustOpen(t, fs, mustFile(t, fs, RootIno, fmt.Sprint("source", i)), OpenRead|OpenWrite)
				piece := bytes.Repeat([]byte{byte(10 + i)}, page)
				_, err := src.WriteAt(bg, piece, 0)
				want(t, err, nil)
				for _, at := range []int{many + 2*i, 2*many - 1 - i} { // named twice
					_, err = f.CopyRange(bg, int64(at*page), src, 0, page)
					want(t, err, nil)
					copy(data[at*page:], piece)
				}
				want(t, src.Close(bg), nil)
			}
			for at := many; at < 2*many; at++ { // the holes between
				if data[at*page] == 1 {
					clear(data[at*page : (at+1)*page])
				}
			}
			if n := holdsOf(t, fs); n != sources {
				t.Fatalf("%d holds", n)
			}
			change := func(from, to int) {
				t.Helper()
				switch how {
				case "overwrite":
					_, err = f.WriteAt(bg, bytes.Repeat([]byte{3}, (to-from)*page), int64(from*page))
					for i := range (to - from) * page {
						data[from*page+i] = 3
					}
				case "truncate":
					err = setSize(fs, f.Ino(), int64(from*page))
					data = data[:from*page]
				case "punch":
					err = f.Allocate(bg, AllocPunchHole|AllocKeepSize, int64(from*page), int64((to-from)*page))
					clear(data[from*page : to*page])
				}
				want(t, err, nil)
				want(t, f.Sync(bg), nil)
				if got := readAll(t, fs, f.Ino()); !bytes.Equal(got, data) {
					t.Error("content differs")
				}
				collect(t, fs)
				mustBeClean(t, fs)
			}
			change(2*many-sources-1, 2*many)
			if n := holdsOf(t, fs); n != sources {
				t.Errorf("%d holds, each of which is needed", n)
			}
			change(many, 2*many-sources-1)
			if n := holdsOf(t, fs); n != 0 {
				t.Errorf("%d holds that nothing needs", n)
			}
			change(many/2, many)
			change(0, many/2)
			want(t, f.Close(bg), nil)
		})
	}
}

// A file that is cut to a size with many extents behind it gives up their space, also where
// one transaction has no room for all of them.
func TestTruncateFreesSpace(t *testing.T) {
	const chunk, blobs = 64 << 10, 50
	c := mem.New(mem.Options{Limits: cluster.Limits{Ops: 128, Bytes: 3 << 19}})
	fs := openContentTest(t, c, Config{})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	data := make([]byte, blobs*chunk)
	for at := 0; at < len(data); at += chunk {
		data[at] = byte(1 + at/chunk)
		_, err := f.WriteAt(bg, data[at:at+chunk], int64(at))
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
	}
	if n := countBlobs(t, c); n != blobs {
		t.Fatalf("%d blobs are stored", n)
	}
	const left = 3 * blobs / 10
	size := int64(left*chunk - 1)
	want(t, setSize(fs, f.Ino(), size), nil)
	collect(t, fs)
	if n := countBlobs(t, c); n != left {
		t.Errorf("%d blobs are kept, want %d", n, left)
	}
	a, err := f.Attr(bg)
	if err != nil || a.Size != size || a.Used != size {
		t.Errorf("%d bytes, %d used, %v", a.Size, a.Used, err)
	}
	if !bytes.Equal(readAll(t, fs, f.Ino()), data[:size]) {
		t.Error("content differs")
	}
	want(t, f.Close(bg), nil)
	mustBeClean(t, fs)
}

// TestUsedOfSparseCopy: what a copy of a sparse file uses is what it stores, however it is
// cut: programs take a file that uses nothing for one hole.
func TestUsedOfSparseCopy(t *testing.T) {
	const data, size = 10_000, 1 << 20
	for name, limits := range map[string]cluster.Limits{"": {}, "limited": {Ops: 128, Bytes: 3 << 19}} {
		t.Run(name, func(t *testing.T) {
			fs := bucketFS(t, openContentTest(t, mem.New(mem.Options{Limits: limits}), Config{InlineBytes: 100}))
			bucket := mustLookup(t, fs, RootIno, "bucket").Ino
			put(t, fs, "f", strings.Repeat("0123456789", data/10))
			want(t, setSize(fs, mustLookup(t, fs, bucket, "f").Ino, size), nil)
			_, err := fs.CopyObject(bg, ObjectName{"bucket", "f"}, ObjectName{"bucket", "g"}, CopyOptions{})
			want(t, err, nil)
			g := mustOpen(t, fs, mustLookup(t, fs, bucket, "g").Ino, OpenRead|OpenWrite)
			used := func(f *File, what string, want int64) {
				t.Helper()
				if err := f.Sync(bg); err != nil {
					t.Error(err)
				}
				if a, err := f.Attr(bg); err != nil || a.Used != want {
					t.Errorf("%s: %d bytes are used, want %d, %v", what, a.Used, want, err)
				}
			}
			used(g, "copied", data)
			_, err = g.WriteAt(bg, []byte("x"), size-1)
			want(t, err, nil)
			used(g, "written in the hole", data+1)
			want(t, setSize(fs, g.Ino(), size/2), nil)
			used(g, "cut in the hole", data)
			_, err = g.WriteAt(bg, []byte("x"), data/2)
			want(t, err, nil)
			used(g, "overwritten", data)

			f := mustOpen(t, fs, mustLookup(t, fs, bucket, "f").Ino, OpenRead|OpenWrite)
			h := mustOpen(t, fs, mustFile(t, fs, bucket, "h"), OpenRead|OpenWrite)
			n, err := h.CopyRange(bg, 0, f, data/2, size-data/2)
			want(t, err, nil)
			if n != size-data/2 {
				t.Errorf("%d bytes are copied", n)
			}
			used(h, "a range", data/2)
			want(t, setSize(fs, f.Ino(), size/2), nil) // of what others refer to
			used(f, "the source, cut", data)
			want(t, g.Allocate(bg, AllocPunchHole|AllocKeepSize, 0, size/2), nil)
			used(g, "punched", 0)
			want(t, setSize(fs, h.Ino(), 1000), nil)
			used(h, "cut in the data", 1000)
			for _, x := range []*File{f, g, h} {
				want(t, x.Close(bg), nil)
			}
			mustBeClean(t, fs)
		})
	}
}
