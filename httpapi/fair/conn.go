package fair

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// conn is a connection that counts as its client's.
type conn struct {
	net.Conn
	l *Listener
	// proxy tells that it is a trusted proxy's, and in no client's share. It
	// changes before the connection is handed out, or where it is served.
	proxy bool

	// Guarded by l.mu.
	key        Key
	counted    bool
	yields     bool // is in l.idle
	prev, next *conn

	once sync.Once
	err  error // of Close
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.l.release(c)
	})
	return c.err
}

// CloseWrite lets net/http end a connection so that its last answer arrives.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, as tls.Conn has it.
func (c *conn) NetConn() net.Conn { return c.Conn }

// State is for http.Server.ConnState: it learns which connections may yield.
func State(nc net.Conn, s http.ConnState) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch s {
	case http.StateActive:
		c.l.busy(c)
	case http.StateIdle:
		c.l.rest(c)
	}
}

// idleList holds connections between two requests, the longest idle first.
// It lies in the connections, so that a request allocates nothing.
type idleList struct{ first, last *conn }

func (i *idleList) push(c *conn) {
	c.yields, c.prev, c.next = true, i.last, nil
	if i.last == nil {
		i.first = c
	} else {
		i.last.next = c
	}
	i.last = c
}

func (i *idleList) remove(c *conn) {
	if !c.yields {
		return
	}
	if c.prev == nil {
		i.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		i.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.yields, c.prev, c.next = false, nil, nil
}
