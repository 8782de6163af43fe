package peer

import (
	"errors"
	"fmt"
	"net"
)

// Identify returns l, whose connections then know who is at their other end.
func Identify(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener. A connection of which nothing is known is
// accepted all the same: its requests are refused with words.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	a := &address{Addr: c.RemoteAddr()}
	a.who, a.err = identify(c)
	return &conn{c, a}, nil
}

func identify(c net.Conn) (who Identity, err error) {
	switch c := c.(type) {
	case *net.UnixConn:
		who, err = ofSocket(c)
		who.Socket = true
	case *net.TCPConn:
		if who.UID, err = ofTCP(c); err == nil {
			who.GID, who.Groups, err = groupsOf(who.UID)
		}
	default:
		err = fmt.Errorf("no such question about a %T", c)
	}
	if err != nil && !errors.Is(err, ErrUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return who, err
}

type conn struct {
	net.Conn
	remote *address
}

// CloseWrite lets net/http end a refused request without a reset that would
// take the answer along.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, as tls.Conn has it.
func (c *conn) NetConn() net.Conn { return c.Conn }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }
