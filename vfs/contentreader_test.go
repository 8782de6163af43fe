package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/record"
)

// TestOpenContentOvertaken changes a content of several pages in place after a
// reader's snapshot and before it pins the content: the reader begins again, and
// what it reads is one version, never a mixture.
func TestOpenContentOvertaken(t *testing.T) {
	const extents, gap = 12, 16 << 10
	prepare := func(t *testing.T, fs *FS) (*File, []byte) {
		fs.contents.ExtentPage = 3
		f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
		t.Cleanup(func() { want(t, f.Close(bg), nil) })
		model := make([]byte, extents*gap)
		for i := range extents {
			store(t, f, model, fmt.Sprintf("extent %d, first", i), i*gap)
		}
		return f, model
	}
	open := func(fs *FS, ino Ino, between func(run int, n *record.Inode)) (rd *content.Reader, runs int, err error) {
		err = fs.view(bg, func(r cluster.Reader) error {
			n, err := record.GetInode(r, ino)
			if err != nil {
				return err
			}
			runs++
			between(runs, n)
			rd, err = fs.contents.Open(bg, r, n)
			return err
		})
		return rd, runs, err
	}
	same := func(t *testing.T, rd *content.Reader, model []byte) {
		t.Helper()
		defer rd.Close()
		got, err := io.ReadAll(io.NewSectionReader(rd, 0, rd.Size()))
		if err != nil || !bytes.HasPrefix(model, got) || len(bytes.TrimRight(model[len(got):], "\x00")) > 0 {
			t.Errorf("read %d bytes, %v; they are of no version", len(got), err)
		}
	}

	t.Run("by a change that is over", func(t *testing.T) {
		onEngines(t, func(t *testing.T, fs *FS) {
			f, model := prepare(t, fs)
			rd, runs, err := open(fs, f.Ino(), func(run int, _ *record.Inode) {
				if run == 1 {
					store(t, f, model, "second", 0)
					store(t, f, model, "second", (extents-1)*gap)
				}
			})
			if want(t, err, nil); runs != 2 {
				t.Errorf("%d runs, want 2", runs)
			}
			same(t, rd, model)
		})
	})
	t.Run("by one under way", func(t *testing.T) {
		onEngines(t, func(t *testing.T, fs *FS) {
			f, model := prepare(t, fs)
			rd, runs, err := open(fs, f.Ino(), func(run int, n *record.Inode) {
				if run > 1 {
					return
				}
				fs.contents.Pins.Begin(n.Content)
				go func() { // ends it when the view waits for that
					for !fs.contents.Pins.Awaited(n.Content) {
						runtime.Gosched()
					}
					fs.contents.Pins.End([]ContentID{n.Content})
				}()
			})
			if want(t, err, nil); runs != 2 {
				t.Errorf("%d runs, want 2", runs)
			}
			same(t, rd, model)
		})
	})
	t.Run("again and again", func(t *testing.T) {
		onEngines(t, func(t *testing.T, fs *FS) {
			f, model := prepare(t, fs)
			_, runs, err := open(fs, f.Ino(), func(run int, _ *record.Inode) { store(t, f, model, fmt.Sprint(run), 0) })
			if want(t, err, ErrConflict); runs != content.MaxOvertaken {
				t.Errorf("%d runs", runs)
			}
		})
	})
	t.Run("and cancelled", func(t *testing.T) {
		fs := openTest(t, engines[0].open(t))
		fs.contents.Pins.Begin(1)
		defer fs.contents.Pins.End([]ContentID{1})
		ctx, cancel := context.WithCancel(bg)
		cancel()
		want(t, fs.contents.Pins.Await(ctx, 1), context.Canceled)
	})
}

// TestCloseBesideRead closes a content whose pages refer to others while one is being loaded: a
// pin that came after that would stay.
func TestCloseBesideRead(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 1})
	fs.contents.ExtentPage = 1
	src := mustOpen(t, fs, mustFile(t, fs, RootIno, "src"), OpenRead|OpenWrite)
	model := make([]byte, 3*4096)
	store(t, src, model, strings.Repeat("s", 4096), 0)
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	store(t, f, model, strings.Repeat("f", 4096), 0)
	_, err := f.CopyRange(bg, 4096, src, 0, 4096)
	want(t, err, nil)
	want(t, errors.Join(f.Close(bg), src.Close(bg)), nil)
	before := pinned(fs)
	rd, err := fs.contents.OpenStored(bg, f.Ino())
	want(t, err, nil)
	h := hook(fs)
	h.reader = func(r cluster.Reader) cluster.Reader {
		want(t, rd.Close(), nil)
		return r
	}
	_, err = rd.ReadAt(make([]byte, 1), 4096)
	wantErr(t, err, ErrClosed)
	h.reader = nil
	if after := pinned(fs); len(after) > len(before) {
		t.Errorf("pinned before %v, after %v", before, after)
	}
}

// pinned returns the contents that are pinned.
func pinned(fs *FS) []ContentID {
	fs.contents.Pins.Mark()
	list, _ := fs.contents.Pins.Older(1000)
	return list
}

// store writes durably.
func store(t *testing.T, f *File, model []byte, text string, off int) {
	t.Helper()
	_, err := f.WriteAt(bg, []byte(text), int64(off))
	want(t, err, nil)
	want(t, f.Sync(bg), nil)
	copy(model[off:], text)
}
