package posix

import (
	"bytes"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// futimens is utimensat on a descriptor.
func futimens(fd int, a, m unix.Timespec) error {
	ts := [2]unix.Timespec{a, m}
	if _, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts[0])), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

// sizeSteps are sizes and offsets around the limits of pages and blocks.
var sizeSteps = []int64{0, 1, 100, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 1<<20 - 1, 1 << 20, 1<<20 + 1}

func pattern(n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(1 + (i*7+i>>8)%255)
	}
	return b
}

var sizeCases = []namedCase{
	{"truncate from every size to every size", func(t *T, d string) {
		for _, from := range sizeSteps {
			for i, to := range sizeSteps {
				p := fmt.Sprintf("%s/%d-%d", d, from, to)
				data := pattern(from)
				must(t, os.WriteFile(p, data, 0o644))
				if i%2 == 0 {
					wantErr(t, "truncate", unix.Truncate(p, to), 0)
				} else {
					fd, err := unix.Open(p, unix.O_RDWR, 0)
					must(t, err)
					wantErr(t, "ftruncate", unix.Ftruncate(fd, to), 0)
					unix.Close(fd)
				}
				want := append(data[:min(from, to):min(from, to)], make([]byte, max(0, to-from))...)
				sameFile(t, p, want, fmt.Sprintf("truncated from %d to %d", from, to))
				must(t, os.Remove(p))
			}
		}
	}},
	{"shrunk and grown", func(t *T, d string) {
		for _, size := range sizeSteps[2:] {
			for _, cut := range []int64{0, 1, size / 2, size - 1} {
				p := d + "/f"
				data := pattern(size)
				must(t, os.WriteFile(p, data, 0o644))
				must(t, unix.Truncate(p, cut))
				must(t, unix.Truncate(p, size))
				clear(data[cut:])
				sameFile(t, p, data, fmt.Sprintf("%d bytes cut to %d and grown", size, cut))
				must(t, os.Remove(p))
			}
		}
	}},
	{"writes at every offset", func(t *T, d string) {
		for _, base := range []int64{0, 5000, 200000} {
			for _, off := range sizeSteps {
				for _, n := range []int64{1, 4096, 70000} {
					p := d + "/f"
					want := pattern(base)
					must(t, os.WriteFile(p, want, 0o644))
					fd, err := unix.Open(p, unix.O_RDWR, 0)
					must(t, err)
					b := bytes.Repeat([]byte{0xEE}, int(n))
					k, err := unix.Pwrite(fd, b, off)
					check(t, err == nil && k == len(b), "pwrite of %d at %d: %d, %v", n, off, k, err)
					must(t, unix.Close(fd))
					if off+n > base {
						want = append(want, make([]byte, off+n-base)...)
					}
					copy(want[off:], b)
					sameFile(t, p, want, fmt.Sprintf("%d bytes at %d of %d", n, off, base))
				}
			}
		}
	}},
	{"reads at every offset", func(t *T, d string) {
		data := pattern(300_000)
		must(t, os.WriteFile(d+"/f", data, 0o644))
		fd := open(t, d+"/f", unix.O_RDONLY)
		for _, off := range append(sizeSteps, 299_999, 300_000, 300_001) {
			for _, n := range []int64{0, 1, 511, 4096, 131072, 400_000} {
				b := make([]byte, n)
				k, err := unix.Pread(fd, b, off)
				want := data[min(off, 300_000):min(off+n, 300_000)]
				check(t, err == nil && bytes.Equal(b[:max(k, 0)], want), "pread of %d at %d: %d, %v; want %d", n, off, k, err, len(want))
			}
		}
	}},
	{"copy_file_range at every offset", func(t *T, d string) {
		src := pattern(300_000)
		must(t, os.WriteFile(d+"/src", src, 0o644))
		in := open(t, d+"/src", unix.O_RDONLY)
		for _, from := range []int64{0, 1, 4096, 100_000, 299_999, 300_000, 400_000} {
			for _, to := range []int64{0, 1, 4095, 65536, 200_000} {
				for _, n := range []int64{1, 4096, 70_000, 300_000} {
					want := bytes.Repeat([]byte{0xDD}, 100_000)
					must(t, os.WriteFile(d+"/dst", want, 0o644))
					out, err := unix.Open(d+"/dst", unix.O_RDWR, 0)
					must(t, err)
					i, o, left := from, to, n
					for left > 0 {
						k, err := unix.CopyFileRange(in, &i, out, &o, int(left), 0)
						if !wantErr(t, "copy_file_range", err, 0) || k == 0 {
							break
						}
						left -= int64(k)
					}
					unix.Close(out)
					part := src[min(from, 300_000):min(from+n, 300_000)]
					if end := to + int64(len(part)); len(part) > 0 && end > int64(len(want)) {
						want = append(want, make([]byte, end-int64(len(want)))...)
					}
					if len(part) > 0 {
						copy(want[to:], part)
					}
					sameFile(t, d+"/dst", want, fmt.Sprintf("%d copied from %d to %d", n, from, to))
				}
			}
		}
	}},
	{"size limits", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
		wantErr(t, "ftruncate(-1)", unix.Ftruncate(fd, -1), unix.EINVAL)
		wantErr(t, "truncate(-1)", unix.Truncate(d+"/f", -1), unix.EINVAL)
		for _, size := range []int64{1 << 31, 1 << 32, 1 << 40, 1 << 43} {
			wantErr(t, fmt.Sprintf("ftruncate(%d)", size), unix.Ftruncate(fd, size), 0)
			check(t, lstat(t, d+"/f").Size == size, "size after ftruncate(%d)", size)
		}
		_, err := unix.Seek(fd, -1, 0)
		wantErr(t, "lseek to -1", err, unix.EINVAL)
	}},
}

func sameFile(t *T, p string, want []byte, what string) {
	t.Helper()
	got, err := os.ReadFile(p)
	check(t, err == nil && bytes.Equal(got, want), "%s: %d bytes, %v; want %d; first difference at %d", what, len(got), err, len(want), firstDifference(got, want))
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

var fallocateCases = []namedCase{
	{"modes", fallocateModes},
	{"every range", func(t *T, d string) {
		const size = 200_000
		modes := []struct {
			name  string
			mode  uint32
			zero  bool
			grows bool
		}{
			{"allocate", 0, false, true}, {"keep size", unix.FALLOC_FL_KEEP_SIZE, false, false},
			{"punch hole", unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, true, false},
			{"zero range", unix.FALLOC_FL_ZERO_RANGE, true, true},
			{"zero range, keep size", unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE, true, false},
		}
		for _, m := range modes {
			if m.mode&unix.FALLOC_FL_ZERO_RANGE != 0 && !t.has(ZeroRange) {
				continue
			}
			for _, off := range []int64{0, 1, 4096, 5000, 131072, 199_999, 200_000, 250_000} {
				for _, n := range []int64{1, 4095, 4096, 65536, 150_000, 300_000} {
					p := d + "/f"
					want := pattern(size)
					must(t, os.WriteFile(p, want, 0o644))
					fd, err := unix.Open(p, unix.O_RDWR, 0)
					must(t, err)
					what := fmt.Sprintf("%s of %d at %d", m.name, n, off)
					wantErr(t, what, unix.Fallocate(fd, m.mode, off, n), 0)
					unix.Close(fd)
					if m.grows && off+n > size {
						want = append(want, make([]byte, off+n-size)...)
					}
					if m.zero {
						clear(want[min(off, int64(len(want))):min(off+n, int64(len(want)))])
					}
					sameFile(t, p, want, what)
				}
			}
		}
	}},
	{"errors", func(t *T, d string) {
		fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
		for _, c := range []struct{ off, n int64 }{{-1, 10}, {0, -1}, {10, -5}, {0, 0}} {
			wantErr(t, fmt.Sprintf("fallocate(%d, %d)", c.off, c.n), unix.Fallocate(fd, 0, c.off, c.n), unix.EINVAL)
		}
		wantErr(t, "beyond the largest offset", unix.Fallocate(fd, 0, 1<<62, 1<<62), unix.EFBIG)
		wantErr(t, "PUNCH_HOLE without KEEP_SIZE", unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE, 0, 10), unix.EOPNOTSUPP)
		r := open(t, d+"/f", unix.O_RDONLY)
		wantErr(t, "reading descriptor", unix.Fallocate(r, 0, 0, 10), unix.EBADF)
		dfd := open(t, d, unix.O_RDONLY|unix.O_DIRECTORY)
		wantErr(t, "directory", unix.Fallocate(dfd, 0, 0, 10), unix.EBADF)
		p := open(t, d+"/f", unix.O_PATH)
		wantErr(t, "O_PATH", unix.Fallocate(p, 0, 0, 10), unix.EBADF)
	}},
}
