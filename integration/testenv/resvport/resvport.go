// Package resvport connects from reserved ports, as the kernels of NFS clients
// do: servers take calls from no others by default.
package resvport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// Ports are taken from the upper half of the reserved ones, as by
	// bindresvport(3): the lower half is that of servers.
	first, end = 512, 1024
	// timeout bounds one attempt.
	timeout = 10 * time.Second
)

// Dial connects to addr from a local address and a reserved port, or from any
// port for who is not root. local may be empty.
func Dial(local, addr string) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.ParseIP(local)}
	d := net.Dialer{Timeout: timeout, LocalAddr: from, Control: shareAddr}
	if os.Geteuid() != 0 {
		return d.Dial("tcp", addr)
	}
	start := rand.IntN(end - first)
	for i := range end - first {
		from.Port = first + (start+i)%(end-first)
		c, err := d.Dial("tcp", addr)
		if err == nil {
			return c, nil
		}
		// A server's, or taken a moment ago by a connection to the same address.
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no reserved port is free for %s", addr)
}

// shareAddr lets a socket take a port that others have towards other servers. Without it, one
// test that makes a few hundred connections leaves none to anybody for a minute (TIME_WAIT).
func shareAddr(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}); e != nil {
		return e
	}
	return err
}
