package vfs

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// Who waited for a flush that stored its writes does not store those that came since.
func TestFlushUpTo(t *testing.T) {
	c := mem.New(mem.Options{})
	kv := &countingKV{KV: c.KV}
	c.KV = kv
	fs := openTestWith(t, c, Config{NoBackground: true})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "file"), OpenRead|OpenWrite)
	write := func(s string) {
		t.Helper()
		_, err := f.WriteAt(bg, []byte(s), 0)
		want(t, err, nil)
	}
	write("one")
	write("two")
	waiting := f.of.turn
	want(t, f.Sync(bg), nil)
	write("new")
	start := kv.attempts.Load()
	want(t, f.of.flushUpTo(bg, waiting), nil)
	if kv.attempts.Load() != start {
		t.Error("it stored what was written later")
	}
	want(t, f.of.flushUpTo(bg, waiting+1), nil)
	if kv.attempts.Load() != start+1 {
		t.Error("it did not store what was written before")
	}
	if got := readAll(t, fs, f.Ino()); string(got) != "new" {
		t.Errorf("%q is stored", got)
	}
	want(t, f.Close(bg), nil)
}

// Many writers of one file at the same time: each finds its write stored.
func TestSyncsShareFlushes(t *testing.T) {
	c := mem.New(mem.Options{Latency: time.Millisecond})
	fs := openTestWith(t, c, Config{NoBackground: true})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "file"), OpenRead|OpenWrite)
	const writers, each = 16, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := f.WriteAt(bg, []byte{byte(i + 1)}, int64(w)*hotPage); err != nil {
					t.Error(err)
				}
				if err := f.Sync(bg); err != nil {
					t.Error(err)
				}
				var got [1]byte
				if err := fs.view(bg, func(r cluster.Reader) error {
					n, err := record.GetInode(r, f.Ino())
					if err != nil {
						return err
					}
					rd, err := fs.contents.Open(bg, r, n)
					if err != nil {
						return err
					}
					defer rd.Close()
					_, err = rd.Read(bg, got[:], int64(w)*hotPage)
					return err
				}); err != nil && !errors.Is(err, io.EOF) || got[0] != byte(i+1) {
					t.Errorf("writer %d: %d is stored after a Sync of %d, %v", w, got[0], i+1, err)
				}
			}
		})
	}
	wg.Wait()
	want(t, f.Close(bg), nil)
}

// What is written while a Sync runs is not taken for saved: Close stores it.
func TestWriteDuringSync(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{NoBackground: true})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "file"), OpenRead|OpenWrite)
	_, err := f.WriteAt(bg, []byte("one "), 0)
	want(t, err, nil)
	kv := hook(fs)
	kv.updated = func() {
		kv.updated = nil
		_, err := f.WriteAt(bg, []byte("two"), 4)
		want(t, err, nil)
	}
	want(t, f.Sync(bg), nil)
	want(t, f.Close(bg), nil)
	if got := readAll(t, fs, f.Ino()); string(got) != "one two" {
		t.Errorf("%q is stored", got)
	}
}
