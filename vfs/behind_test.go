package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

var relaxed = cluster.Relaxed(bg)

// failingKV is a store that takes nothing while err is set.
type failingKV struct {
	countingKV
	err error
}

func (k *failingKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if k.err != nil {
		return k.err
	}
	return k.countingKV.Update(ctx, fn)
}

// rerunKV is a store whose transactions fail after some attempts.
type rerunKV struct {
	cluster.KV
	attempts int
	err      error
}

func (k *rerunKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return k.KV.Update(ctx, func(t cluster.Txn) error {
		for range k.attempts {
			if err := fn(t); err != nil {
				return err
			}
		}
		return k.err
	})
}

// openBehind opens a namespace whose files can be closed before they are stored, by
// passes that the test makes.
func openBehind(t *testing.T, log *slog.Logger) (*FS, *failingKV) {
	c := mem.New(mem.Options{})
	kv := &failingKV{countingKV: countingKV{KV: c.KV}}
	c.KV = kv
	fs := bucketFS(t, openTestWith(t, c, Config{Logger: log}))
	fs.behind.serves.Store(true)
	return fs, kv
}

// closedBehind writes a file and closes it, as the last descriptor of a program.
func closedBehind(t *testing.T, fs *FS, ino Ino, text string, flags OpenFlags) {
	t.Helper()
	f, err := fs.Open(relaxed, Root, ino, OpenWrite|flags)
	want(t, err, nil)
	_, err = f.WriteAt(relaxed, []byte(text), 0)
	want(t, err, nil)
	want(t, f.SaveBehind(relaxed, func() {}), nil)
	want(t, f.CloseBehind(relaxed), nil)
}

func wantText(t *testing.T, fs *FS, ino Ino, text string) {
	t.Helper()
	if got := readAll(t, fs, ino); string(got) != text {
		t.Errorf("the file holds %.40q, want %.40q", got, text)
	}
}

// wantObject reads what S3 shows.
func wantObject(t *testing.T, fs *FS, name, text string) {
	t.Helper()
	o, err := fs.GetObject(bg, ObjectName{"bucket", name}, GetOptions{})
	want(t, err, nil)
	defer o.Close()
	got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Info.Size))
	if err != nil || string(got) != text {
		t.Errorf("the object holds %.40q, %v, want %.40q", got, err, text)
	}
}

// A file that is closed before it is stored: every door sees its bytes, the store gets
// them by the next pass, and then nobody has it open.
func TestCloseBehind(t *testing.T) {
	for _, size := range []int{100, 100_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			fs, kv := openBehind(t, nil)
			b := mustLookup(t, fs, RootIno, "bucket").Ino
			ino, text := mustFile(t, fs, b, "file"), strings.Repeat("x", size)
			before := kv.attempts.Load()
			closedBehind(t, fs, ino, text, 0)
			if n := kv.attempts.Load() - before; n != 0 {
				t.Errorf("the close took %d transactions", n)
			}
			a, err := fs.GetAttr(bg, ino)
			if want(t, err, nil); a.Size != int64(size) {
				t.Errorf("%d bytes, want %d", a.Size, size)
			}
			wantText(t, fs, ino, text)
			if fs.opened(ino) == nil {
				t.Fatal("nobody has the bytes")
			}
			want(t, fs.StoreClosed(relaxed), nil)
			if fs.opened(ino) != nil || fs.behind.len() != 0 {
				t.Error("it is open still")
			}
			wantText(t, fs, ino, text)

			closedBehind(t, fs, ino, "S3 "+text, 0)
			wantObject(t, fs, "file", "S3 "+text)
			want(t, fs.StoreClosed(relaxed), nil)

			before = kv.attempts.Load()
			f := mustOpen(t, fs, ino, OpenWrite)
			want(t, f.CloseBehind(bg), nil)
			if kv.attempts.Load() != before || fs.opened(ino) != nil {
				t.Error("where nothing was written, closing left something to do")
			}
		})
	}
}

// What happens to a file between its close and the pass.
func TestClosedBehindThen(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, fs *FS, b, ino Ino)
		want string // "" for gone
	}{
		{"cut", func(t *testing.T, fs *FS, _, ino Ino) {
			size := int64(3)
			_, err := fs.SetAttr(relaxed, Root, ino, SetAttr{Size: &size})
			want(t, err, nil)
		}, "was"},
		{"cut by an open", func(t *testing.T, fs *FS, _, ino Ino) {
			closedBehind(t, fs, ino, "new", OpenTrunc)
		}, "new"},
		{"written again", func(t *testing.T, fs *FS, _, ino Ino) {
			closedBehind(t, fs, ino, "has", 0)
		}, "has written"},
		{"synced by another", func(t *testing.T, fs *FS, _, ino Ino) {
			f := mustOpen(t, fs, ino, OpenRead)
			want(t, f.Sync(bg), nil)
			if fs.hasPieces(ino) {
				t.Error("fsync left bytes in memory")
			}
			want(t, f.Close(bg), nil)
		}, "was written"},
		{"put over", func(t *testing.T, fs *FS, _, _ Ino) { put(t, fs, "file", "put") }, "put"},
		{"removed", func(t *testing.T, fs *FS, b, _ Ino) { want(t, fs.Unlink(relaxed, Root, b, "file"), nil) }, ""},
		{"replaced", func(t *testing.T, fs *FS, b, _ Ino) {
			closedBehind(t, fs, mustFile(t, fs, b, "other"), "the other", 0)
			want(t, fs.Rename(relaxed, Root, EntryName{b, "other"}, EntryName{b, "file"}, 0), nil)
		}, "the other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, _ := openBehind(t, nil)
			b := mustLookup(t, fs, RootIno, "bucket").Ino
			ino := mustFile(t, fs, b, "file")
			closedBehind(t, fs, ino, "was written", 0)
			c.do(t, fs, b, ino)
			for range 2 { // before the pass and after it
				if c.want == "" {
					_, err := fs.Lookup(bg, Root, b, "file")
					want(t, err, ErrNotExist)
				} else {
					wantText(t, fs, mustLookup(t, fs, b, "file").Ino, c.want)
				}
				want(t, fs.StoreClosed(relaxed), nil)
			}
			if fs.behind.len() != 0 || fs.opened(ino) != nil {
				t.Error("it is open still")
			}
		})
	}
}

// What replaces bytes, by an open that cut them or by a rename, is stored before the
// close or the rename is answered: the end of the process does not leave an empty file.
func TestReplacedBehindIsStored(t *testing.T) {
	fs, _ := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	put(t, fs, "cut", "old")
	put(t, fs, "renamed", "old")
	cut := mustLookup(t, fs, b, "cut").Ino
	closedBehind(t, fs, cut, "new", OpenTrunc)
	tmp := mustFile(t, fs, b, "tmp")
	closedBehind(t, fs, tmp, "new", 0)
	if !fs.hasPieces(tmp) {
		t.Error("a new file was stored by its close")
	}
	want(t, fs.Rename(relaxed, Root, EntryName{b, "tmp"}, EntryName{b, "renamed"}, 0), nil)
	object := mustFile(t, fs, b, "object")
	closedBehind(t, fs, object, "newer", 0)
	want(t, fs.RenameObject(bg, "bucket", "object", "renamed", RenameOptions{}), nil)
	for _, ino := range []Ino{cut, tmp, object} {
		if fs.hasPieces(ino) {
			t.Errorf("inode %d is in memory alone", ino)
		}
	}
	want(t, fs.StoreClosed(relaxed), nil)
}

// A store that is full: what is closed stays until it has room, closing waits for the
// store again and gets its error, and a stop reports by name what it could not store.
func TestCloseBehindFails(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		t.Run(fmt.Sprint(recovers), func(t *testing.T) {
			var log bytes.Buffer
			fs, kv := openBehind(t, slog.New(slog.NewTextHandler(&log, nil)))
			b := mustLookup(t, fs, RootIno, "bucket").Ino
			first, second := mustFile(t, fs, b, "first"), mustFile(t, fs, b, "second")
			closedBehind(t, fs, first, "one", 0)
			kv.err = cluster.ErrNoSpace
			want(t, fs.StoreClosed(relaxed), ErrNoSpace)
			wantText(t, fs, first, "one")
			f := mustOpen(t, fs, second, OpenWrite)
			_, err := f.WriteAt(relaxed, []byte("two"), 0)
			want(t, err, nil)
			waited := false
			want(t, f.SaveBehind(relaxed, func() { waited = true }), ErrNoSpace)
			if !waited {
				t.Error("nobody was told that it waits")
			}
			if recovers {
				kv.err = nil
				want(t, fs.StoreClosed(relaxed), nil)
				want(t, f.SaveBehind(relaxed, func() {}), nil)
				want(t, f.CloseBehind(relaxed), nil)
				want(t, fs.StoreClosed(relaxed), nil)
				wantText(t, fs, first, "one")
				wantText(t, fs, second, "two")
				return
			}
			want(t, fs.behind.end(bg), ErrNoSpace)
			if !strings.Contains(log.String(), "bucket/first") || strings.Contains(log.String(), "bucket/second") {
				t.Errorf("the log says %s", log.String())
			}
			if fs.opened(first) != nil {
				t.Error("it is open still")
			}
			kv.err = nil
			want(t, f.Close(bg), nil)
			wantText(t, fs, second, "two")
		})
	}
}

// What was put over a closed file is what it holds; the log says whose bytes are gone.
func TestClosedBehindLost(t *testing.T) {
	var log bytes.Buffer
	fs, _ := openBehind(t, slog.New(slog.NewTextHandler(&log, nil)))
	ino := mustFile(t, fs, mustLookup(t, fs, RootIno, "bucket").Ino, "file")
	closedBehind(t, fs, ino, "written", 0)
	fs.opened(ino).mu.Lock()
	fs.opened(ino).epoch++ // as if the put came after the last look
	fs.opened(ino).mu.Unlock()
	want(t, fs.StoreClosed(relaxed), nil)
	if !strings.Contains(log.String(), "bucket/file") {
		t.Errorf("the log says %q", log.String())
	}
}

// A close waits while too many closed files are in memory.
func TestCloseBehindBound(t *testing.T) {
	fs, _ := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	ino := mustFile(t, fs, b, "file")
	for range maxBehind {
		closedBehind(t, fs, ino, "x", 0)
	}
	f := mustOpen(t, fs, ino, OpenWrite)
	_, err := f.WriteAt(relaxed, []byte("y"), 0)
	want(t, err, nil)
	waits, done := make(chan struct{}), make(chan error)
	go func() { done <- f.SaveBehind(relaxed, func() { close(waits) }) }()
	<-waits
	select {
	case err := <-done:
		t.Errorf("closed, %v, with %d files in memory", err, fs.behind.len())
	case <-time.After(50 * time.Millisecond): // the longer, the surer it fails
		want(t, fs.behind.pass(bg), nil)
		want(t, <-done, nil)
	}
	want(t, f.CloseBehind(relaxed), nil)
	ctx, cancel := context.WithCancel(relaxed)
	cancel()
	for range maxBehind - 1 {
		closedBehind(t, fs, ino, "x", 0)
	}
	if fs.behind.await(ctx) {
		t.Error("a caller that is gone does not wait")
	}
	want(t, fs.StoreClosed(relaxed), nil)
}

// Times that are set while bytes are in memory stay, and those of a later write, too.
func TestTimesBeforeFlush(t *testing.T) {
	fs, kv := openBehind(t, nil)
	b := mustLookup(t, fs, RootIno, "bucket").Ino
	ino := mustFile(t, fs, b, "file")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	old := Time{Sec: 1_000_000_000, Nsec: 7}
	mtime := func() Time {
		t.Helper()
		a, err := fs.GetAttr(bg, ino)
		want(t, err, nil)
		return a.Mtime
	}
	write := func() {
		t.Helper()
		_, err := f.WriteAt(relaxed, []byte("text"), 0)
		want(t, err, nil)
	}
	set := func(s SetAttr) Attr {
		t.Helper()
		a, err := fs.SetAttr(relaxed, Root, ino, s)
		want(t, err, nil)
		return a
	}
	write()
	before := kv.attempts.Load()
	if a := set(SetAttr{Atime: &old, Mtime: &old}); a.Mtime != old || a.Size != 4 {
		t.Errorf("answered with mtime %v and %d bytes", a.Mtime, a.Size)
	}
	if n := kv.attempts.Load() - before; n != 1 || !fs.hasPieces(ino) {
		t.Errorf("%d transactions, bytes in memory: %v", n, fs.hasPieces(ino))
	}
	mode := uint32(0o600)
	set(SetAttr{Mode: &mode})
	for range 2 {
		if got := mtime(); got != old {
			t.Errorf("mtime is %v, want %v", got, old)
		}
		want(t, f.Sync(bg), nil)
	}
	write()
	set(SetAttr{Atime: &old})
	if mtime() == old {
		t.Error("a write did not move the time")
	}
	set(SetAttr{Mtime: &old})
	write()
	want(t, f.Sync(bg), nil)
	if mtime() == old {
		t.Error("a write after the time was set did not move it")
	}

	for attempts := range 3 { // of a transaction that fails
		write()
		now := mtime()
		setKV(fs, &rerunKV{kv, attempts, errors.New("once")})
		if _, err := fs.SetAttr(relaxed, Root, ino, SetAttr{Mtime: &old}); err == nil {
			t.Error("set in a store that takes nothing")
		}
		setKV(fs, kv)
		if mtime() != now {
			t.Errorf("what failed shows, attempt %d", attempts)
		}
		set(SetAttr{Mode: &mode})
		want(t, f.Sync(bg), nil)
		if mtime() != now {
			t.Errorf("what failed is stored, attempt %d", attempts)
		}
	}
	want(t, f.Close(bg), nil)
}
