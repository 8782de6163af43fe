// Package fusebench measures file systems through the kernel: the ogw mount
// beside a FUSE file system without a store and a plain directory.
package fusebench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Scale is how much is measured.
type Scale struct {
	Files    int   // for create, stat, open, unlink
	Listing  int   // entries of the directory that is listed
	Bytes    int64 // written and read in sequence
	Parallel int   // threads of the parallel figures
}

// DefaultScale takes some 20 seconds a file system.
func DefaultScale() Scale {
	return Scale{Files: 10000, Listing: 100_000, Bytes: 1 << 30, Parallel: 4}
}

// Result is one figure: operations or bytes per second.
type Result struct {
	Name string
	Unit string // "op/s", "entries/s" or "MB/s"
	Rate float64
}

type step struct {
	name, unit string
	run        func(dir string, s Scale) (float64, error)
}

var steps = []step{
	{"create", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, create) }},
	{"stat, cached", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, stat) }},
	{"stat, cold", "op/s", func(d string, s Scale) (float64, error) { return cold(d, s, 1, stat) }},
	{"open+close", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, open) }},
	{"unlink", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, os.Remove) }},
	{"create, parallel", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, s.Parallel, create) }},
	{"stat, cold, parallel", "op/s", func(d string, s Scale) (float64, error) { return cold(d, s, s.Parallel, stat) }},
	{"open+close, parallel", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, s.Parallel, open) }},
	{"unlink, parallel", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, s.Parallel, os.Remove) }},
	{"create 4 KiB, close", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, createSmall) }},
	{"readdir", "entries/s", readdir},
	{"readdir with stat", "entries/s", readdirStat},
	{"write, sequential", "MB/s", writeSeq},
	{"read, sequential", "MB/s", readSeq},
	{"write, O_DIRECT", "MB/s", writeDirect},
	{"read, O_DIRECT", "MB/s", readDirect},
}

// Measure runs all steps in a fresh directory below dir, which it removes.
func Measure(dir string, s Scale) (list []Result, err error) {
	top, err := os.MkdirTemp(dir, "fusebench")
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := os.RemoveAll(top); err == nil {
			err = e
		}
	}()
	for _, st := range steps {
		rate, err := st.run(top, s)
		if err != nil {
			return list, fmt.Errorf("%s: %w", st.name, err)
		}
		list = append(list, Result{st.name, st.unit, rate})
	}
	return list, nil
}

// Print writes a table: what was measured, its limits, and the ratio to each.
func Print(w io.Writer, own []Result, noop, plain []Result) {
	fmt.Fprintf(w, "%-24s %12s %12s %7s %12s %7s\n", "", "ogw", "no-op FUSE", "ratio", "plain dir", "ratio")
	for i, r := range own {
		fmt.Fprintf(w, "%-24s %12s %12s %6.0f%% %12s %6.0f%%\n", r.Name, format(r), format(noop[i]),
			100*r.Rate/noop[i].Rate, format(plain[i]), 100*r.Rate/plain[i].Rate)
	}
}

func format(r Result) string { return fmt.Sprintf("%.0f %s", r.Rate, r.Unit) }

// perFile runs op on every file of a directory with n threads.
func perFile(dir string, s Scale, n int, op func(string) error) (float64, error) {
	d := filepath.Join(dir, "files")
	if err := os.MkdirAll(d, 0o755); err != nil {
		return 0, err
	}
	names := make([]string, s.Files)
	for i := range names {
		names[i] = filepath.Join(d, fmt.Sprintf("file-%06d", i))
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, n)
	begin := time.Now()
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				if err := op(names[i]); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	wg.Wait()
	took := time.Since(begin)
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(s.Files) / took.Seconds(), nil
	}
}

// cold is perFile after the kernel forgot all names and attributes. Only
// root can make it do so.
func cold(dir string, s Scale, n int, op func(string) error) (float64, error) {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		return 0, err
	}
	return perFile(dir, s, n, op)
}

func create(name string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func createSmall(name string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, make([]byte, 4096)); err != nil {
		unix.Close(fd)
		return err
	}
	return unix.Close(fd)
}

func stat(name string) error {
	var st unix.Stat_t
	return unix.Lstat(name, &st)
}

func open(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func readdir(dir string, s Scale) (float64, error) {
	d := filepath.Join(dir, "listing")
	if err := os.Mkdir(d, 0o755); err != nil {
		return 0, err
	}
	for i := range s.Listing {
		if err := create(filepath.Join(d, fmt.Sprintf("entry-%08d", i))); err != nil {
			return 0, err
		}
	}
	return list(d, s, func(f *os.File, n int) (int, error) {
		names, err := f.Readdirnames(n)
		return len(names), err
	})
}

func readdirStat(dir string, s Scale) (float64, error) {
	return list(filepath.Join(dir, "listing"), s, func(f *os.File, n int) (int, error) {
		infos, err := f.Readdir(n)
		return len(infos), err
	})
}

func list(d string, s Scale, read func(*os.File, int) (int, error)) (float64, error) {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		return 0, err
	}
	f, err := os.Open(d)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	begin, n := time.Now(), 0
	for {
		got, err := read(f, 1000)
		n += got
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if n != s.Listing {
		return 0, fmt.Errorf("%d entries listed of %d", n, s.Listing)
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

const ioBytes = 1 << 20

func writeSeq(dir string, s Scale) (float64, error)    { return write(dir, s, 0) }
func writeDirect(dir string, s Scale) (float64, error) { return write(dir, s, unix.O_DIRECT) }
func readSeq(dir string, s Scale) (float64, error)     { return read(dir, s, 0) }
func readDirect(dir string, s Scale) (float64, error)  { return read(dir, s, unix.O_DIRECT) }

// write includes the fsync: what is measured is durable.
func write(dir string, s Scale, flags int) (float64, error) {
	fd, err := unix.Open(filepath.Join(dir, "data"), unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|flags, 0o644)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buf, free, err := aligned()
	if err != nil {
		return 0, err
	}
	defer free()
	begin := time.Now()
	for n := int64(0); n < s.Bytes; n += ioBytes {
		if _, err := unix.Write(fd, buf); err != nil {
			return 0, err
		}
	}
	if err := unix.Fsync(fd); err != nil {
		return 0, err
	}
	return float64(s.Bytes) / 1e6 / time.Since(begin).Seconds(), nil
}

func read(dir string, s Scale, flags int) (float64, error) {
	fd, err := unix.Open(filepath.Join(dir, "data"), unix.O_RDONLY|flags, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil { // the mount's pages only
		return 0, err
	}
	buf, free, err := aligned()
	if err != nil {
		return 0, err
	}
	defer free()
	begin, n := time.Now(), int64(0)
	for {
		got, err := unix.Read(fd, buf)
		if err != nil {
			return 0, err
		}
		if got == 0 {
			break
		}
		n += int64(got)
	}
	if n != s.Bytes {
		return 0, fmt.Errorf("%d bytes read of %d", n, s.Bytes)
	}
	return float64(n) / 1e6 / time.Since(begin).Seconds(), nil
}

// aligned returns a buffer for O_DIRECT, filled with what does not compress.
func aligned() (buf []byte, free func(), err error) {
	buf, err = unix.Mmap(-1, 0, ioBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	x := uint64(88172645463325252)
	for i := 0; i < len(buf); i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		buf[i] = byte(x)
	}
	return buf, func() { unix.Munmap(buf); runtime.KeepAlive(buf) }, nil
}
