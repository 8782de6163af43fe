package fusemount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// fsx does random operations on one file through the mount and compares
// every byte with a model in memory.
type fsx struct {
	t     *testing.T
	r     *rand.Rand
	name  string
	fd    int
	model []byte
	log   []string // the last operations, for a failure
	max   int
}

const fsxLog = 200

// TestFSX: OGW_FSX_SEED repeats a run, OGW_FSX_OPS lengthens it.
// Meanwhile other doors change what is beside the file, and its attributes.
func TestFSX(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		inChild(t, over, func(dir string) { testFSX(t, dir) }, func(ctx context.Context, fs *vfs.FS) { fsxBeside(ctx, t, fs) })
	})
}

// fsxBeside makes random changes through the object and POSIX interfaces.
func fsxBeside(ctx context.Context, t *testing.T, fs *vfs.FS) {
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 5))
	changes := 0
	for ctx.Err() == nil {
		key := fmt.Sprintf("beside/%d/o%d", r.IntN(3), r.IntN(10))
		body := bytes.Repeat([]byte("beside"), r.IntN(30000))
		var err error
		switch r.IntN(5) {
		case 0, 1:
			_, err = fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body))})
		case 2:
			_, err = fs.DeleteObject(bg, vfs.ObjectName{Bucket: "bucket", Key: key}, vfs.DeleteOptions{})
		case 3:
			err = fsxBesideWrite(fs, key, body)
		case 4: // the file itself: what the kernel knows of its size must stay right
			mode := uint32(0o600 + r.IntN(64))
			if a, e := fs.Resolve(bg, vfs.Root, fmt.Sprintf("bucket/fsx%d", r.IntN(3)), true); e == nil {
				_, err = fs.SetAttr(bg, vfs.Root, a.Ino, vfs.SetAttr{Mode: &mode})
				if errors.Is(err, vfs.ErrStale) {
					err = nil
				}
			}
		}
		if err != nil {
			t.Errorf("beside the file: %v", err)
			return
		}
		changes++
		time.Sleep(time.Millisecond) // it shares the machine with the file
	}
	t.Logf("%d changes beside the files", changes)
}

// fsxBesideWrite writes to a file as NFS does.
func fsxBesideWrite(fs *vfs.FS, key string, body []byte) error {
	a, err := fs.Resolve(bg, vfs.Root, "bucket/"+key, true)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := fs.Open(bg, vfs.Root, a.Ino, vfs.OpenWrite)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(bg, body, int64(len(body)/2))
	return errors.Join(err, f.Close(bg))
}

func testFSX(t *testing.T, dir string) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("OGW_FSX_SEED"), 10, 64); err == nil {
		seed = s
	}
	ops := 10_000
	if testing.Short() {
		ops = 500
	}
	if n, err := strconv.Atoi(os.Getenv("OGW_FSX_OPS")); err == nil {
		ops = n
	}
	for i, max := range []int{40 << 10, 400 << 10, 6 << 20} {
		t.Run(fmt.Sprintf("up to %d KiB", max>>10), func(t *testing.T) {
			s := seed + uint64(i)
			t.Logf("seed %d (OGW_FSX_SEED=%d repeats the whole)", s, seed)
			x := &fsx{t: t, r: rand.New(rand.NewPCG(s, 4)), name: filepath.Join(dir, fmt.Sprintf("fsx%d", i)), max: max}
			x.open(unix.O_CREAT)
			defer func() { unix.Close(x.fd) }()
			for n := range ops / (1 + 2*i) {
				x.step()
				if t.Failed() {
					for _, l := range x.log {
						t.Log(l)
					}
					t.Fatalf("at operation %d", n)
				}
			}
			x.reopen()
			x.compare(0, len(x.model)+1)
		})
	}
}

func (x *fsx) note(format string, args ...any) {
	if x.log = append(x.log, fmt.Sprintf(format, args...)); len(x.log) > fsxLog {
		x.log = x.log[1:]
	}
}

func (x *fsx) ok(err error) {
	if err != nil {
		x.t.Errorf("%s: %v", x.log[len(x.log)-1], err)
	}
}

func (x *fsx) open(flags int) {
	fd, err := unix.Open(x.name, unix.O_RDWR|flags, 0o644)
	must(x.t, err)
	x.fd = fd
}

func (x *fsx) reopen() {
	x.note("close and open")
	x.ok(unix.Close(x.fd))
	x.open(0)
	if x.r.IntN(2) == 0 {
		x.ok(unix.Fadvise(x.fd, 0, 0, unix.FADV_DONTNEED))
	}
}

// span returns a random range that begins within the file or a little behind.
func (x *fsx) span() (off, n int) {
	off = x.r.IntN(min(x.max, len(x.model)+len(x.model)/4+100))
	n = 1 + x.r.IntN(min(x.max-off, []int{100, 5000, 70000, 2 << 20}[x.r.IntN(4)]))
	return off, n
}

func (x *fsx) grow(size int) {
	if size > len(x.model) {
		x.model = append(x.model, make([]byte, size-len(x.model))...)
	}
}

func (x *fsx) random(n int) []byte {
	b := make([]byte, n)
	c := byte(1 + x.r.IntN(255))
	for i := range b {
		b[i] = c + byte(i>>4)
	}
	return b
}

func (x *fsx) step() {
	switch x.r.IntN(19) {
	case 0, 1, 2:
		off, n := x.span()
		b := x.random(n)
		x.note("write %d at %d", n, off)
		got, err := unix.Pwrite(x.fd, b, int64(off))
		if err == nil && got != n {
			err = fmt.Errorf("wrote %d", got)
		}
		x.ok(err)
		x.grow(off + n)
		copy(x.model[off:], b)
	case 3, 4, 5, 6:
		off, n := x.span()
		x.compare(off, n)
	case 7:
		size := x.r.IntN(x.max)
		if x.r.IntN(3) > 0 {
			size = x.r.IntN(len(x.model) + 1)
		}
		x.note("truncate to %d (was %d)", size, len(x.model))
		x.ok(unix.Ftruncate(x.fd, int64(size)))
		x.grow(size)
		x.model = x.model[:size]
	case 8:
		x.mapped(true)
	case 9:
		x.mapped(false)
	case 10:
		off, n := x.span()
		mode := []uint32{unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE,
			unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE, 0, unix.FALLOC_FL_KEEP_SIZE}[x.r.IntN(5)]
		x.note("fallocate mode %#x, %d at %d (size %d)", mode, n, off, len(x.model))
		x.ok(unix.Fallocate(x.fd, mode, int64(off), int64(n)))
		if mode&unix.FALLOC_FL_KEEP_SIZE == 0 {
			x.grow(off + n)
		}
		if mode&^uint32(unix.FALLOC_FL_KEEP_SIZE) != 0 && off < len(x.model) {
			clear(x.model[off:min(len(x.model), off+n)])
		}
	case 11:
		x.copyRange()
	case 12:
		x.note("fsync")
		x.ok(unix.Fsync(x.fd))
	case 13:
		x.reopen()
	case 14:
		b := x.random(1 + x.r.IntN(5000))
		if len(x.model)+len(b) > x.max {
			return
		}
		x.note("append %d at %d", len(b), len(x.model))
		fd, err := unix.Open(x.name, unix.O_WRONLY|unix.O_APPEND, 0)
		x.ok(err)
		_, err = unix.Write(fd, b)
		x.ok(err)
		x.ok(unix.Close(fd))
		x.model = append(x.model, b...)
	case 15:
		var st unix.Stat_t
		x.note("stat")
		x.ok(unix.Stat(x.name, &st))
		if st.Size != int64(len(x.model)) {
			x.t.Errorf("size %d, want %d", st.Size, len(x.model))
		}
	case 16:
		x.direct()
	case 17:
		x.note("rename")
		x.ok(unix.Rename(x.name, x.name+"-moved"))
		x.ok(unix.Rename(x.name+"-moved", x.name))
	case 18:
		x.private()
	}
}

// direct reads past the page cache.
func (x *fsx) direct() {
	const align = 4096
	buf, err := unix.Mmap(-1, 0, 64*align, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	x.ok(err)
	defer unix.Munmap(buf)
	fd, err := unix.Open(x.name, unix.O_RDONLY|unix.O_DIRECT, 0)
	x.note("open O_DIRECT")
	x.ok(err)
	defer unix.Close(fd)
	off := x.r.IntN(len(x.model)/align+1) * align
	n := (1 + x.r.IntN(64)) * align
	x.note("direct read of %d at %d (size %d)", n, off, len(x.model))
	got, err := unix.Pread(fd, buf[:n], int64(off))
	x.ok(err)
	x.same(buf[:max(got, 0)], x.model[min(off, len(x.model)):min(off+n, len(x.model))], off)
}

// private writes to a private mapping, which the file must not see.
func (x *fsx) private() {
	if len(x.model) == 0 {
		return
	}
	m, err := unix.Mmap(x.fd, 0, len(x.model), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	x.note("private mmap of %d", len(x.model))
	x.ok(err)
	if err != nil {
		return
	}
	off := x.r.IntN(len(x.model))
	n := min(len(x.model)-off, 1+x.r.IntN(20000))
	x.same(m[off:off+n], x.model[off:off+n], off)
	copy(m[off:off+n], x.random(n))
	x.ok(unix.Munmap(m))
	x.compare(off, n)
}

// compare reads a range and compares it.
func (x *fsx) compare(off, n int) {
	x.note("read %d at %d (size %d)", n, off, len(x.model))
	b := make([]byte, n)
	got, err := unix.Pread(x.fd, b, int64(off))
	x.ok(err)
	want := x.model[min(off, len(x.model)):min(off+n, len(x.model))]
	x.same(b[:max(got, 0)], want, off)
}

func (x *fsx) same(got, want []byte, off int) {
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	last := min(len(got), len(want)) - 1
	for last > i && got[last] == want[last] {
		last--
	}
	x.t.Errorf("read %d bytes at %d, want %d; they differ from %d to %d: %x, want %x; past the page cache they are %s",
		len(got), off, len(want), off+i, off+last, got[i:min(i+8, len(got))], want[i:min(i+8, len(want))], x.stored())
}

// stored compares the whole file with what the server holds.
func (x *fsx) stored() string {
	fd, err := unix.Open(x.name, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, (len(x.model)/4096+2)*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err.Error()
	}
	defer unix.Munmap(buf)
	n, err := unix.Pread(fd, buf, 0)
	switch {
	case err != nil:
		return err.Error()
	case bytes.Equal(buf[:n], x.model):
		return "right"
	}
	return fmt.Sprintf("wrong too (%d bytes of %d)", n, len(x.model))
}

// mapped reads or writes through a shared mapping.
func (x *fsx) mapped(writing bool) {
	if len(x.model) == 0 {
		return
	}
	prot := unix.PROT_READ
	if writing {
		prot |= unix.PROT_WRITE
	}
	m, err := unix.Mmap(x.fd, 0, len(x.model), prot, unix.MAP_SHARED)
	x.note("mmap of %d, write %v", len(x.model), writing)
	x.ok(err)
	if err != nil {
		return
	}
	off := x.r.IntN(len(x.model))
	n := min(len(x.model)-off, 1+x.r.IntN(20000))
	if writing {
		b := x.random(n)
		x.note("  store %d at %d", n, off)
		copy(m[off:], b)
		copy(x.model[off:], b)
	} else {
		x.note("  load %d at %d", n, off)
		x.same(m[off:off+n], x.model[off:off+n], off)
	}
	x.ok(unix.Munmap(m))
}

func (x *fsx) copyRange() {
	if len(x.model) == 0 {
		return
	}
	from := x.r.IntN(len(x.model))
	n := min(len(x.model)-from, 1+x.r.IntN(100000))
	to := x.r.IntN(max(1, x.max-n))
	if from < to+n && to < from+n {
		return // overlapping ranges of one file are refused
	}
	x.note("copy_file_range %d from %d to %d (size %d)", n, from, to, len(x.model))
	in, out := int64(from), int64(to)
	for left := n; left > 0; {
		k, err := unix.CopyFileRange(x.fd, &in, x.fd, &out, left, 0)
		x.ok(err)
		if err != nil || k == 0 {
			break
		}
		left -= k
	}
	x.grow(to + n)
	copy(x.model[to:to+n], bytes.Clone(x.model[from:from+n]))
}
