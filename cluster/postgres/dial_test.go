package postgres

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel ends a connection to a machine that is gone long before a commit is given up.
func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := dialer().DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		if e := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		return value
	}
	if option(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 {
		t.Error("nobody looks whether the server is there")
	}
	silent := time.Duration(option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)+
		option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)*option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)) * time.Second
	if silent > commitTimeout/2 {
		t.Errorf("while an answer is waited for, it ends after %v", silent)
	}
	if sent := time.Duration(option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)) * time.Millisecond; sent == 0 || sent > commitTimeout/2 {
		t.Errorf("while something is sent, it ends after %v", sent)
	}
}
