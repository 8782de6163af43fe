package vfs

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

func cloneTo(t *testing.T, fs *FS, from, to Ino) {
	t.Helper()
	id, err := fs.ids.Take(bg)
	want(t, err, nil)
	want(t, fs.update(bg, func(tx cluster.Txn, o *op) error {
		src, err := record.GetInode(tx, from)
		if err != nil {
			return err
		}
		c, err := o.contents.Clone(tx, src, ContentID(id))
		if err != nil {
			return err
		}
		dst, err := record.GetInode(tx, to)
		if err != nil {
			return err
		}
		if err := o.contents.Set(tx, dst, c); err != nil {
			return err
		}
		return record.PutInode(tx, dst)
	}), nil)
}

func readAll(t *testing.T, fs *FS, ino Ino) []byte {
	t.Helper()
	f := mustOpen(t, fs, ino, OpenRead)
	defer f.Close(bg)
	a, err := f.Attr(bg)
	want(t, err, nil)
	p := make([]byte, a.Size)
	if n, err := f.ReadAt(bg, p, 0); n != len(p) || err != nil && n > 0 {
		t.Fatalf("read %d of %d: %v", n, len(p), err)
	}
	return p
}

// TestCollectOverwrittenInOpenFile: what was overwritten in a file goes though that stays open,
// and was read since.
func TestCollectOverwrittenInOpenFile(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openContentTest(t, c, Config{Now: later})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	for v := byte(1); v <= 2; v++ {
		_, err := f.WriteAt(bg, bytes.Repeat([]byte{v}, 300<<10), 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
	}
	got := make([]byte, 1)
	_, err := f.ReadAt(bg, got, 0)
	want(t, err, nil)
	both := countBlobs(t, c)
	collect(t, fs)
	if n := countBlobs(t, c); n != both/2 {
		t.Errorf("%d blobs are left of %d", n, both)
	}
	if _, err = f.ReadAt(bg, got, 1000); err != nil || got[0] != 2 {
		t.Errorf("read %d: %v", got[0], err)
	}
	want(t, f.Close(bg), nil)
}

func collect(t *testing.T, fs *FS) {
	t.Helper()
	for {
		n, err := fs.Collect(bg)
		want(t, err, nil)
		if n == 0 {
			return
		}
	}
}

// Bytes live as long as anybody refers to them, through chains of copies.
func TestCloneLifetimes(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := newSeed(t)
			c := e.open(t)
			fs := openContentTest(t, c, Config{})
			const n = 5
			inos, datas := make([]Ino, n), make([][]byte, n)
			for i := range inos {
				inos[i] = mustFile(t, fs, RootIno, fmt.Sprint("f", i))
			}
			for range 120 {
				i, j := r.IntN(n), r.IntN(n)
				switch r.IntN(5) {
				case 0:
					datas[i] = fill(r, r.IntN(100<<10))
					replace(t, fs, inos[i], datas[i])
				case 1:
					if i != j {
						cloneTo(t, fs, inos[i], inos[j])
						datas[j] = bytes.Clone(datas[i])
					}
				case 2: // a write makes it its own
					f := mustOpen(t, fs, inos[i], OpenRead|OpenWrite)
					p := fill(r, 1+r.IntN(30<<10))
					off := r.IntN(len(datas[i]) + 1)
					_, err := f.WriteAt(bg, p, int64(off))
					want(t, err, nil)
					want(t, f.Close(bg), nil)
					if grow := off + len(p) - len(datas[i]); grow > 0 {
						datas[i] = append(datas[i], make([]byte, grow)...)
					}
					copy(datas[i][off:], p)
				case 3:
					want(t, fs.Unlink(bg, Root, RootIno, fmt.Sprint("f", i)), nil)
					inos[i], datas[i] = mustFile(t, fs, RootIno, fmt.Sprint("f", i)), nil
				case 4:
					collect(t, fs)
				}
				for k := range inos {
					if !bytes.Equal(readAll(t, fs, inos[k]), datas[k]) {
						t.Fatalf("file %d differs", k)
					}
				}
			}
			mustBeClean(t, fs)
			for i := range inos {
				want(t, fs.Unlink(bg, Root, RootIno, fmt.Sprint("f", i)), nil)
			}
			collect(t, fs)
			mustBeClean(t, fs)
			if k := countBlobs(t, c); k != 0 {
				t.Errorf("%d blobs outlive all files", k)
			}
			for _, tab := range []byte{record.TabExtent, record.TabContent, record.TabRef, record.TabQueue} {
				want(t, fs.view(bg, func(r cluster.Reader) error {
					any, err := record.AnyKey(r, []byte{tab})
					if any {
						t.Errorf("table %c is not empty", tab)
					}
					return err
				}), nil)
			}
		})
	}
}

// A clock that stands behind that of whoever deleted keeps nothing.
func TestCollectByNoClock(t *testing.T) {
	now := time.Now()
	c := mem.New(mem.Options{})
	fs := openContentTest(t, c, Config{Now: func() time.Time { return now }})
	ino := mustFile(t, fs, RootIno, "f")
	replace(t, fs, ino, bytes.Repeat([]byte{1}, 100<<10))
	want(t, fs.Unlink(bg, Root, RootIno, "f"), nil)
	now = now.Add(-time.Hour)
	collect(t, fs)
	if n := countBlobs(t, c); n != 0 {
		t.Fatalf("%d blobs are left", n)
	}
}

// Contents with more extents than a transaction holds are staged; what was
// staged and never published is collected.
func TestStaging(t *testing.T) {
	disk := mem.NewDisk()
	o := mem.Distributed(1)
	o.Disk = disk
	c := mem.New(o)
	jump := time.Duration(0)
	fs := openContentTest(t, c, Config{Now: func() time.Time { return later().Add(jump) }})
	many := func() *content.Written {
		c := writeContent(t, fs, bytes.Repeat([]byte{1}, 100<<10))
		blob := c.Extents[0]
		c.Extents = nil
		for i := range int64(200) {
			e := blob.Slice(blob.Off+i*500, blob.Off+i*500+500)
			c.Extents = append(c.Extents, e)
		}
		want(t, fs.contents.Stage(bg, c), nil)
		if !c.Staged {
			t.Fatal("not staged")
		}
		c.Size, c.NoCRC = 100000, true
		return c
	}
	ino := mustFile(t, fs, RootIno, "f")
	staged, lost := many(), many()
	jump = 365 * 24 * time.Hour // of the clock
	collect(t, fs)
	want(t, fs.update(bg, func(tx cluster.Txn, o *op) error {
		n, err := record.GetInode(tx, ino)
		if err != nil {
			return err
		}
		if err := o.contents.Set(tx, n, staged); err != nil {
			return err
		}
		return record.PutInode(tx, n)
	}), nil)
	if got := readAll(t, fs, ino); !bytes.Equal(got, bytes.Repeat([]byte{1}, 100000)) {
		t.Fatal("content differs")
	}
	fs.contents.Staged.Remove(lost.ID) // as a crash does
	collect(t, fs)
	if n := countBlobs(t, c); n != 1 {
		t.Errorf("%d blobs, want 1", n)
	}
	mustBeClean(t, fs)
}

// Writers that wait for who moves the end of their file hold nothing of the pool that writers
// of other files wait for.
func TestDirtyPoolBesideMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := openTestWith(t, mem.New(mem.Options{}), Config{DirtyBytes: 1})
		cut := mustOpen(t, fs, mustFile(t, fs, RootIno, "cut"), OpenRead|OpenWrite)
		other := mustOpen(t, fs, mustFile(t, fs, RootIno, "other"), OpenRead|OpenWrite)
		all := fs.dirty.try(int(fs.dirty.limit), maxChunkBytes)
		var writers sync.WaitGroup
		for i := range int64(4) {
			writers.Go(func() {
				if _, err := cut.WriteAt(bg, make([]byte, atomicWriteBytes), i*atomicWriteBytes); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // until they wait for buffers
		move := fs.session.Open.BeginMove(cut.Ino(), func(bool) {})
		fs.dirty.put(all...)
		synctest.Wait() // until they wait for the end
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		if _, err := other.WriteAt(ctx, []byte("text"), 0); err != nil {
			t.Errorf("beside writers that wait: %v", err)
		}
		move.End()
		writers.Wait()
		want(t, cut.Close(bg), nil)
		want(t, other.Close(bg), nil)
	})
}

// Writers share a small pool without waiting for each other for good.
func TestDirtyPoolBound(t *testing.T) {
	c := mem.New(mem.Options{Latency: time.Millisecond})
	fs, err := Open(bg, c, Config{NoBackground: true, DirtyBytes: 1})
	want(t, err, nil)
	defer c.Close()
	var wg sync.WaitGroup
	for k := range 12 {
		ino := mustFile(t, fs, RootIno, fmt.Sprint("f", k))
		wg.Go(func() {
			f, err := fs.Open(bg, Root, ino, OpenRead|OpenWrite)
			if err != nil {
				t.Error(err)
				return
			}
			p := bytes.Repeat([]byte{byte(k + 1)}, 3<<20)
			for i := range int64(6) {
				if _, err := f.WriteAt(bg, p, i*int64(len(p))); err != nil {
					t.Error(err)
				}
				if _, err := f.WriteAt(bg, p[:5000], i*7000); err != nil {
					t.Error(err)
				}
				fs.dirty.mu.Lock()
				if fs.dirty.used > fs.dirty.limit {
					t.Errorf("%d bytes of buffers, limit %d", fs.dirty.used, fs.dirty.limit)
				}
				fs.dirty.mu.Unlock()
			}
			if err := f.Close(bg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if fs.dirty.used != 0 {
		t.Errorf("%d bytes of buffers are still in use", fs.dirty.used)
	}
	want(t, fs.Close(bg), nil)
}

// Unflushed writes become durable by themselves, and fragments become few.
func TestBackground(t *testing.T) {
	c := mem.New(mem.Options{})
	fs, err := Open(bg, c, Config{})
	want(t, err, nil)
	defer c.Close()
	ino := mustFile(t, fs, RootIno, "f")
	f := mustOpen(t, fs, ino, OpenWrite)
	_, err = f.WriteAt(bg, []byte("hello"), 0)
	want(t, err, nil)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var size int64
		want(t, fs.view(bg, func(r cluster.Reader) error {
			n, err := record.GetInode(r, ino)
			size = n.Size
			return err
		}), nil)
		if size == 5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the write behind did not come")
		}
	}
	want(t, f.Close(bg), nil)
	want(t, fs.Close(bg), nil)
}

// Appending lines with a sync each keeps the extents few.
func TestAppendLog(t *testing.T) {
	fs, err := Open(bg, mem.New(mem.Options{}), Config{NoBackground: true, InlineBytes: 1 << 10, Now: later})
	want(t, err, nil)
	ino := mustFile(t, fs, RootIno, "log")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite|OpenAppend)
	line := bytes.Repeat([]byte{'x'}, 100)
	const lines = 4000
	for range lines {
		_, err := f.WriteAt(bg, line, 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
	}
	want(t, fs.contents.CompactFile(bg, ino, content.CompactExtents, content.CompactWindow), nil)
	var list []record.Extent
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		list, _, err = extents.Load(r, n.Content, 0, n.Size, extents.PageExtents)
		return err
	}), nil)
	if len(list) > 8 {
		t.Errorf("%d extents after compaction", len(list))
	}
	if got := readAll(t, fs, ino); !bytes.Equal(got, bytes.Repeat(line, lines)) {
		t.Error("content differs")
	}
	checkCRC(t, fs, ino, bytes.Repeat(line, lines))
	want(t, f.Close(bg), nil)
	collect(t, fs)
	mustBeClean(t, fs)
	want(t, fs.Close(bg), nil)
}
