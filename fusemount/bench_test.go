package fusemount

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The benchmarks serve the mount in their own process: a CPU profile shows
// both sides of each request.

func benchDir(b *testing.B, files int) string {
	_, dir := mountBucket(b)
	for i := range files {
		create(b, filepath.Join(dir, fmt.Sprintf("f%07d", i)))
	}
	return dir
}

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
	dir := benchDir(b, 0)
	b.ResetTimer()
	for i := range b.N {
		create(b, filepath.Join(dir, fmt.Sprintf("f%07d", i)))
	}
}

func BenchmarkUnlink(b *testing.B) {
	dir := benchDir(b, b.N)
	b.ResetTimer()
	for i := range b.N {
		must(b, unix.Unlink(filepath.Join(dir, fmt.Sprintf("f%07d", i))))
	}
}

func BenchmarkStatCold(b *testing.B) {
	dir := benchDir(b, b.N)
	forget(b)
	b.ResetTimer()
	var st unix.Stat_t
	for i := range b.N {
		must(b, unix.Lstat(filepath.Join(dir, fmt.Sprintf("f%07d", i)), &st))
	}
}

func BenchmarkReaddirPlus(b *testing.B) {
	dir := benchDir(b, b.N)
	forget(b)
	b.ResetTimer()
	entries, err := os.ReadDir(dir)
	must(b, err)
	for _, e := range entries {
		if _, err := e.Info(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReaddir(b *testing.B) {
	dir := benchDir(b, b.N)
	forget(b)
	b.ResetTimer()
	f, err := os.Open(dir)
	must(b, err)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	must(b, err)
	if len(names) != b.N {
		b.Fatalf("%d names of %d", len(names), b.N)
	}
}

func BenchmarkReadDirect(b *testing.B) {
	_, dir := mountBucket(b)
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
