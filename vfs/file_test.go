package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// smallTuning makes all that comes in large pieces come in small ones.
func smallTuning(fs *FS) {
	fs.tune = tuning{uploadBytes: 8 << 10, flushOps: 40}
	fs.contents.ExtentPage = 3
}

func openContentTest(t testing.TB, c *cluster.Cluster, cfg Config) *FS {
	t.Helper()
	cfg.NoBackground = true
	fs, err := Open(bg, c, cfg)
	want(t, err, nil)
	smallTuning(fs)
	t.Cleanup(func() { fs.Close(bg); c.Close() })
	return fs
}

func mustOpen(t testing.TB, fs *FS, ino Ino, flags OpenFlags) *File {
	t.Helper()
	f, err := fs.Open(bg, Root, ino, flags)
	want(t, err, nil)
	return f
}

func newSeed(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func fill(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32()) | 1 // never zero: holes show
	}
	return p
}

// fileModel is a file and what its bytes must be.
type fileModel struct {
	f    *File
	data []byte
}

func (m *fileModel) grow(n int64) {
	if int64(len(m.data)) < n {
		m.data = append(m.data, make([]byte, n-int64(len(m.data)))...)
	}
}

const modelBytes = 96 << 10

// step does one random operation on files and model alike.
func modelStep(t *testing.T, r *rand.Rand, fs *FS, files []*fileModel) string {
	i := r.IntN(len(files))
	m := files[i]
	off := r.Int64N(modelBytes)
	if r.IntN(3) == 0 {
		off &^= 4095
	}
	n := 1 + r.Int64N(1<<r.IntN(16))
	switch r.IntN(20) {
	default:
		p := fill(r, int(n))
		_, err := m.f.WriteAt(bg, p, off)
		want(t, err, nil)
		m.grow(off + n)
		copy(m.data[off:], p)
		return fmt.Sprintf("write %d at %d of %d", n, off, i)
	case 0, 1, 2:
		p := fill(r, int(n/4+1))
		at, err := m.f.Append(bg, p)
		want(t, err, nil)
		if at != int64(len(m.data)) {
			t.Fatalf("appended at %d, want %d", at, len(m.data))
		}
		m.data = append(m.data, p...)
		if len(m.data) > 2*modelBytes {
			want(t, setSize(fs, m.f.Ino(), modelBytes), nil)
			m.data = m.data[:modelBytes]
		}
		return fmt.Sprintf("append %d to %d", len(p), i)
	case 3:
		want(t, setSize(fs, m.f.Ino(), off), nil)
		if off < int64(len(m.data)) {
			m.data = m.data[:off]
		}
		m.grow(off)
		return fmt.Sprintf("truncate %d to %d", i, off)
	case 4:
		want(t, m.f.Sync(bg), nil)
		return fmt.Sprintf("sync %d", i)
	case 5:
		ino := m.f.Ino()
		want(t, m.f.Close(bg), nil)
		m.f = mustOpen(t, fs, ino, OpenRead|OpenWrite)
		return fmt.Sprintf("reopen %d", i)
	case 6:
		want(t, m.f.Allocate(bg, AllocPunchHole|AllocKeepSize, off, n), nil)
		if off < int64(len(m.data)) {
			clear(m.data[off:min(off+n, int64(len(m.data)))])
		}
		return fmt.Sprintf("punch %d at %d of %d", n, off, i)
	case 7:
		want(t, m.f.Allocate(bg, AllocZeroRange, off, n), nil)
		m.grow(off + n)
		clear(m.data[off : off+n])
		return fmt.Sprintf("zero %d at %d of %d", n, off, i)
	case 8, 9:
		j := r.IntN(len(files))
		src := files[j]
		if len(src.data) == 0 {
			return "nothing"
		}
		from := r.Int64N(int64(len(src.data)))
		n := min(n*4, int64(len(src.data))-from)
		if j == i && from < off+n && off < from+n {
			_, err := m.f.CopyRange(bg, off, src.f, from, n)
			want(t, err, ErrInvalid)
			return "overlap"
		}
		got, err := m.f.CopyRange(bg, off, src.f, from, n)
		want(t, err, nil)
		if got != n {
			t.Fatalf("copied %d, want %d", got, n)
		}
		p := bytes.Clone(src.data[from : from+n])
		m.grow(off + n)
		copy(m.data[off:], p)
		return fmt.Sprintf("copy %d from %d of %d to %d of %d", n, from, j, off, i)
	case 10:
		_, err := fs.Collect(bg)
		want(t, err, nil)
		return "collect"
	case 11:
		want(t, fs.contents.CompactFile(bg, m.f.Ino(), 4, 32<<10), nil)
		return fmt.Sprintf("compact %d", i)
	}
}

func setSize(fs *FS, ino Ino, size int64) error {
	_, err := fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
	return err
}

func (m *fileModel) check(t *testing.T, r *rand.Rand) error {
	a, err := m.f.Attr(bg)
	if err != nil {
		return err
	}
	if a.Size != int64(len(m.data)) {
		return fmt.Errorf("size %d, want %d", a.Size, len(m.data))
	}
	off := int64(0)
	if len(m.data) > 0 && r.IntN(2) == 0 {
		off = r.Int64N(int64(len(m.data)))
	}
	p := make([]byte, int64(len(m.data))-off+1)
	n, err := m.f.ReadAt(bg, p, off)
	if err != io.EOF {
		return fmt.Errorf("read: %d, %v", n, err)
	}
	if n != len(p)-1 {
		return fmt.Errorf("read %d bytes, want %d", n, len(p)-1)
	}
	if d := firstDiff(p[:n], m.data[off:]); d >= 0 {
		return fmt.Errorf("byte %d is %d, want %d", off+int64(d), p[d], m.data[off+int64(d)])
	}
	return nil
}

func firstDiff(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// checkCRC compares the stored checksum, if there is one.
func checkCRC(t *testing.T, fs *FS, ino Ino, data []byte) {
	t.Helper()
	want(t, fs.flushInode(bg, ino), nil)
	want(t, fs.view(bg, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err == nil && n.Has(record.FlagCRC) && n.CRC != crc64nvme.Checksum(data) {
			t.Errorf("stored checksum of inode %d is wrong", ino)
		}
		return err
	}), nil)
}

func TestFileModel(t *testing.T) {
	configs := []struct {
		name string
		cfg  Config
	}{
		{"inline", Config{}},
		{"blobs", Config{InlineBytes: 1}},
		{"mixed", Config{InlineBytes: 600}},
	}
	for _, e := range engines {
		for _, c := range configs {
			t.Run(e.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				r := newSeed(t)
				fs := openContentTest(t, e.open(t), c.cfg)
				files := make([]*fileModel, 3)
				for i := range files {
					ino := mustFile(t, fs, RootIno, fmt.Sprint("f", i))
					files[i] = &fileModel{f: mustOpen(t, fs, ino, OpenRead|OpenWrite)}
				}
				steps := 1500
				if e.name != "mem" {
					steps = 300
				}
				if testing.Short() {
					steps /= 5
				}
				var log []string
				for range steps {
					log = append(log, modelStep(t, r, fs, files))
					for i, m := range files {
						if err := m.check(t, r); err != nil {
							t.Fatalf("file %d: %v\nafter %v", i, err, log[max(0, len(log)-12):])
						}
					}
				}
				for _, m := range files {
					checkCRC(t, fs, m.f.Ino(), m.data)
				}
				mustBeClean(t, fs)
				for _, m := range files {
					want(t, m.f.Close(bg), nil)
				}
			})
		}
	}
}

func mustBeClean(t *testing.T, fs *FS) {
	t.Helper()
	want(t, fs.flushAll(bg), nil)
	rep, err := fs.Check(bg, CheckOptions{Data: true})
	want(t, err, nil)
	for _, p := range rep.Problems {
		t.Errorf("check: %s: %s", p.Kind, p.Detail)
	}
}

// Readers see every write whole: each is one byte value over the whole file.
func TestFileConcurrent(t *testing.T) {
	fs := openContentTest(t, mem.New(mem.Options{}), Config{InlineBytes: 64})
	ino := mustFile(t, fs, RootIno, "f")
	const size = 40 << 10
	w := mustOpen(t, fs, ino, OpenWrite)
	_, err := w.WriteAt(bg, bytes.Repeat([]byte{1}, size), 0)
	want(t, err, nil)
	ctx, cancel := context.WithTimeout(bg, 700*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			f := mustOpen(t, fs, ino, OpenWrite)
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := f.WriteAt(bg, bytes.Repeat([]byte{byte(1 + k + i%50)}, size), 0); err != nil {
					t.Error(err)
				}
				if i%5 == k {
					if err := f.Sync(bg); err != nil {
						t.Error(err)
					}
				}
			}
			if err := f.Close(bg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := fs.Collect(bg); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		wg.Go(func() {
			f := mustOpen(t, fs, ino, OpenRead)
			p := make([]byte, size)
			for ctx.Err() == nil {
				n, err := f.ReadAt(bg, p, 0)
				if err != nil || n != size {
					t.Errorf("read %d: %v", n, err)
					return
				}
				if bytes.Count(p, p[:1]) != size {
					t.Error("read a mixture of two writes")
					return
				}
			}
			f.Close(bg)
		})
	}
	wg.Wait()
	want(t, w.Close(bg), nil)
	mustBeClean(t, fs)
}

// A replaced content: writers become stale, readers see the new bytes.
func TestReplacedUnderWriter(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ino := mustFile(t, fs, RootIno, "f")
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		_, err := f.WriteAt(bg, []byte("old old old"), 0)
		want(t, err, nil)
		replace(t, fs, ino, []byte("new"))
		p := make([]byte, 20)
		n, err := f.ReadAt(bg, p, 0)
		if err != io.EOF || string(p[:n]) != "new" {
			t.Fatalf("read %q, %v", p[:n], err)
		}
		_, err = f.WriteAt(bg, []byte("x"), 5)
		want(t, err, ErrStale)
		want(t, f.Sync(bg), ErrStale)
		want(t, f.Close(bg), nil)
		if fs.Losses() != 1 {
			t.Errorf("%d losses, want 1", fs.Losses())
		}
	})
}

func writeContent(t testing.TB, fs *FS, data []byte) *content.Written {
	t.Helper()
	w, err := fs.contents.NewWriter(bg, 0, int64(len(data)))
	want(t, err, nil)
	_, err = w.Write(data)
	want(t, err, nil)
	c, err := w.Finish(bg)
	want(t, err, nil)
	return c
}

func replace(t testing.TB, fs *FS, ino Ino, data []byte) {
	t.Helper()
	c := writeContent(t, fs, data)
	want(t, fs.update(bg, func(tx cluster.Txn, o *op) error {
		n, err := record.GetInode(tx, ino)
		if err != nil {
			return err
		}
		if err := o.contents.Set(tx, n, c); err != nil {
			return err
		}
		return record.PutInode(tx, n)
	}), nil)
}

// A reader keeps the bytes that it began with.
func TestContentReaderKeepsBytes(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ino := mustFile(t, fs, RootIno, "f")
		old := fill(rand.New(rand.NewPCG(1, 2)), 100<<10)
		replace(t, fs, ino, old)
		var rd *content.Reader
		want(t, fs.view(bg, func(r cluster.Reader) error {
			n, err := record.GetInode(r, ino)
			if err != nil {
				return err
			}
			rd, err = fs.contents.Open(bg, r, n)
			return err
		}), nil)
		replace(t, fs, ino, []byte("new"))
		_, err := fs.Collect(bg)
		want(t, err, nil)
		p := make([]byte, len(old))
		if n, err := rd.ReadAt(p, 0); n != len(p) || err != nil || !bytes.Equal(p, old) {
			t.Fatalf("read %d, %v", n, err)
		}
		rd.Close()
		if n, err := fs.Collect(bg); n != 1 || err != nil {
			t.Fatalf("collected %d, %v", n, err)
		}
		mustBeClean(t, fs)
	})
}

var errBoom = errors.New("boom")
