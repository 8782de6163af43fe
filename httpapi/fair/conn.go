package fair

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection that counts as its client's.
type conn struct {
	net.Conn
	l *Listener
	// proxy tells that it is a trusted proxy's, and in no client's share. It
	// changes before the connection is handed out, or where it is served.
	proxy bool
	head  headCount
	// rested is in which turn of the listener it began to wait for its next
	// request; 0 while it serves one.
	rested atomic.Int64

	// Guarded by l.mu.
	key     Key
	counted bool
	place   int // in l.conns, if counted

	once sync.Once
	err  error // of Close
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.head.forget()
		c.l.release(c)
	})
	return c.err
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.head.came(p[:n]) {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom, for what the connection below takes as it is.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if below, ok := c.Conn.(io.ReaderFrom); ok {
		return below.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.head.waits() {
		return c.Close()
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite lets net/http end a connection so that its last answer arrives.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// client returns whose connection it is.
func (c *conn) client() Key {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.key
}

// NetConn returns the connection below, as tls.Conn has it.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Plain is NetConn of who does not change what passes.
func (c *conn) Plain() net.Conn { return c.Conn }

// below returns the connection of a Listener that nc is, or is served over.
func below(nc net.Conn) *conn {
	c, ok := nc.(*conn)
	if t, above := nc.(interface{ NetConn() net.Conn }); above && !ok {
		c, _ = t.NetConn().(*conn) // TLS, HTTP/2
	}
	return c
}

// ConnContext is for http.Server.ConnContext: Heads finds the connection there.
func ConnContext(ctx context.Context, nc net.Conn) context.Context {
	if c := below(nc); c != nil {
		return context.WithValue(ctx, headKey{}, &c.head)
	}
	return ctx
}

// Greeted is for tls.Config.GetConfigForClient: what the client sent until then
// was for TLS.
func Greeted(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c := below(hello.Conn); c != nil {
		c.head.greeted()
	}
	return nil, nil
}

// State is for http.Server.ConnState: it learns which connections may yield.
func State(nc net.Conn, s http.ConnState) {
	c := below(nc)
	if c == nil {
		return
	}
	switch s {
	case http.StateActive:
		c.head.complete()
		c.l.busy(c)
	case http.StateIdle:
		c.head.idles()
		c.l.rest(c)
	}
}
