package fusemount

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iocb is that of linux/aio_abi.h, little-endian.
type iocb struct {
	_          uint64
	_, _       uint32
	opcode     uint16
	_          int16
	fd         uint32
	buf, bytes uint64
	offset     int64
	_          uint64
	_, _       uint32
}

const aioWrite = 1 // IOCB_CMD_PWRITE

// aioWriteAll writes p, at once, in pieces of size bytes.
func aioWriteAll(t *testing.T, fd int, p []byte, size int) {
	t.Helper()
	call := func(nr, a, b, c, d, e uintptr) uintptr {
		for {
			switch n, _, errno := unix.Syscall6(nr, a, b, c, d, e, 0); errno {
			case 0:
				return n
			case unix.EINTR:
			default:
				t.Fatal(errno)
			}
		}
	}
	n := len(p) / size
	var aio uintptr
	call(unix.SYS_IO_SETUP, uintptr(n), uintptr(unsafe.Pointer(&aio)), 0, 0, 0)
	defer call(unix.SYS_IO_DESTROY, aio, 0, 0, 0, 0)
	list := make([]*iocb, n)
	for i := range list {
		list[i] = &iocb{opcode: aioWrite, fd: uint32(fd), buf: uint64(uintptr(unsafe.Pointer(&p[i*size]))), bytes: uint64(size), offset: int64(i * size)}
	}
	if got := call(unix.SYS_IO_SUBMIT, aio, uintptr(n), uintptr(unsafe.Pointer(&list[0])), 0, 0); got != uintptr(n) {
		t.Fatalf("%d of %d writes were taken", got, n)
	}
	type event struct {
		_, _ uint64
		res  int64
		_    int64
	}
	events := make([]event, n)
	call(unix.SYS_IO_GETEVENTS, aio, uintptr(n), uintptr(n), uintptr(unsafe.Pointer(&events[0])), 0)
	runtime.KeepAlive(p)
	for _, e := range events {
		if e.res != int64(size) {
			t.Fatalf("a write returned %d", e.res)
		}
	}
}

// TestAIOBesideReaders writes a file asynchronously around the page cache while
// others read it through the cache: what was written is what is read then. A
// kernel that may send such writes on without waiting for them drops the pages
// before they are done, and readers bring the old ones back for good.
func TestAIOBesideReaders(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		const size, piece, rounds = 128 << 10, 16 << 10, 100
		_, dir := mountBucket(t, over)
		name := filepath.Join(dir, "f")
		if err := os.WriteFile(name, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		direct, err := unix.Open(name, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(direct)
		cached, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer cached.Close()
		p, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(p)

		var stop atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for buf := make([]byte, size); !stop.Load(); {
				cached.ReadAt(buf, 0)
			}
		}()
		defer func() { stop.Store(true); <-ended }()
		stale := 0
		for round := range rounds {
			for i := range p {
				p[i] = byte(round)
			}
			aioWriteAll(t, direct, p, piece)
			got := make([]byte, size)
			if _, err := cached.ReadAt(got, 0); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, p) {
				stale++
			}
		}
		if stale > 0 {
			t.Errorf("%d of %d reads after a write gave what was before it", stale, rounds)
		}
	})
}
