package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// SocketName is the socket's name in the data folder.
	SocketName = "admin.sock"
	// maxSocketPath is what fits into sockaddr_un, less the final NUL.
	maxSocketPath = 107
)

// ListenSocket listens at a Unix socket that only its owner can use. What
// stood there is replaced: the caller holds the lock of the folder, so it
// is a leftover.
func ListenSocket(path string) (net.Listener, error) {
	l, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	return &socketListener{l, path}, nil
}

// listenPrivate makes the socket in a folder of its own, which only the owner
// can enter, and moves it once its mode is set: from bind(2) on it takes
// connections, with the mode that the umask leaves.
func listenPrivate(path string) (_ net.Listener, err error) {
	nursery, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0700 at the most
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(nursery)
	if err := os.Chmod(nursery, 0o700); err != nil { // whatever the umask took
		return nil, err
	}
	born := filepath.Join(nursery, "s")
	short, release, err := socketPath(born)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it is renamed
	if err = os.Chmod(born, 0o600); err == nil {
		err = os.Rename(born, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
}

// Accept implements net.Listener. The address of a connection tells who made it.
func (l *socketListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peerConn{c, peerOf(c)}, nil
}

// peerConn is a connection whose remote address is the process that made it.
type peerConn struct {
	net.Conn
	peer net.Addr
}

// RemoteAddr implements net.Conn.
func (c *peerConn) RemoteAddr() net.Addr { return c.peer }

// peer is a process of this machine, as text: unix:uid=1000,pid=4711.
type peer string

// Network implements net.Addr.
func (peer) Network() string { return "unix" }

// String implements net.Addr.
func (p peer) String() string { return string(p) }

// peerOf asks the kernel who connected (SO_PEERCRED).
func peerOf(c net.Conn) net.Addr {
	const unknown = peer("unix:")
	conn, ok := c.(syscall.Conn)
	if !ok {
		return unknown
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return unknown
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil || err != nil {
		return unknown
	}
	return LocalPeer(cred.Uid, int(cred.Pid))
}

// LocalPeer is how a process of this machine stands in logs.
func LocalPeer(uid uint32, pid int) net.Addr {
	return peer(fmt.Sprintf("unix:uid=%d,pid=%d", uid, pid))
}

// Close implements net.Listener.
func (l *socketListener) Close() error {
	err := l.Listener.Close()
	if e := os.Remove(l.path); e != nil && !errors.Is(e, fs.ErrNotExist) && err == nil {
		err = e
	}
	return err
}

// socketPath returns a path for a socket that is short enough for the
// kernel: a long one is reached through the open folder.
func socketPath(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}
