package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The question and the answer of sock_diag(7), NETLINK_SOCK_DIAG: struct
// inet_diag_req_v2 and struct inet_diag_msg of linux/inet_diag.h. The addresses
// and ports of struct inet_diag_sockid are in network order, all else is in the
// machine's.
const (
	diagIDBytes   = 48 // sport, dport, src[16], dst[16], interface, cookie[8]
	diagReqBytes  = 8 + diagIDBytes
	diagMsgBytes  = 4 + diagIDBytes + 5*4
	diagCookieAt  = 40
	diagMsgUIDAt  = 4 + diagIDBytes + 12
	diagMsgInode  = 4 + diagIDBytes + 16
	diagReplyMax  = 4096 // one answer without extensions is 88 bytes
	diagNoCookie  = 0xff // in each byte: any socket of the addresses
	diagTimeoutMS = 1000 // the kernel answers within the call; a bound all the same
)

// States of TCP, from net/tcp_states.h.
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpCloseWait   = 8
)

// ofTCP returns the uid of who made the socket at the other end of a
// connection within this machine.
func ofTCP(c *net.TCPConn) (uint32, error) {
	server, client := endpoint(c.LocalAddr()), endpoint(c.RemoteAddr())
	if !server.IsValid() || !client.IsValid() {
		return 0, fmt.Errorf("%w: no addresses", ErrUnknown)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := sameNamespace(c, fd); err != nil {
		return 0, err
	}
	uid, err := ask(fd, client, server)
	if err == nil {
		err = alive(c)
	}
	return uid, err
}

// alive refuses a connection that was reset. It may have ended while it waited
// to be accepted, and its addresses been another's when the kernel was asked.
// One that is not closed afterwards had them all the time.
func alive(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	var failed error
	if err := raw.Control(func(s uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(s), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); err != nil {
		return err
	}
	if failed != nil {
		return os.NewSyscallError("getsockopt", failed)
	}
	if info.State != tcpEstablished && info.State != tcpCloseWait {
		return fmt.Errorf("%w: it is closed", ErrUnknown)
	}
	return nil
}

func endpoint(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// sameNamespace refuses a connection of another network namespace than the
// one that fd asks: there, the same addresses are somebody else's. Kernels
// before 5.14 do not report it; a listener that this process made is in its own.
func sameNamespace(c *net.TCPConn, fd int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var its uint64
	var failed error
	if err := raw.Control(func(s uintptr) {
		its, failed = unix.GetsockoptUint64(int(s), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	}); err != nil {
		return err
	}
	if errors.Is(failed, unix.ENOPROTOOPT) {
		return nil
	}
	if failed != nil {
		return failed
	}
	ours, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == nil && ours != its {
		err = fmt.Errorf("%w: it is of another network namespace", ErrUnknown)
	}
	return err
}

// ask returns the uid of the socket with the addresses local and remote.
func ask(fd int, local, remote netip.AddrPort) (uint32, error) {
	timeout := unix.NsecToTimeval(diagTimeoutMS * 1e6)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Sendto(fd, question(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, os.NewSyscallError("sendto", err)
	}
	var buf [diagReplyMax]byte
	for {
		n, from, err := unix.Recvfrom(fd, buf[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("recvfrom", err)
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
			continue // processes can send to netlink sockets, too
		}
		return answer(buf[:n], local, remote)
	}
}

// question is a struct nlmsghdr and a struct inet_diag_req_v2. It is for one
// socket: no NLM_F_DUMP, so the kernel looks it up instead of walking all.
func question(local, remote netip.AddrPort) []byte {
	b := make([]byte, unix.NLMSG_HDRLEN+diagReqBytes)
	order := binary.NativeEndian
	order.PutUint32(b[0:], uint32(len(b)))
	order.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(b[6:], unix.NLM_F_REQUEST)
	req := b[unix.NLMSG_HDRLEN:]
	req[0], req[1] = family(local.Addr()), unix.IPPROTO_TCP
	order.PutUint32(req[4:], ^uint32(0)) // every state
	putID(req[8:], local, remote)
	return b
}

func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func putID(id []byte, local, remote netip.AddrPort) {
	binary.BigEndian.PutUint16(id[0:], local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:20], local.Addr().AsSlice())
	copy(id[20:36], remote.Addr().AsSlice())
	for i := range id[diagCookieAt:diagIDBytes] {
		id[diagCookieAt+i] = diagNoCookie
	}
}

// answer reads a struct inet_diag_msg. The kernel falls back to a listener at
// the local address, and shows sockets that no process holds any more, as uid
// 0: neither is an answer.
func answer(b []byte, local, remote netip.AddrPort) (uint32, error) {
	order := binary.NativeEndian
	if len(b) < unix.NLMSG_HDRLEN {
		return 0, fmt.Errorf("%w: a short answer", ErrUnknown)
	}
	kind, msg := order.Uint16(b[4:]), b[unix.NLMSG_HDRLEN:]
	switch {
	case kind == unix.NLMSG_ERROR && len(msg) >= 4:
		return 0, fmt.Errorf("%w: sock_diag: %w", ErrUnknown, unix.Errno(-int32(order.Uint32(msg))))
	case kind != unix.SOCK_DIAG_BY_FAMILY || len(msg) < diagMsgBytes:
		return 0, fmt.Errorf("%w: not an answer", ErrUnknown)
	}
	switch msg[1] {
	case tcpEstablished, tcpFinWait1, tcpFinWait2: // the client may have sent all
	default:
		// One that begins with these addresses is another connection's.
		return 0, fmt.Errorf("%w: its other end is not connected", ErrUnknown)
	}
	id := msg[4:]
	foundLocal := foundAddr(msg[0], id[4:20], binary.BigEndian.Uint16(id[0:]))
	foundRemote := foundAddr(msg[0], id[20:36], binary.BigEndian.Uint16(id[2:]))
	if foundLocal != local || foundRemote != remote {
		return 0, fmt.Errorf("%w: its other end is gone", ErrUnknown)
	}
	uid, inode := order.Uint32(msg[diagMsgUIDAt:]), order.Uint32(msg[diagMsgInode:])
	if inode == 0 {
		return 0, fmt.Errorf("%w: its other end was closed", ErrUnknown)
	}
	return uid, checkMapped(uid)
}

// foundAddr is an address in an answer: an IPv6 socket shows an IPv4 one mapped.
func foundAddr(family byte, b []byte, port uint16) netip.AddrPort {
	if family == unix.AF_INET {
		b = b[:4]
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), port)
}
