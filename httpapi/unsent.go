package httpapi

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// unsentBytes is how much of a reply the kernel takes that it cannot send yet,
	// for a client that is slow or reads nothing. Without a bound that is up to 4
	// MiB (tcp_wmem) once a client has read fast. Less than its reply costs a GET of a
	// MiB a tenth of CPU time more.
	unsentBytes = 1280 << 10
	// wideConns have that much; those that come while there are so many have
	// narrowUnsentBytes.
	wideConns         = 16
	narrowUnsentBytes = 32 << 10
)

// boundUnsent bounds what the kernel holds of a connection, to n bytes. Where it
// cannot, as for a Unix socket, whose buffers are small, nothing is lost but that.
func boundUnsent(c net.Conn, n int) {
	for {
		if raw, ok := c.(syscall.Conn); ok {
			if conn, err := raw.SyscallConn(); err == nil {
				_ = conn.Control(func(fd uintptr) {
					_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
				})
			}
			return
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		c = inner.NetConn()
	}
}
