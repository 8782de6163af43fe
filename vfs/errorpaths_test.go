package vfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// hookedBlobs calls the test before a blob is stored.
type hookedBlobs struct {
	cluster.Blobs
	before func()
}

func (b hookedBlobs) Create(ctx context.Context, id cluster.BlobID, n int64) (cluster.BlobWriter, error) {
	w, err := b.Blobs.Create(ctx, id, n)
	return hookedWriter{w, b.before}, err
}

type hookedWriter struct {
	cluster.BlobWriter
	before func()
}

func (w hookedWriter) Commit(ctx context.Context) (int64, uint64, error) {
	w.before()
	return w.BlobWriter.Commit(ctx)
}

// TestFlushBehindLastClose: what could not be stored when its writer closed, and that a flush
// holds while the last File goes, does not come over what is written afterwards.
func TestFlushBehindLastClose(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	ino := mustFile(t, fs, RootIno, "f")
	var next atomic.Bool // blob waits
	in, gate := make(chan struct{}), make(chan struct{})
	fs.blobs = hookedBlobs{fs.blobs, func() {
		if next.Swap(false) {
			close(in)
			<-gate
		}
	}}
	old, newer := bytes.Repeat([]byte{1}, 64<<10), bytes.Repeat([]byte{2}, 64<<10)
	writer, reader := mustOpen(t, fs, ino, OpenRead|OpenWrite), mustOpen(t, fs, ino, OpenRead)
	_, err := writer.WriteAt(bg, old, 0)
	want(t, err, nil)
	canceled, cancel := context.WithCancel(bg)
	cancel()
	want(t, writer.Close(canceled), context.Canceled)
	next.Store(true)
	flushed := make(chan error)
	go func() { flushed <- fs.flushAll(cluster.Relaxed(bg)) }() // as behind the writers
	<-in
	want(t, reader.Close(bg), nil)
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	_, err = f.WriteAt(bg, newer, 0)
	want(t, err, nil)
	want(t, f.Sync(bg), nil)
	close(gate)
	t.Log(<-flushed)
	got := make([]byte, len(newer))
	_, err = f.ReadAt(bg, got, 0)
	want(t, err, nil)
	if !bytes.Equal(got, newer) {
		t.Errorf("a synced byte is %d by now", got[0])
	}
	want(t, f.Close(bg), nil)
}

// TestCloseAfterSyncFailed: Close does what a Sync before could not.
func TestCloseAfterSyncFailed(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	kv := &unsyncedKV{KV: fs.kv}
	setKV(fs, kv)
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	_, err := f.WriteAt(bg, []byte("abc"), 0)
	want(t, err, nil)
	want(t, fs.flushAll(cluster.Relaxed(bg)), nil)
	kv.err = cluster.ErrUnavailable
	want(t, f.Sync(bg), ErrUnavailable)
	want(t, f.Close(bg), ErrUnavailable)
	kv.err = nil
}

// unsyncedKV makes nothing durable while err is set.
type unsyncedKV struct {
	cluster.KV
	err error
}

func (k *unsyncedKV) Sync(ctx context.Context) error {
	if k.err != nil {
		return k.err
	}
	return k.KV.Sync(ctx)
}

// TestFullBesideHolder: a file that cannot be stored, and has all memory for writes, makes
// others fail as it does, and not wait.
func TestFullBesideHolder(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{DirtyBytes: 8 << 20})
	kv := &failingKV{countingKV: countingKV{KV: fs.kv}}
	setKV(fs, kv)
	holder := mustOpen(t, fs, mustFile(t, fs, RootIno, "holder"), OpenRead|OpenWrite)
	var others []*File
	for i := range 40 {
		f := mustOpen(t, fs, mustFile(t, fs, RootIno, fmt.Sprint(i)), OpenRead|OpenWrite)
		_, err := f.WriteAt(bg, []byte("y"), 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		others = append(others, f)
	}
	kv.err = cluster.ErrNoSpace
	var err error
	for i := int64(0); err == nil; i++ {
		_, err = holder.WriteAt(bg, make([]byte, 4<<10), i*(16<<10))
	}
	want(t, err, ErrNoSpace)
	ctx, cancel := context.WithTimeout(bg, 10*time.Second)
	defer cancel()
	for _, f := range others {
		if _, err := f.WriteAt(ctx, []byte("z"), 10); err != nil {
			want(t, err, ErrNoSpace)
		}
	}
	kv.err = nil
	for _, f := range append(others, holder) {
		want(t, f.Close(bg), nil)
	}
}

// TestAppendObjectBesideAppend: what a program appended while the body came is there before:
// the offset is not the end any more.
func TestAppendObjectBesideAppend(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	put(t, fs, "k", "0123456789")
	ino := mustLookup(t, fs, mustLookup(t, fs, RootIno, "bucket").Ino, "k").Ino
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	body := io.MultiReader(readerFunc(func([]byte) (int, error) {
		_, err := f.Append(bg, []byte("pppp"))
		want(t, err, nil)
		return 0, io.EOF
	}), bytes.NewReader([]byte("S3S3S3")))
	_, err := fs.AppendObject(bg, ObjectName{"bucket", "k"}, 10, body, PutOptions{Size: 6})
	want(t, err, ErrWriteOffset)
	want(t, f.Close(bg), nil)
	wantFile(t, fs, ino, "0123456789pppp")
}

// TestEndMovesBesideAppend: what is appended while a transaction that moves the end commits
// goes behind the end that this leaves.
func TestEndMovesBesideAppend(t *testing.T) {
	size := int64(4)
	for _, c := range []struct {
		name, want string
		move       func(fs *FS, f *File, src *File) error
	}{
		{"SetAttr", "0123pppp", func(fs *FS, f, _ *File) error {
			_, err := fs.SetAttr(bg, Root, f.Ino(), SetAttr{Size: &size})
			return err
		}},
		{"OpenTrunc", "pppp", func(fs *FS, f, _ *File) error {
			g, err := fs.Open(bg, Root, f.Ino(), OpenWrite|OpenTrunc)
			if err == nil {
				err = g.Close(bg)
			}
			return err
		}},
		{"Allocate", "0123456789\x00\x00pppp", func(_ *FS, f, _ *File) error { return f.Allocate(bg, 0, 0, 12) }},
		{"CopyRange", "01234abcdefgpppp", func(_ *FS, f, src *File) error {
			_, err := f.CopyRange(bg, 5, src, 0, 7)
			return err
		}},
		{"AppendObject", "0123456789S3S3S3pppp", func(fs *FS, f, _ *File) error {
			_, err := fs.AppendObject(bg, ObjectName{"bucket", "k"}, 10, strings.NewReader("S3S3S3"), PutOptions{Size: 6})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 4}))
			put(t, fs, "k", "0123456789")
			put(t, fs, "src", "abcdefg")
			bucket := mustLookup(t, fs, RootIno, "bucket").Ino
			f := mustOpen(t, fs, mustLookup(t, fs, bucket, "k").Ino, OpenRead|OpenWrite)
			src := mustOpen(t, fs, mustLookup(t, fs, bucket, "src").Ino, OpenRead)
			_, err := f.WriteAt(bg, []byte("0"), 0)
			want(t, err, nil)
			want(t, f.Sync(bg), nil)
			appended := make(chan error, 1)
			h := hook(fs)
			h.commits = func() {
				h.commits = nil
				go func() {
					_, err := f.Append(bg, []byte("pppp"))
					appended <- err
				}()
				time.Sleep(20 * time.Millisecond)
			}
			want(t, c.move(fs, f, src), nil)
			want(t, <-appended, nil)
			want(t, src.Close(bg), nil)
			want(t, f.Close(bg), nil)
			wantFile(t, fs, f.Ino(), c.want)
		})
	}
}

// TestTruncateBusyAppender: a file that is cut to nothing again and again has what was
// appended since, from its beginning on.
func TestTruncateBusyAppender(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ino := mustFile(t, fs, RootIno, "log")
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		stop, done := make(chan struct{}), make(chan error)
		go func() {
			for {
				if _, err := f.Append(bg, []byte("line\n")); err != nil {
					done <- err
					return
				}
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
			}
		}()
		for range 20 {
			g := mustOpen(t, fs, ino, OpenWrite|OpenTrunc)
			want(t, g.Close(bg), nil)
			a, err := fs.GetAttr(bg, ino)
			want(t, err, nil)
			text := make([]byte, a.Size)
			n, err := f.ReadAt(bg, text, 0)
			if err != nil && err != io.EOF || bytes.IndexByte(text[:n], 0) >= 0 {
				t.Fatalf("%v; zeros at %d of %d bytes", err, bytes.IndexByte(text[:n], 0), n)
			}
		}
		close(stop)
		want(t, <-done, nil)
		want(t, f.Close(bg), nil)
	})
}

// TestMoveGivenUp: who waits for one that moves the end goes on when that fails, or when he is
// not to wait any more.
func TestMoveGivenUp(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	ino := mustFile(t, fs, RootIno, "f")
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	h := hook(fs)
	h.commits = func() {
		h.commits = nil
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		_, err := f.WriteAt(ctx, []byte("x"), 0)
		want(t, err, context.DeadlineExceeded)
	}
	size, other := int64(4), int64(1)
	_, err := fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
	want(t, err, nil)
	_, err = fs.SetAttr(bg, Root, ino, SetAttr{Size: &size, GuardCtimeNS: &other})
	want(t, err, ErrConflict)
	_, err = f.WriteAt(bg, []byte("x"), 0)
	want(t, err, nil)
	want(t, f.Close(bg), nil)
	wantFile(t, fs, ino, "x\x00\x00\x00")
}

// TestStaleFlushBesideWriter: a flush that finds its file replaced drops what was written to
// the content before, and nothing that somebody wrote to the new one meanwhile.
func TestStaleFlushBesideWriter(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	put(t, fs, "k", "old")
	ino := mustLookup(t, fs, mustLookup(t, fs, RootIno, "bucket").Ino, "k").Ino
	f, g := mustOpen(t, fs, ino, OpenRead|OpenWrite), mustOpen(t, fs, ino, OpenRead|OpenWrite)
	_, err := f.WriteAt(bg, []byte("lost"), 0)
	want(t, err, nil)
	setKV(fs, &appendingKV{KV: fs.kv, then: func() {
		put(t, fs, "k", "new")
		_, err := g.WriteAt(bg, []byte("er"), 3)
		want(t, err, nil)
	}})
	want(t, f.Sync(bg), ErrStale)
	want(t, g.Sync(bg), nil)
	want(t, g.Close(bg), nil)
	want(t, f.Close(bg), nil)
	wantFile(t, fs, ino, "newer")
}

// TestLateLoadBesideWriter: a view from before a PUT, which comes back after somebody wrote
// to the new content, drops nothing of that.
func TestLateLoadBesideWriter(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	put(t, fs, "k", "old")
	ino := mustLookup(t, fs, mustLookup(t, fs, RootIno, "bucket").Ino, "k").Ino
	f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
	h := hook(fs)
	h.peeked = func() {
		h.peeked = nil
		put(t, fs, "k", "new")
		_, err := f.WriteAt(bg, []byte("er"), 3)
		want(t, err, nil)
		f.of.dropSnapshot(anyContent)
	}
	want(t, f.of.load(bg, true), nil)
	want(t, f.Close(bg), nil)
	wantFile(t, fs, ino, "newer")
}

// TestFailedLoad: a read that cannot load what it reads, or whose inode is gone, asks once, and
// not for as long as the engine's patience times the attempts.
func TestFailedLoad(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	_, err := f.WriteAt(bg, []byte("x"), 0)
	want(t, err, nil)
	h, asked := hook(fs), 0
	for _, read := range []func() error{
		func() error { _, err := f.ReadAt(bg, make([]byte, 1), 0); return err },
		func() error { _, err := f.SeekData(bg, 0); return err },
	} {
		for _, fails := range []error{ErrUnavailable, ErrStale} {
			f.of.dropSnapshot(anyContent)
			h.peek = func(func(cluster.Reader) error) error {
				asked++
				return fails
			}
			want(t, read(), fails)
			h.peek = nil
			want(t, read(), nil)
		}
	}
	if asked != 4 {
		t.Errorf("asked the engine %d times for 4 reads", asked)
	}
	want(t, f.Close(bg), nil)
}

// TestCopyRangeOverlap: ranges overlap however long they are.
func TestCopyRangeOverlap(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	_, err := f.WriteAt(bg, []byte("0123456789"), 0)
	want(t, err, nil)
	for _, off := range []int64{0, 5} {
		_, err := f.CopyRange(bg, off, f, 5-off, math.MaxInt64)
		want(t, err, ErrInvalid)
	}
	want(t, f.Close(bg), nil)
	wantFile(t, fs, f.Ino(), "0123456789")
}

// appendingKV calls then before the next transaction.
type appendingKV struct {
	cluster.KV
	then func()
}

func (k *appendingKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if then := k.then; then != nil {
		k.then = nil
		then()
	}
	return k.KV.Update(ctx, fn)
}

// wantFile checks what a file has.
func wantFile(t *testing.T, fs *FS, ino Ino, text string) {
	t.Helper()
	f := mustOpen(t, fs, ino, OpenRead)
	got := make([]byte, len(text)+64)
	n, err := f.ReadAt(bg, got, 0)
	if !errors.Is(err, io.EOF) || string(got[:n]) != text {
		t.Errorf("%q, %v, want %q", got[:n], err, text)
	}
	want(t, f.Close(bg), nil)
}

// TestSyncedUnderFaults: several programs write parts of one file, sync, close and open it again, while
// what they wrote is flushed behind them, the engine fails now and then, and closes are given
// up. Each finds what it synced, or something newer.
func TestSyncedUnderFaults(t *testing.T) {
	for name, inline := range map[string]int{"inline": 1 << 20, "blobs": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSeed(t)
			faults := &mem.Faults{}
			fs := openTestWith(t, mem.New(mem.Options{Faults: faults}), Config{InlineBytes: inline})
			fs.blobs = hookedBlobs{fs.blobs, func() {
				if rand.IntN(3) == 0 {
					time.Sleep(rand.N(5 * time.Millisecond))
				}
			}}
			ino := mustFile(t, fs, RootIno, "f")
			ctx, cancel := context.WithTimeout(bg, 2*time.Second)
			defer cancel()
			var others, writers sync.WaitGroup
			others.Go(func() {
				for ctx.Err() == nil {
					_ = fs.flushAll(relaxed)
				}
			})
			for k := range 3 {
				w := &partWriter{t: t, fs: fs, ino: ino, off: int64(k) * partBytes, r: rand.New(rand.NewPCG(r.Uint64(), uint64(k)))}
				writers.Go(func() {
					for ctx.Err() == nil {
						w.step()
						time.Sleep(time.Duration(w.r.IntN(4_000_000))) // so that nobody has it open for a moment
					}
				})
			}
			for r := rand.New(rand.NewPCG(r.Uint64(), 9)); ctx.Err() == nil; time.Sleep(time.Millisecond) {
				faults.FailAt(1+r.IntN(30), errBoom)
			}
			writers.Wait()
			faults.Clear()
			others.Wait()
		})
	}
}

const partBytes = 20 << 10

// partWriter writes versions of a part that is its own.
type partWriter struct {
	t              *testing.T
	fs             *FS
	ino            Ino
	off            int64
	r              *rand.Rand
	synced, newest uint64
}

// step opens the file, looks, and writes the next version.
func (w *partWriter) step() {
	f, err := w.fs.Open(bg, Root, w.ino, OpenRead|OpenWrite)
	if err != nil {
		return
	}
	p := make([]byte, partBytes)
	if n, err := f.ReadAt(bg, p, w.off); err == nil || errors.Is(err, io.EOF) {
		if v := versionOf(w.t, p[:n]); v < w.synced || v > w.newest {
			w.t.Errorf("part at %d: version %d, synced is %d, written %d", w.off, v, w.synced, w.newest)
		}
	}
	w.newest++
	for i := 0; i < len(p); i += 8 {
		binary.BigEndian.PutUint64(p[i:], w.newest)
	}
	_, err = f.WriteAt(bg, p, w.off)
	if err == nil && w.r.IntN(2) == 0 && f.Sync(bg) == nil {
		w.synced = w.newest
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	if w.r.IntN(3) == 0 {
		cancel()
	}
	if f.Close(ctx) == nil && err == nil {
		w.synced = w.newest
	}
}

// versionOf returns the version of a part, 0 of none.
func versionOf(t *testing.T, p []byte) (v uint64) {
	for i := 0; i+8 <= len(p); i += 8 {
		switch w := binary.BigEndian.Uint64(p[i:]); {
		case i == 0:
			v = w
		case v != w:
			t.Errorf("a part is of versions %d and %d", v, w)
			return v
		}
	}
	return v
}
