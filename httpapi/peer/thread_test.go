package peer

import (
	"context"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var testContext = context.Background()

// rawCall changes the calling thread alone, where the functions of package
// syscall change them all.
func rawCall(number, a, b, c uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(number, a, b, c)
	return errno
}

func pointer(list []uint32) uintptr { return uintptr(unsafe.Pointer(&list[0])) }

// connectElsewhere returns the server's end of a connection within a new
// network namespace, which the calling thread stays in.
func connectElsewhere() (net.Conn, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return nil, err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return l.Accept()
}
