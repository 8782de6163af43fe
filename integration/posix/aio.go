package posix

import (
	"bytes"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var aioCases = []namedCase{{"asynchronous direct writes beside cached reads", asyncDirect}}

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

const (
	aioWrite = 1 // IOCB_CMD_PWRITE

	aioSize   = 128 << 10
	aioPiece  = 16 << 10
	aioRounds = 100
	// aioSlots are more than there are pieces: each processor keeps some of them.
	aioSlots = 128
)

// aioWriteAll writes p, at once, in pieces of aioPiece bytes.
func aioWriteAll(t *T, fd int, p []byte) {
	t.Helper()
	call := func(nr, a, b, c, d, e uintptr) uintptr {
		t.Helper()
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
	n := len(p) / aioPiece
	var aio uintptr
	call(unix.SYS_IO_SETUP, aioSlots, uintptr(unsafe.Pointer(&aio)), 0, 0, 0)
	defer call(unix.SYS_IO_DESTROY, aio, 0, 0, 0, 0)
	list := make([]*iocb, n)
	for i := range list {
		off := i * aioPiece
		list[i] = &iocb{opcode: aioWrite, fd: uint32(fd), buf: uint64(uintptr(unsafe.Pointer(&p[off]))), bytes: aioPiece, offset: int64(off)}
	}
	for rest := list; len(rest) > 0; { // it may take a part of them
		rest = rest[call(unix.SYS_IO_SUBMIT, aio, uintptr(len(rest)), uintptr(unsafe.Pointer(&rest[0])), 0, 0):]
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
		if e.res != aioPiece {
			t.Fatalf("a write returned %d", e.res)
		}
	}
}

// asyncDirect writes a file asynchronously around the page cache while others
// read it through the cache: what was written is what is read then. A kernel
// that may send such writes to a FUSE server without waiting for them drops the
// pages before they are done, and readers bring the old ones back for good.
func asyncDirect(t *T, d string) {
	name := d + "/f"
	must(t, os.WriteFile(name, make([]byte, aioSize), 0o644))
	direct := open(t, name, unix.O_RDWR|unix.O_DIRECT)
	cached := open(t, name, unix.O_RDONLY)
	p, err := unix.Mmap(-1, 0, aioSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(t, err)
	defer unix.Munmap(p)
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for buf := make([]byte, aioSize); !stop.Load(); {
			if _, err := unix.Pread(cached, buf, 0); err != nil {
				t.Errorf("read: %v", err)
				return
			}
		}
	}()
	defer func() { stop.Store(true); <-ended }()
	for round := range aioRounds {
		for i := range p {
			p[i] = byte(round)
		}
		aioWriteAll(t, direct, p)
		check(t, bytes.Equal(pread(t, cached, aioSize, 0), p), "round %d: a read after an asynchronous direct write gives what was before it", round)
	}
}
