package fusemount

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/integration/tools/bench/noopfs"
)

// The benchmarks serve the mount in their own process: a CPU profile shows
// both sides of each request, and cpu-ns/op, which depends less than the time
// on what else runs, counts both. Beside the mount stands a file system that
// stores nothing: the limit.
func benchBoth(b *testing.B, files func(n int) int, run func(b *testing.B, dir string)) {
	for _, x := range transports {
		b.Run("ogw/"+x.name, func(b *testing.B) {
			needTransport(b, x.transport)
			_, dir := mountBucket(b, x.transport)
			benchIn(b, dir, files, run)
		})
	}
	b.Run("noop", func(b *testing.B) {
		needFUSE(b)
		dir := b.TempDir()
		s, err := noopfs.Mount(dir)
		must(b, err)
		b.Cleanup(func() { must(b, s.Unmount()) })
		benchIn(b, dir, files, run)
	})
}

func benchIn(b *testing.B, dir string, files func(n int) int, run func(b *testing.B, dir string)) {
	for i := range files(b.N) {
		create(b, filepath.Join(dir, fmt.Sprintf("f%07d", i)))
	}
	forget(b)
	before := cpuTime(b)
	b.ResetTimer()
	run(b, dir)
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

func none(int) int  { return 0 }
func all(n int) int { return n }

func create(b *testing.B, name string) {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	must(b, err)
	must(b, unix.Close(fd))
}

func forget(b *testing.B) {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		b.Skip("only root can make the kernel forget names")
	}
}

func BenchmarkCreate(b *testing.B) {
	benchBoth(b, none, func(b *testing.B, dir string) {
		for i := range b.N {
			create(b, filepath.Join(dir, fmt.Sprintf("f%07d", i)))
		}
	})
}

func BenchmarkUnlink(b *testing.B) {
	benchBoth(b, all, func(b *testing.B, dir string) {
		for i := range b.N {
			must(b, unix.Unlink(filepath.Join(dir, fmt.Sprintf("f%07d", i))))
		}
	})
}

func BenchmarkStatCold(b *testing.B) {
	benchBoth(b, all, func(b *testing.B, dir string) {
		var st unix.Stat_t
		for i := range b.N {
			must(b, unix.Lstat(filepath.Join(dir, fmt.Sprintf("f%07d", i)), &st))
		}
	})
}

func BenchmarkOpenClose(b *testing.B) {
	benchBoth(b, all, func(b *testing.B, dir string) {
		for i := range b.N {
			fd, err := unix.Open(filepath.Join(dir, fmt.Sprintf("f%07d", i)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			must(b, err)
			must(b, unix.Close(fd))
		}
	})
}

func BenchmarkReaddirPlus(b *testing.B) {
	benchBoth(b, all, func(b *testing.B, dir string) {
		entries, err := os.ReadDir(dir)
		must(b, err)
		for _, e := range entries {
			if _, err := e.Info(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReaddirStat is what ls -l does: each name is asked for when it was
// read.
func BenchmarkReaddirStat(b *testing.B) {
	benchBoth(b, all, func(b *testing.B, dir string) {
		f, err := os.Open(dir)
		must(b, err)
		defer f.Close()
		infos, err := f.Readdir(-1)
		must(b, err)
		if len(infos) != b.N {
			b.Fatalf("%d entries of %d", len(infos), b.N)
		}
	})
}

func BenchmarkReaddir(b *testing.B) {
	benchBoth(b, all, func(b *testing.B, dir string) {
		f, err := os.Open(dir)
		must(b, err)
		defer f.Close()
		names, err := f.Readdirnames(-1)
		must(b, err)
		if len(names) != b.N {
			b.Fatalf("%d names of %d", len(names), b.N)
		}
	})
}

func BenchmarkReadDirect(b *testing.B) {
	_, dir := mountBucket(b, TransportDevice)
	must(b, os.WriteFile(filepath.Join(dir, "f"), make([]byte, 64<<20), 0o644))
	fd, err := unix.Open(filepath.Join(dir, "f"), unix.O_RDONLY|unix.O_DIRECT, 0)
	must(b, err)
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(b, err)
	b.SetBytes(1 << 20)
	b.ResetTimer()
	for i := range b.N {
		_, err := unix.Pread(fd, buf, int64(i%64)<<20)
		must(b, err)
	}
}
