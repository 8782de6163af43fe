package fusebench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Durable is how the names of the rows begin whose every operation waits for the
// disk, so that a file system without one is no limit for them.
const Durable = "write 4 KiB + fsync"

// Sizes of the files that are written so: one whose pages are written again all the
// time, as a small database's, and one most of whose pages are not.
const (
	hotBytes   = 256 << 10
	largeBytes = 64 << 20
)

func durableFile(dir string, size int64) string {
	return filepath.Join(dir, fmt.Sprint("durable-", size))
}

func fillDurable(dir string) error {
	for _, size := range []int64{hotBytes, largeBytes} {
		if err := os.WriteFile(durableFile(dir, size), make([]byte, size), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// syncWrites writes pages of a file at random offsets and makes each durable.
func syncWrites(dir string, writes int, size int64) (float64, error) {
	const page = 4096
	fd, err := unix.Open(durableFile(dir, size), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buf := make([]byte, page)
	begin := time.Now()
	for i := range writes {
		buf[i%page]++
		if _, err := unix.Pwrite(fd, buf, rand.Int64N(size/page)*page); err != nil {
			return 0, err
		}
		if err := unix.Fsync(fd); err != nil {
			return 0, err
		}
	}
	return float64(writes) / time.Since(begin).Seconds(), nil
}

// ioBytes is how much is read or written at a time.
const ioBytes = 1 << 20

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
