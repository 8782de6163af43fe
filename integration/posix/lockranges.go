package posix

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockRangeCases: which locks exclude each other, range by range.
var lockRangeCases = []namedCase{
	{"ranges of two descriptions", func(t *T, d string) { lockMatrix(t, d) }},
	{"flock modes", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		for _, held := range []int{unix.LOCK_SH, unix.LOCK_EX} {
			for _, asked := range []int{unix.LOCK_SH, unix.LOCK_EX} {
				for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR} {
					a, b := open(t, d+"/f", flags), open(t, d+"/f", flags)
					wantErr(t, "flock", unix.Flock(a, held|unix.LOCK_NB), 0)
					want := unix.EAGAIN
					if held == unix.LOCK_SH && asked == unix.LOCK_SH {
						want = 0
					}
					wantErr(t, fmt.Sprintf("flock %d over %d, opened %d", asked, held, flags), unix.Flock(b, asked|unix.LOCK_NB), want)
					wantErr(t, "unlock", unix.Flock(a, unix.LOCK_UN), 0)
					wantErr(t, "flock after it", unix.Flock(b, asked|unix.LOCK_NB), 0)
					wantErr(t, "unlock", unix.Flock(b, unix.LOCK_UN), 0)
				}
			}
		}
		fd := open(t, d+"/f", unix.O_RDONLY)
		wantErr(t, "bad mode", unix.Flock(fd, 0), unix.EINVAL)
		p := open(t, d+"/f", unix.O_PATH)
		wantErr(t, "O_PATH", unix.Flock(p, unix.LOCK_SH), unix.EBADF)
		dfd := open(t, d, unix.O_RDONLY|unix.O_DIRECTORY)
		_ = dfd
	}},
	{"splitting and joining", func(t *T, d string) {
		touch(t, d+"/f", 0o666)
		a, b := open(t, d+"/f", unix.O_RDWR), open(t, d+"/f", unix.O_RDWR)
		lock := func(fd int, typ int16, start, n int64) error {
			_, err := setlk(fd, unix.F_OFD_SETLK, typ, start, n)
			return err
		}
		must(t, lock(a, unix.F_WRLCK, 0, 100))
		must(t, lock(a, unix.F_UNLCK, 40, 20))
		must(t, lock(a, unix.F_RDLCK, 10, 10))
		for pos := int64(0); pos < 110; pos++ {
			w, r := unix.EAGAIN, unix.EAGAIN
			if pos >= 40 && pos < 60 || pos >= 100 {
				w, r = 0, 0
			} else if pos >= 10 && pos < 20 {
				r = 0
			}
			for typ, want := range map[int16]syscall.Errno{unix.F_WRLCK: w, unix.F_RDLCK: r} {
				if wantErr(t, fmt.Sprintf("lock %d of byte %d", typ, pos), lock(b, typ, pos, 1), want) {
					must(t, lock(b, unix.F_UNLCK, pos, 1))
				}
			}
		}
	}},
}

func lockMatrix(t *T, d string) {
	touch(t, d+"/f", 0o666)
	a, b := open(t, d+"/f", unix.O_RDWR), open(t, d+"/f", unix.O_RDWR)
	ranges := [][2]int64{{0, 0}, {0, 1}, {5, 10}, {9, 1}, {10, 5}, {14, 1}, {15, 1}, {4, 1}, {15, 0}, {1 << 40, 0}}
	overlap := func(x, y [2]int64) bool {
		end := func(r [2]int64) int64 {
			if r[1] == 0 {
				return 1<<63 - 1
			}
			return r[0] + r[1]
		}
		return x[0] < end(y) && y[0] < end(x)
	}
	types := []int16{unix.F_RDLCK, unix.F_WRLCK}
	for _, ht := range types {
		for _, held := range ranges {
			_, err := setlk(a, unix.F_OFD_SETLK, ht, held[0], held[1])
			must(t, err)
			for _, at := range types {
				for _, asked := range ranges {
					want := syscall.Errno(0)
					clash := overlap(held, asked) && (ht == unix.F_WRLCK || at == unix.F_WRLCK)
					if clash {
						want = unix.EAGAIN
					}
					what := fmt.Sprintf("lock %d of %v over %d of %v", at, asked, ht, held)
					got, err := setlk(b, unix.F_OFD_GETLK, at, asked[0], asked[1])
					must(t, err)
					if clash {
						check(t, got.Type == ht && got.Start == held[0] && got.Len == held[1], "F_GETLK of %s: %+v", what, got)
					} else {
						check(t, got.Type == unix.F_UNLCK, "F_GETLK of %s: %+v", what, got)
					}
					_, err = setlk(b, unix.F_OFD_SETLK, at, asked[0], asked[1])
					wantErr(t, what, err, want)
					_, err = setlk(b, unix.F_OFD_SETLK, unix.F_UNLCK, 0, 0)
					must(t, err)
				}
			}
			_, err = setlk(a, unix.F_OFD_SETLK, unix.F_UNLCK, 0, 0)
			must(t, err)
		}
	}
}
