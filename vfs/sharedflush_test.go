package vfs

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
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

// A file that is copied between transactions of a flush: the blobs that these stored stay
// with the content that they are in, which is shared from then on, and the flush goes on in
// another one.
func TestCopiesWithinFlush(t *testing.T) {
	for copies := range 3 {
		t.Run(strconv.Itoa(copies), func(t *testing.T) {
			fs := bucketFS(t, openContentTest(t, mem.New(mem.Options{}), Config{InlineBytes: 10}))
			fs.tune.flushOps = flushItemOps + flushCutOps // one item
			put(t, fs, "file", blobBody)
			from, err := parseKey(ObjectName{"bucket", "file"})
			want(t, err, nil)
			c := copying{fs: fs, src: &from, o: &CopyOptions{}}
			want(t, c.prepare(bg), nil)
			f := mustOpen(t, fs, c.n.Ino, OpenRead|OpenWrite)
			all := []byte(blobBody)
			for i := range 3 {
				text := bytes.Repeat([]byte{byte('X' + i)}, 500)
				at := 1000 + 20_000*i
				_, err := f.WriteAt(bg, text, int64(at))
				want(t, err, nil)
				copy(all[at:], text)
			}
			var copied []string
			version := c.n.Version
			kv := hook(fs)
			updated := func() {
				n, err := storedInode(fs, f.Ino())
				if want(t, err, nil); n.Version == version || len(copied) == copies {
					return // this stored something else
				}
				version = n.Version
				to, err := parseKey(ObjectName{"bucket", strconv.Itoa(len(copied))})
				want(t, err, nil)
				_, err = c.run(bg, &to)
				want(t, err, nil)
				text, _ := get(t, fs, to.Key)
				copied = append(copied, text)
			}
			kv.updated = nestedOnce(kv, updated)
			if err := f.Sync(bg); err != nil {
				t.Error(err)
			}
			kv.updated = nil
			if got := readAll(t, fs, f.Ino()); !bytes.Equal(got, all) {
				t.Error("the file has other bytes than were written")
			}
			if len(copied) != copies {
				t.Errorf("%d copies of %d", len(copied), copies)
			}
			for i, text := range copied {
				got, _, err := tryGet(bg, fs, strconv.Itoa(i))
				if err != nil || got != text || strings.Count(got, "X") != 500 {
					t.Errorf("copy %d: %v, has changed: %v", i, err, got != text)
				}
			}
			want(t, f.Close(bg), nil)
			mustBeClean(t, fs)
		})
	}
}

// nestedOnce is fn after each Update, but for its own.
func nestedOnce(kv *hookKV, fn func()) func() {
	var again func()
	again = func() {
		kv.updated = nil
		fn()
		kv.updated = again
	}
	return again
}

func storedInode(fs *FS, ino Ino) (n *record.Inode, err error) {
	err = fs.view(bg, func(r cluster.Reader) (err error) {
		n, err = record.GetInode(r, ino)
		return err
	})
	return n, err
}
