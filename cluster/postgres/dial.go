package postgres

import (
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepAliveIdle, keepAliveEvery and keepAliveCount have the kernel end a connection on which
	// an answer is waited for, when the other machine is gone, or has forgotten it.
	keepAliveIdle  = 2 * time.Second
	keepAliveEvery = time.Second
	keepAliveCount = 3
	// sendTimeout is how long the kernel of the other machine may take to confirm what was sent,
	// however busy its server is.
	sendTimeout = keepAliveIdle + keepAliveCount*keepAliveEvery
)

// dialer makes connections that end when the other machine has been silent for sendTimeout, so
// that what became of a commit is asked for, rather than waited for until commitTimeout. A server
// that takes what is sent is not cut, however long it works: its kernel answers.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveEvery, Count: keepAliveCount},
		Control: func(network, _ string, c syscall.RawConn) (err error) {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			e := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(sendTimeout.Milliseconds()))
			})
			if e != nil {
				return e
			}
			return err
		},
	}
}
