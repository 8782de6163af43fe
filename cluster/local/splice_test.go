package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// spliceBlob is a blob of an engine.
type spliceBlob struct {
	*Blobs
	id cluster.BlobID
}

// spliceStore returns a blob of so many bytes on the disk, and its data.
func spliceStore(t testing.TB, bytes int) (spliceBlob, []byte) {
	t.Helper()
	c, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b := c.Blobs.(*Blobs)
	data := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	id := cluster.BlobID{Content: 1, Seq: 1}
	w, err := b.Create(t.Context(), id, int64(bytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return spliceBlob{b, id}, data
}

// spliced returns what Splice puts into a pipe of pipeBytes.
func (b spliceBlob) spliced(ctx context.Context, off, n int64, pipeBytes int) ([]byte, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if _, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, pipeBytes); err != nil {
		return nil, err
	}
	got, err := b.Splice(ctx, b.id, p[1], off, n)
	if err != nil {
		return nil, err
	}
	data := make([]byte, got)
	for at := 0; at < len(data); {
		k, err := unix.Read(p[0], data[at:])
		if err != nil || k == 0 {
			return nil, errors.Join(errors.New("the pipe holds less"), err)
		}
		at += k
	}
	return data, nil
}

// TestSplice: what comes is what ReadAt returns, from anywhere, over the borders of
// windows, and as much as the pipe holds.
func TestSplice(t *testing.T) {
	const size = 2*fileio.WindowBytes + 100_001
	b, data := spliceStore(t, size)
	for _, pipeBytes := range []int{1 << 20, 64 << 10} {
		for _, start := range []int64{0, 1, 4095, 65_537, fileio.WindowBytes - 1, size - 1} {
			for off := start; off < size; {
				n := min(size-off, 3<<20)
				got, err := b.spliced(t.Context(), off, n, pipeBytes)
				if err != nil || len(got) == 0 {
					t.Fatalf("at %d: %d bytes, %v", off, len(got), err)
				}
				if !bytes.Equal(got, data[off:off+int64(len(got))]) {
					t.Fatalf("at %d: other bytes", off)
				}
				off += int64(len(got))
			}
		}
	}
	for _, off := range []int64{-1, size} {
		if _, err := b.spliced(t.Context(), off, 10, 1<<20); !errors.Is(err, cluster.ErrNoSplice) {
			t.Errorf("at %d: %v", off, err)
		}
	}
}

// TestSpliceDeclines: a blob in a segment, one that is not there, a disk without
// pages.
func TestSpliceDeclines(t *testing.T) {
	b, _ := spliceStore(t, 100_000)
	for _, id := range []cluster.BlobID{b.id, {Content: 9, Seq: 9}} {
		b.id = id
		if _, err := b.spliced(t.Context(), 0, 1000, 1<<20); !errors.Is(err, cluster.ErrNoSplice) {
			t.Errorf("%v: %v", id, err)
		}
	}
}

// TestSpliceDamaged: a file that changed, is cut short or is gone under a mapping
// that was used is an error to who reads those bytes, and to nobody else: also where what
// was read before need not be verified again.
func TestSpliceDamaged(t *testing.T) {
	const size = 3 << 20
	for _, test := range []struct {
		name   string
		damage func(path string) error
		bad    int64 // an offset of what is lost
	}{
		{"changed", func(path string) error { return flip(path, 2<<20+70_000, 0) }, 2 << 20},
		{"changed on the disk", func(path string) error { return flip(path, 2<<20+70_000, unix.O_DIRECT) }, 2 << 20},
		{"cut", func(path string) error { return os.Truncate(path, 2<<20+100) }, 2 << 20},
		{"cut to nothing", func(path string) error { return os.Truncate(path, 0) }, 0},
		{"behind", func(path string) error { return flip(path, 0, 0) }, 0},
	} {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprint(test.name, " after ", times), func(t *testing.T) {
				b, data := spliceStore(t, size)
				for range times {
					for off := int64(0); off < size; off += 1 << 20 {
						if _, err := b.spliced(t.Context(), off, 1<<20, 1<<20); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := test.damage(record.BlobFile(b.dir, b.id)); errors.Is(err, unix.EINVAL) {
					t.Skip("no O_DIRECT here")
				} else if err != nil {
					t.Fatal(err)
				}
				for off := int64(0); off < size; off += 1 << 20 {
					got, err := b.spliced(t.Context(), off, 1<<20, 1<<20)
					p := make([]byte, 1<<20)
					_, read := b.ReadAt(t.Context(), b.id, p, off)
					lost := off == test.bad || test.name == "cut to nothing"
					if lost != errors.Is(err, cluster.ErrNoSplice) || lost != errors.Is(read, cluster.ErrCorrupt) {
						t.Errorf("at %d: %v and %v", off, err, read)
					}
					if !lost && !bytes.Equal(got, data[off:off+1<<20]) {
						t.Errorf("at %d: other bytes", off)
					}
				}
			})
		}
	}
}

// flip changes a byte of a file in place, opened with flags; O_DIRECT is past the page
// cache, which gives its pages up.
func flip(path string, off int64, flags int) error {
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer f.Close()
	page := fileio.NewPages(fileio.PageBytes)
	if _, err := f.ReadAt(page, off&^(fileio.PageBytes-1)); err != nil {
		return err
	}
	page[off%fileio.PageBytes] ^= 0x10
	_, err = f.WriteAt(page, off&^(fileio.PageBytes-1))
	return err
}

// TestSpliceFlips: while many read, a byte is changed on the disk, and the page cache
// gives up what it has: none reads another byte than the right one.
func TestSpliceFlips(t *testing.T) {
	const size = 2 << 20
	b, data := spliceStore(t, size)
	path := record.BlobFile(b.dir, b.id)
	if err := flip(path, size-1, unix.O_DIRECT); errors.Is(err, unix.EINVAL) {
		t.Skip("no O_DIRECT here")
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range int64(4) {
		wg.Go(func() {
			for off := i % 2 << 20; ; off = (off + 1<<20) % size {
				select {
				case <-done:
					return
				default:
				}
				got, err := b.spliced(t.Context(), off, 1<<20, 1<<20)
				if err != nil && !errors.Is(err, cluster.ErrNoSplice) || !bytes.Equal(got, data[off:][:len(got)]) {
					t.Errorf("at %d: %v, or other bytes", off, err)
					return
				}
			}
		})
	}
	for i := range int64(40) {
		if err := flip(path, i*50_000, unix.O_DIRECT); err != nil { // once each: what is bad stays so
			t.Error(err)
		}
		drop(t, path)
	}
	close(done)
	wg.Wait()
}

// drop has the page cache give up what it can of a file.
func drop(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// TestSpliceAlone: without a way to know which pages are there, all is verified each time.
func TestSpliceAlone(t *testing.T) {
	const size = 2 << 20
	b, data := spliceStore(t, size)
	b.windows = fileio.NewWindows(windowsBytes, nil)
	for range 3 {
		got, err := b.spliced(t.Context(), 0, size, 1<<20)
		if err != nil || !bytes.Equal(got, data[:len(got)]) {
			t.Fatal(err, "or other bytes")
		}
	}
	if b.windows.Bytes() != 0 {
		t.Error("something is mapped")
	}
	if err := flip(record.BlobFile(b.dir, b.id), 70_000, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.spliced(t.Context(), 0, size, 1<<20); !errors.Is(err, cluster.ErrNoSplice) {
		t.Error(err)
	}
}

// TestSpliceDeleted: what is in a pipe outlives the blob, whose space is given back
// with the mapping.
func TestSpliceDeleted(t *testing.T) {
	b, data := spliceStore(t, 2<<20)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	for range 2 {
		if _, err := b.spliced(t.Context(), 0, 1<<20, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	n, err := b.Splice(t.Context(), b.id, p[1], 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), b.id); err != nil {
		t.Fatal(err)
	}
	if b.windows.Bytes() != 0 {
		t.Errorf("%d bytes are mapped", b.windows.Bytes())
	}
	b.reaper.reap()
	if _, err := os.Stat(record.BlobFile(b.dir, b.id)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file is there:", err)
	}
	got := make([]byte, n)
	if k, err := unix.Read(p[0], got); err != nil || !bytes.Equal(got[:k], data[:k]) {
		t.Errorf("%d bytes, %v", k, err)
	}
	if _, err := b.Splice(t.Context(), b.id, p[1], 0, 1<<20); !errors.Is(err, cluster.ErrNoSplice) {
		t.Error(err)
	}
}

// TestSpliceMany: many readers of what is not in memory, and of more than may be
// mapped, while a part of them reads what is cut meanwhile.
func TestSpliceMany(t *testing.T) {
	const size, readers = 6 << 20, 32
	b, data := spliceStore(t, size)
	b.windows = fileio.NewWindows(2*fileio.WindowBytes, fileio.NewPresence(b.disk, b.dir))
	path := record.BlobFile(b.dir, b.id)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			for off := int64(i) << 10; off < size; {
				_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
				got, err := b.spliced(t.Context(), off, 1<<20, 1<<20)
				if errors.Is(err, cluster.ErrNoSplice) { // others have the windows
					off += 64 << 10
					continue
				}
				if err != nil || !bytes.Equal(got, data[off:off+int64(len(got))]) {
					t.Errorf("at %d: %v, or other bytes", off, err)
					return
				}
				off += int64(len(got))
			}
		})
	}
	wg.Wait()
}

// TestSpliceCut: who cuts and restores a file again and again while many read it makes
// them fail, and not crash. Of what is in a pipe already, a kernel that keeps many pages
// as one clears those behind the cut.
func TestSpliceCut(t *testing.T) {
	const size = 2 << 20
	b, data := spliceStore(t, size)
	path := record.BlobFile(b.dir, b.id)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				got, err := b.spliced(t.Context(), 1<<20, 1<<20, 1<<20)
				for i, b := range got {
					if want := data[1<<20+i]; b != want && b != 0 {
						t.Errorf("at %d: %x instead of %x", i, b, want)
						return
					}
				}
				if err != nil && !errors.Is(err, cluster.ErrNoSplice) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 100 {
		if err := os.Truncate(path, 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	wg.Wait()
}

func BenchmarkSplice(b *testing.B) {
	blobs, _ := spliceStore(b, 8<<20)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		b.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if _, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, fileio.WindowBytes); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(8 << 20)
	for b.Loop() {
		for off := int64(0); off < 8<<20; {
			n, err := blobs.Splice(b.Context(), blobs.id, p[1], off, 8<<20-off)
			if err != nil {
				b.Fatal(err)
			}
			off += n
			for n > 0 {
				k, err := unix.Splice(p[0], nil, int(null.Fd()), nil, int(n), 0)
				if err != nil {
					b.Fatal(err)
				}
				n -= k
			}
		}
	}
}
