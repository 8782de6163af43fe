package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// Probe returns why this machine does not report whose a TCP connection is: a kernel
// without inet_diag, or a sandbox without netlink sockets.
func Probe() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		return err
	}
	defer server.Close()
	if server.RemoteAddr().String() != client.LocalAddr().String() {
		return errors.New("another program connected first") // nothing is known of the kernel
	}
	who, err := identify(server)
	if err == nil && int(who.UID) != os.Geteuid() {
		err = fmt.Errorf("%w: it takes this process for uid %d", ErrUnknown, who.UID)
	}
	return err
}
