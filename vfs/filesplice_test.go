package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"ogw/cluster"
)

// spliced returns what Splice puts into a pipe, which a reader takes out meanwhile.
func spliced(t *testing.T, f *File, off, n int64) ([]byte, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(r)
		out <- b
	}()
	got, err := f.Splice(bg, int(w.Fd()), off, n)
	w.Close()
	b := <-out
	if err == nil && int64(len(b)) != got {
		t.Errorf("%d bytes are in the pipe, %d were put there", len(b), got)
	}
	return b, err
}

// newLocalFile makes one that is open for reading and writing.
func newLocalFile(t *testing.T, fs *FS) *File {
	t.Helper()
	_, f, _, err := fs.Create(bg, Root, RootIno, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	return f
}

func cuts(fs *FS, f *File) func(size int64) error {
	return func(size int64) error {
		_, err := fs.SetAttr(bg, Root, f.of.ino, SetAttr{Size: &size})
		return err
	}
}

// What Splice hands out is what ReadAt returns, whatever is stored, written and cut; and
// most of what is stored it does.
func TestFileSplice(t *testing.T) {
	const size = 20 << 20
	fs := openTest(t, openLocal(t))
	f := newLocalFile(t, fs)
	defer f.Close(bg)
	r := rand.New(rand.NewPCG(1, 2))
	cut := cuts(fs, f)
	write := func(off, n int64) {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		_, err := f.WriteAt(bg, b, off)
		want(t, err, nil)
	}
	write(0, size)
	want(t, f.Sync(bg), nil)
	hits, all := 0, 0
	for round := range 80 {
		switch r.IntN(12) {
		case 0:
			write(r.Int64N(size), 1+r.Int64N(300_000))
		case 1:
			write(r.Int64N(size), 1+r.Int64N(8<<20))
			want(t, f.Sync(bg), nil)
		case 2:
			want(t, cut(size/2+r.Int64N(size)), nil)
		case 3:
			want(t, f.Sync(bg), nil)
		}
		off, n := r.Int64N(size/4096)*4096, 1+r.Int64N(1<<20)
		whole := make([]byte, n)
		k, err := f.ReadAt(bg, whole, off)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		got, err := spliced(t, f, off, n)
		switch {
		case err == nil && !bytes.Equal(got, whole[:k]):
			t.Fatalf("round %d: %d bytes at %d, or others than the %d that are read", round, len(got), off, k)
		case err == nil:
			hits++
		case !errors.Is(err, cluster.ErrNoSplice):
			t.Fatalf("round %d: %v", round, err)
		}
		all++
	}
	if hits < all/10 {
		t.Errorf("%d of %d were spliced", hits, all)
	}
}

// What is not stored, not there or not to be read is not spliced.
func TestFileSpliceDeclines(t *testing.T) {
	fs := openTest(t, openLocal(t))
	f := newLocalFile(t, fs)
	cut := cuts(fs, f)
	_, err := f.WriteAt(bg, make([]byte, 8<<20), 0)
	want(t, err, nil)
	_, err = spliced(t, f, 0, 4096)
	want(t, err, cluster.ErrNoSplice) // not stored
	want(t, f.Sync(bg), nil)
	if got, err := spliced(t, f, 0, 4096); err != nil || len(got) != 4096 {
		t.Errorf("%d bytes of what is stored, %v", len(got), err)
	}
	want(t, cut(10<<20), nil)
	for _, off := range []int64{-1, 8 << 20, 10 << 20, 11 << 20} {
		_, err = spliced(t, f, off, 4096)
		want(t, err, cluster.ErrNoSplice)
	}
	w, err := fs.Open(bg, Root, f.of.ino, OpenWrite)
	want(t, err, nil)
	_, err = spliced(t, w, 0, 4096)
	want(t, err, ErrBadHandle)
	want(t, w.Close(bg), nil)
	want(t, f.Close(bg), nil)
	_, err = spliced(t, f, 0, 4096)
	want(t, err, ErrBadHandle)
}

// A reader of what is written over all the time sees one time of it.
func TestFileSpliceOfOneTime(t *testing.T) {
	const size, rounds = 4 << 20, 15
	fs := openTest(t, openLocal(t))
	f := newLocalFile(t, fs)
	defer f.Close(bg)
	write := func(round int) {
		if _, err := f.WriteAt(bg, bytes.Repeat([]byte{byte(round)}, size), 0); err != nil {
			t.Error(err)
		}
		if err := f.Sync(bg); err != nil {
			t.Error(err)
		}
	}
	write(0)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for last := byte(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				got, err := spliced(t, f, size/4, 1<<20)
				if err != nil {
					continue
				}
				if got[0] < last || !bytes.Equal(got, bytes.Repeat(got[:1], len(got))) {
					t.Errorf("of two times: %d, %d after %d", got[0], got[len(got)-1], last)
				}
				last = got[0]
			}
		})
	}
	for round := range rounds {
		write(round + 1)
	}
	close(stop)
	readers.Wait()
}
