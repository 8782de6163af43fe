package httpapi

import (
	"bytes"
	"context"
	"net"
	"sync"
)

// gatherBytes bounds an answer, head and body, that leaves in one write.
const gatherBytes = 8 << 10

// gatherer makes one write of a small answer: net/http fills its buffer of 4 KiB with
// the head and the beginning of the body, writes that, and then the rest.
type gatherer struct {
	body int // of the answer that follows; 0: it leaves as it comes
	left int // of that answer, beyond kept
	kept []byte
	buf  *[gatherBytes]byte // of kept
}

// gathered are buffers of answers, which are in use for the time of two writes.
var gathered = sync.Pool{New: func() any { return new([gatherBytes]byte) }}

var headEnd = []byte("\r\n\r\n")

// add returns what is to be written: nothing before the answer is whole.
func (g *gatherer) add(p []byte) []byte {
	if g.buf == nil {
		head := bytes.Index(p, headEnd)
		whole := head + len(headEnd) + g.body
		if head < 0 || whole <= len(p) || whole > gatherBytes {
			g.body = 0
			return p
		}
		g.buf = gathered.Get().(*[gatherBytes]byte)
		g.kept, g.left = g.buf[:0], whole
	}
	g.kept = append(g.kept, p...)
	if g.left -= len(p); g.left > 0 {
		return nil
	}
	return g.kept
}

// end is notified that the answer was written.
func (g *gatherer) end() {
	if g.buf != nil {
		gathered.Put(g.buf)
	}
	*g = gatherer{}
}

type connKey struct{}

// ConnContext is for http.Server: Respond finds the connection of LazyDeadlines there,
// if no TLS is above it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for {
		switch below := c.(type) {
		case *lazyConn:
			return context.WithValue(ctx, connKey{}, below)
		case interface{ Plain() net.Conn }:
			c = below.Plain()
		default:
			return ctx
		}
	}
}

// connOf returns the connection that ConnContext put in ctx, if any.
func connOf(ctx context.Context) *lazyConn {
	c, _ := ctx.Value(connKey{}).(*lazyConn)
	return c
}
