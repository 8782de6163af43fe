package vfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"ogw/cluster"
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

// store writes durably.
func store(t *testing.T, f *File, model []byte, text string, off int) {
	t.Helper()
	_, err := f.WriteAt(bg, []byte(text), int64(off))
	want(t, err, nil)
	want(t, f.Sync(bg), nil)
	copy(model[off:], text)
}
