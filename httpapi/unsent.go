package httpapi

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// unsentBytes is how much of a large reply the kernel takes that it cannot
	// send yet, for a client that is slow or reads nothing. Without a bound that
	// is up to 4 MiB (tcp_wmem) once a client has read fast. Less than its reply
	// costs a GET of a MiB a tenth of CPU time more.
	unsentBytes = 1280 << 10
	// maxWide connections have that much at a time (20 MiB in all), the others
	// narrowUnsentBytes.
	maxWide           = 16
	narrowUnsentBytes = 32 << 10
	// wideFrom is the reply from which on a connection asks for the width.
	wideFrom = 64 << 10
)

// wideConns are the connections of which the kernel takes unsentBytes. Who sends
// a large reply becomes one; where there are enough, the one that was longest
// gives way, unless the kernel holds something of it: its client is slow.
type wideConns struct {
	most int

	mu   sync.Mutex
	list []*wideConn
	next int // in list: who gives way
}

// wideConn is what wideConns know of a connection.
type wideConn struct {
	wides  *wideConns // nil: the kernel's part is not bounded
	socket syscall.RawConn
	wide   atomic.Bool
	reply  atomic.Int64 // bytes written since something was read
}

// bound begins with narrowUnsentBytes of c.
func (c *wideConn) bound(conn net.Conn, w *wideConns) {
	if c.socket = socketOf(conn); c.socket != nil {
		boundUnsent(c.socket, narrowUnsentBytes)
		c.wides = w
	}
}

// reads is told that something was read.
func (c *wideConn) reads() { c.reply.Store(0) }

// writes is told that n bytes are to be written.
func (c *wideConn) writes(n int) {
	if c.wides != nil && c.reply.Add(int64(n)) > wideFrom && !c.wide.Load() {
		c.reply.Store(0) // asks again later
		c.wides.take(c)
	}
}

// closes is told that the connection is closed.
func (c *wideConn) closes() {
	if c.wide.Load() {
		c.wides.leave(c)
	}
}

// take makes c wide, if there is room.
func (w *wideConns) take(c *wideConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.wide.Load() || w.most == 0:
		return
	case len(w.list) < w.most:
		w.list = append(w.list, c)
	default:
		other := w.list[w.next]
		// In this order: what it writes meanwhile is bounded.
		boundUnsent(other.socket, narrowUnsentBytes)
		if unsent(other.socket) > narrowUnsentBytes {
			boundUnsent(other.socket, unsentBytes)
			w.next = (w.next + 1) % w.most
			return
		}
		other.wide.Store(false)
		w.list[w.next] = c
		w.next = (w.next + 1) % w.most
	}
	c.wide.Store(true)
	boundUnsent(c.socket, unsentBytes)
}

// leave is told that c is closed.
func (w *wideConns) leave(c *wideConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.list {
		if other == c {
			w.list = append(w.list[:i], w.list[i+1:]...)
			w.next = 0
			return
		}
	}
}

// socketOf returns the socket of c; nil where there is none, or a Unix socket,
// whose buffers are small.
func socketOf(c net.Conn) syscall.RawConn {
	for {
		if tcp, ok := c.(*net.TCPConn); ok {
			socket, err := tcp.SyscallConn()
			if err != nil {
				return nil
			}
			return socket
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = inner.NetConn()
	}
}

// boundUnsent bounds what the kernel takes of a connection that it cannot send
// yet, to n bytes. Where it cannot, nothing is lost but that.
func boundUnsent(socket syscall.RawConn, n int) {
	_ = socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
	})
}

// unsent returns how many bytes the kernel holds that it has not sent, 0 of a
// socket that is closed.
func unsent(socket syscall.RawConn) (n int) {
	_ = socket.Control(func(fd uintptr) {
		n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD)
	})
	return n
}
