package posix

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open opens name until the end of the case. Who closes it before that closes, at
// the end, a descriptor of another case: that is an error if nobody has one there.
func open(t *T, name string, flags int) int {
	t.Helper()
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o644)
	must(t, err)
	t.Cleanup(func() { wantErr(t, "close of "+name, unix.Close(fd), 0) })
	return fd
}

func pwrite(t *T, fd int, p []byte, off int64) {
	t.Helper()
	if n, err := unix.Pwrite(fd, p, off); err != nil || n != len(p) {
		t.Fatalf("pwrite of %d at %d: %d, %v", len(p), off, n, err)
	}
}

func pread(t *T, fd, size int, off int64) []byte {
	t.Helper()
	b := make([]byte, size)
	n, err := unix.Pread(fd, b, off)
	must(t, err)
	return b[:n]
}

var dataCases = []namedCase{
	{"holes read as zeros", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
		pwrite(t, fd, []byte("end"), 1<<20)
		if got := pread(t, fd, 10, 100); !bytes.Equal(got, make([]byte, 10)) {
			t.Errorf("hole reads %q", got)
		}
		if got := pread(t, fd, 10, 1<<20); string(got) != "end" {
			t.Errorf("data reads %q", got)
		}
		if got := pread(t, fd, 10, 2<<20); len(got) != 0 {
			t.Errorf("behind the end: %q", got)
		}
	}},
	{"seek data and hole", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
		pwrite(t, fd, bytes.Repeat([]byte("d"), 1<<20), 4<<20)
		must(t, unix.Ftruncate(fd, 16<<20))
		must(t, unix.Fsync(fd))
		for _, c := range []struct {
			off    int64
			whence int
			lo, hi int64 // bounds: a file system may know holes less exactly
			want   syscall.Errno
		}{
			{0, unix.SEEK_DATA, 0, 4 << 20, 0}, {4 << 20, unix.SEEK_DATA, 4 << 20, 4 << 20, 0},
			{4 << 20, unix.SEEK_HOLE, 5 << 20, 16 << 20, 0}, {16 << 20, unix.SEEK_DATA, 0, 0, unix.ENXIO},
			{16<<20 + 1, unix.SEEK_HOLE, 0, 0, unix.ENXIO}, {15 << 20, unix.SEEK_HOLE, 15 << 20, 16 << 20, 0},
		} {
			off, err := unix.Seek(fd, c.off, c.whence)
			what := fmt.Sprintf("lseek(%d, %d)", c.off, c.whence)
			wantErr(t, what, err, c.want)
			if c.want == 0 && (off < c.lo || off > c.hi) {
				t.Errorf("%s = %d, want %d to %d", what, off, c.lo, c.hi)
			}
		}
	}},
	{"copy_file_range", func(t *T, d string) {
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
		must(t, os.WriteFile(d+"/src", data, 0o644))
		src, dst := open(t, d+"/src", unix.O_RDONLY), open(t, d+"/dst", unix.O_CREAT|unix.O_RDWR)
		in, out := int64(100), int64(50)
		left := len(data) - 100
		for left > 0 {
			n, err := unix.CopyFileRange(src, &in, dst, &out, left, 0)
			must(t, err)
			if n == 0 {
				break
			}
			left -= n
		}
		if left != 0 {
			t.Fatalf("%d bytes not copied", left)
		}
		if got := pread(t, dst, len(data)+100, 0); !bytes.Equal(got, append(make([]byte, 50), data[100:]...)) {
			t.Error("wrong bytes")
		}
		in = int64(len(data))
		if n, err := unix.CopyFileRange(src, &in, dst, &out, 10, 0); n != 0 || err != nil {
			t.Errorf("behind the end: %d, %v", n, err)
		}
		pwrite(t, dst, []byte("X"), 60)
		if got := pread(t, src, 1, 110); got[0] == 'X' {
			t.Error("the copy shares its bytes with the source")
		}
	}},
	{"append", func(t *T, d string) {
		write(t, d+"/f", "start-")
		a, b := open(t, d+"/f", unix.O_WRONLY|unix.O_APPEND), open(t, d+"/f", unix.O_RDWR|unix.O_APPEND)
		for i := range 3 {
			_, err := fmt.Fprintf(fdWriter(a), "a%d", i)
			must(t, err)
			pwrite(t, b, fmt.Appendf(nil, "b%d", i), 0) // Linux: O_APPEND wins over the offset
		}
		wantText(t, d+"/f", "start-a0b0a1b1a2b2")
	}},
	{"appends of many processes do not overlap", func(t *T, d string) {
		touch(t, d+"/f", 0o644)
		var wg sync.WaitGroup
		for g := range 4 {
			fd := open(t, d+"/f", unix.O_WRONLY|unix.O_APPEND)
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 50 {
					unix.Write(fd, []byte(fmt.Sprintf("%07d\n", g)))
				}
			}()
		}
		wg.Wait()
		b, err := os.ReadFile(d + "/f")
		must(t, err)
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		if len(lines) != 200 {
			t.Errorf("%d lines, want 200", len(lines))
		}
		for _, l := range lines {
			if len(l) != 7 {
				t.Fatalf("torn line %q", l)
			}
		}
	}},
	{"mmap", func(t *T, d string) {
		const size = 3*4096 + 100
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
		must(t, unix.Ftruncate(fd, size))
		m, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		must(t, err)
		copy(m[4000:], "across pages")
		must(t, unix.Msync(m, unix.MS_SYNC))
		if got := pread(t, fd, 12, 4000); string(got) != "across pages" {
			t.Errorf("pread sees %q", got)
		}
		pwrite(t, fd, []byte("WRITTEN"), 8192)
		if string(m[8192:8199]) != "WRITTEN" {
			t.Error("the mapping does not see a write")
		}
		p, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		must(t, err)
		p[0] = 'P'
		if got := pread(t, fd, 1, 0); got[0] == 'P' {
			t.Error("a private mapping wrote to the file")
		}
		must(t, unix.Munmap(p))
		m[0] = 'M'
		must(t, unix.Munmap(m))
		must(t, unix.Fsync(fd))
		b, err := os.ReadFile(d + "/f")
		must(t, err)
		if b[0] != 'M' || string(b[4000:4012]) != "across pages" || len(b) != size {
			t.Error("the file lacks what was mapped")
		}
	}},
	{"O_DIRECT", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR|unix.O_DIRECT)
		buf, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		must(t, err)
		defer unix.Munmap(buf)
		for i := range buf {
			buf[i] = byte(i / 4096)
		}
		pwrite(t, fd, buf, 0)
		pwrite(t, fd, buf[:4096], 1<<20)
		cached := open(t, d+"/f", unix.O_RDONLY)
		if got := pread(t, cached, 4096, 8192); got[0] != 2 {
			t.Errorf("cached read of a direct write: %d", got[0])
		}
		clear(buf)
		n, err := unix.Pread(fd, buf, 4096)
		if err != nil || n != 1<<20 || buf[0] != 1 {
			t.Errorf("direct read: %d, %v, %d", n, err, buf[0])
		}
	}},
	{"O_SYNC, fsync, fdatasync, syncfs", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR|unix.O_SYNC)
		pwrite(t, fd, []byte("x"), 0)
		must(t, unix.Fsync(fd))
		must(t, unix.Fdatasync(fd))
		must(t, unix.Syncfs(fd))
	}},
	{"offsets at the limit", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
		_, err := unix.Pwrite(fd, []byte("xy"), 1<<63-1)
		wantErr(t, "beyond the largest offset", err, unix.EINVAL)
		_, err = unix.Pread(fd, make([]byte, 1), -1)
		wantErr(t, "negative", err, unix.EINVAL)
		pwrite(t, fd, []byte("far"), 1<<43)
		if got := pread(t, fd, 5, 1<<43); string(got) != "far" {
			t.Errorf("%q", got)
		}
	}},
	{"large file, read back in pieces", func(t *T, d string) {
		data := make([]byte, 9<<20+123)
		for i := range data {
			data[i] = byte(i * 7 >> 8)
		}
		must(t, os.WriteFile(d+"/f", data, 0o644))
		unix.Fadvise(open(t, d+"/f", unix.O_RDONLY), 0, 0, unix.FADV_DONTNEED)
		got, err := os.ReadFile(d + "/f")
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if st := lstat(t, d+"/f"); st.Blocks*512 < int64(len(data)) {
			t.Errorf("%d blocks for %d bytes", st.Blocks, len(data))
		}
	}},
	{"executing", func(t *T, d string) {
		write(t, d+"/run", "#!/bin/sh\necho ran\n")
		wantErr(t, "without x", execErr(d+"/run"), unix.EACCES)
		must(t, unix.Chmod(d+"/run", 0o755))
		wantErr(t, "with x", execErr(d+"/run"), 0)
	}},
}

func execErr(name string) error {
	p, err := os.StartProcess(name, []string{name}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

type fdWriter int

func (f fdWriter) Write(p []byte) (int, error) { return unix.Write(int(f), p) }

// flockT is struct flock as fcntl takes it.
func setlk(fd, cmd int, typ int16, start, length int64) (unix.Flock_t, error) {
	l := unix.Flock_t{Type: typ, Whence: 0, Start: start, Len: length}
	_, _, e := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), uintptr(cmd), uintptr(unsafe.Pointer(&l)))
	if e != 0 {
		return l, e
	}
	return l, nil
}

func fallocateModes(t *T, d string) {
	fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
	size := func() int64 { return lstat(t, d+"/f").Size }
	must(t, unix.Fallocate(fd, 0, 0, 8192))
	if size() != 8192 {
		t.Errorf("size %d", size())
	}
	must(t, unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 1<<20))
	if size() != 8192 {
		t.Errorf("KEEP_SIZE: size %d", size())
	}
	pwrite(t, fd, bytes.Repeat([]byte("x"), 8192), 0)
	must(t, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 1000, 2000))
	want := bytes.Repeat([]byte("x"), 8192)
	clear(want[1000:3000])
	if got := pread(t, fd, 9000, 0); !bytes.Equal(got, want) {
		t.Error("PUNCH_HOLE: wrong bytes")
	}
	if !t.has(ZeroRange) {
		return
	}
	must(t, unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 8000, 1000))
	want = append(want[:8000], make([]byte, 1000)...)
	if got := pread(t, fd, 10000, 0); !bytes.Equal(got, want) {
		t.Errorf("ZERO_RANGE: wrong bytes (%d)", len(got))
	}
	wantErr(t, "length 0", unix.Fallocate(fd, 0, 0, 0), unix.EINVAL)
	if t.has(Own) {
		for _, mode := range []uint32{unix.FALLOC_FL_COLLAPSE_RANGE, unix.FALLOC_FL_INSERT_RANGE, unix.FALLOC_FL_UNSHARE_RANGE} {
			wantErr(t, fmt.Sprintf("fallocate mode %x", mode), unix.Fallocate(fd, mode, 0, 4096), unix.EOPNOTSUPP)
		}
	}
	r := open(t, d+"/f", unix.O_RDONLY)
	wantErr(t, "reading descriptor", unix.Fallocate(r, 0, 0, 10), unix.EBADF)
}
