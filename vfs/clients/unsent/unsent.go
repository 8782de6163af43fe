// Package unsent bounds what the kernel holds of replies that clients do not
// read: the buffers of sockets are no part of a process's memory, and their
// default is up to 4 MiB (tcp_wmem) a connection once a client has read fast.
//
//	listener ── Conn.Bound   little of each connection
//	writer ──── Conn.Writes  more where it pays: few at a time, those with
//	                         large replies
//
// Lock order: Pool.mu is a leaf.
package unsent

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Bytes is how much of a large reply the kernel takes that it cannot send yet.
	// Less than the reply costs a GET of a MiB a tenth of CPU time more.
	Bytes = 1280 << 10
	// Conns connections have that much at a time (20 MiB in all), the others
	// Narrow.
	Conns  = 16
	Narrow = 32 << 10
	// wideFrom is the reply from which on a connection asks for the width.
	wideFrom = 64 << 10
)

// Pool are the connections of which the kernel takes Bytes. Who sends
// a large reply becomes one; where there are enough, the one that was longest
// gives way, unless the kernel holds something of it: its client is slow.
type Pool struct {
	most int

	mu   sync.Mutex
	list []*Conn
	next int // in list: who gives way
}

// NewPool returns a pool of so many.
func NewPool(conns int) *Pool { return &Pool{most: conns} }

// Conn is what a Pool knows of a connection. The zero Conn is not bounded.
type Conn struct {
	pool   *Pool
	socket syscall.RawConn
	wide   atomic.Bool
	reply  atomic.Int64 // bytes written since something was read
}

// Bound begins to bound conn, if it has a TCP socket.
func (c *Conn) Bound(conn net.Conn, w *Pool) {
	if c.socket = socketOf(conn); c.socket != nil {
		boundUnsent(c.socket, Narrow)
		c.pool = w
	}
}

// Reads records that something was read.
func (c *Conn) Reads() { c.reply.Store(0) }

// Writes records that n bytes are to be written.
func (c *Conn) Writes(n int) {
	if c.pool != nil && c.reply.Add(int64(n)) > wideFrom && !c.wide.Load() {
		c.reply.Store(0) // asks again later
		c.pool.take(c)
	}
}

// Closes records that the connection is closed.
func (c *Conn) Closes() {
	if c.wide.Load() {
		c.pool.leave(c)
	}
}

// Wide reports whether the kernel takes Bytes.
func (c *Conn) Wide() bool { return c.wide.Load() }

// Socket returns the TCP socket of a connection that is bounded, else nil.
func (c *Conn) Socket() syscall.RawConn { return c.socket }

// Unsent returns how many bytes the kernel holds that it has not sent.
func (c *Conn) Unsent() int { return unsent(c.socket) }

// Len returns how many have more than Narrow.
func (w *Pool) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.list)
}

// take makes c wide, if there is room.
func (w *Pool) take(c *Conn) {
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
		boundUnsent(other.socket, Narrow)
		if unsent(other.socket) > Narrow {
			boundUnsent(other.socket, Bytes)
			w.next = (w.next + 1) % w.most
			return
		}
		other.wide.Store(false)
		w.list[w.next] = c
		w.next = (w.next + 1) % w.most
	}
	c.wide.Store(true)
	boundUnsent(c.socket, Bytes)
}

// leave records that c is closed.
func (w *Pool) leave(c *Conn) {
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
