package rpc

import (
	"net"
	"syscall"
	"time"

	"ogw/nfsserver/xdr"
	"ogw/vfs/clients/pipe"

	"golang.org/x/sys/unix"
)

// gatherBytes is where small replies are copied together: below a page or
// so, copying is cheaper than one more element of a writev.
const gatherBytes = 16 << 10

// outlet is where the replies of a connection go.
type outlet struct {
	nc     net.Conn
	socket syscall.RawConn // nil where pages cannot go
	stall  time.Duration
}

// gatherer writes a batch of replies, from begin to end, with as few system calls and
// copies as it can.
type gatherer struct {
	to     outlet
	buf    *Buffer
	small  []byte // of buf
	start  int    // of the part of small that is not in vec yet
	vec    net.Buffers
	corked bool
	total  int64 // bytes that went out
	err    error // the first, after which nothing more goes out
}

var padding [xdr.Unit]byte

func (g *gatherer) begin(to outlet, replies int) {
	*g = gatherer{to: to, vec: g.vec}
	if replies > 1 {
		g.buf = GetBuffer(gatherBytes)
		g.small = g.buf.B[:0]
	}
}

// reply takes r in, which stays until the end.
func (g *gatherer) reply(r *Reply) {
	if g.err != nil {
		return
	}
	g.add(r.B)
	n := r.trailing()
	switch {
	case r.payload != nil:
		g.push(r.payload.B)
	case r.pages != nil:
		g.through(r.pages)
	}
	if pad := xdr.Pad(n); pad > 0 {
		g.push(padding[:pad])
	}
}

// end sends what was taken in, and returns how much went out before an error.
func (g *gatherer) end() (int64, error) {
	g.out()
	if g.corked {
		cork(g.to.socket, 0)
	}
	g.buf.Free()
	return g.total, g.err
}

// add takes b in, which stays until it is out.
func (g *gatherer) add(b []byte) {
	if len(b) <= cap(g.small)-len(g.small) {
		g.small = append(g.small, b...)
		return
	}
	g.push(b)
}

// push takes b in as it is.
func (g *gatherer) push(b []byte) {
	g.gathered()
	g.vec = append(g.vec, b)
}

// gathered ends the part of small that is an element of vec.
func (g *gatherer) gathered() {
	if len(g.small) > g.start {
		g.vec = append(g.vec, g.small[g.start:])
		g.start = len(g.small)
	}
}

// out sends what was taken in.
func (g *gatherer) out() {
	if g.gathered(); len(g.vec) == 0 || g.err != nil {
		return
	}
	vec := g.vec // writing consumes what it is given
	n, err := writePaced(g.to.nc, &g.vec, g.to.stall)
	g.total, g.err = g.total+n, err
	clear(vec)
	g.vec = vec[:0]
}

// through sends what was taken in, and what is in p.
func (g *gatherer) through(p *pipe.Pipe) {
	if !g.corked {
		g.corked = true
		cork(g.to.socket, 1) // what stands before pages goes out with them
	}
	if g.out(); g.err != nil {
		return
	}
	n, err := sendPaced(g.to.nc, g.to.socket, p, g.to.stall)
	g.total, g.err = g.total+n, err
}

// cork has a socket send full segments only, or, with 0, all that it has.
func cork(socket syscall.RawConn, on int) {
	_ = socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, on) })
}
