package peer

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	otherUID = 54321
	otherGID = 54322
)

// as runs fn in a thread of another user; the thread ends with it.
func as(t *testing.T, uid uint32, fn func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as another user")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		groups := []uint32{7, 8}
		defer runtime.KeepAlive(groups)
		done <- errors.Join(
			errnoErr(rawCall(unix.SYS_SETGROUPS, uintptr(len(groups)), pointer(groups), 0)),
			errnoErr(rawCall(unix.SYS_SETRESGID, otherGID, otherGID, otherGID)),
			errnoErr(rawCall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))),
			fn())
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func errnoErr(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// pair is a connection between this process and a socket of another user.
type pair struct {
	listener net.Listener
	server   net.Conn // accepted
	client   int      // descriptor
}

// connect makes a pair; after, if set, is what the client does before the
// connection is accepted.
func connect(t *testing.T, network, address string, after func(fd int) error) *pair {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return dial(t, l, sockaddr(l.Addr()), after)
}

func dial(t *testing.T, l net.Listener, to unix.Sockaddr, after func(fd int) error) *pair {
	t.Helper()
	p := &pair{listener: l, client: -1}
	as(t, otherUID, func() (err error) {
		family := unix.AF_INET
		switch to.(type) {
		case *unix.SockaddrInet6:
			family = unix.AF_INET6
		case *unix.SockaddrUnix:
			family = unix.AF_UNIX
		}
		if p.client, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err := unix.Connect(p.client, to); err != nil || after == nil {
			return err
		}
		return after(p.client)
	})
	var err error
	if p.server, err = Identify(l).Accept(); err != nil {
		t.Fatal(err)
	}
	if after != nil {
		p.client = -1 // its business
	}
	t.Cleanup(func() { p.server.Close(); p.hangUp() })
	return p
}

// hangUp closes the client's end.
func (p *pair) hangUp() {
	if p.client >= 0 {
		unix.Close(p.client)
	}
	p.client = -1
}

func sockaddr(a net.Addr) unix.Sockaddr {
	switch a := a.(type) {
	case *net.UnixAddr:
		return &unix.SockaddrUnix{Name: a.Name}
	case *net.TCPAddr:
		if ip := a.IP.To4(); ip != nil {
			return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip)}
		}
		return &unix.SockaddrInet6{Port: a.Port, Addr: [16]byte(a.IP)}
	}
	return nil
}

func (p *pair) identity() (*Identity, error) {
	return Of(ConnContext(testContext, wrapped{p.server}))
}

// wrapped is what a limiting listener puts around a connection.
type wrapped struct{ net.Conn }

func TestTCP(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.9.9.9:0", "[::1]:0"} {
		who, err := connect(t, "tcp", address, nil).identity()
		if err != nil || who.UID != otherUID || who.GID != nobodyGID || len(who.Groups) > 0 || who.Socket {
			t.Errorf("%s: %+v, %v", address, who, err)
		}
	}
}

// TestMapped: an IPv6 socket that connected to an IPv4 address.
func TestMapped(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := &unix.SockaddrInet6{Port: l.Addr().(*net.TCPAddr).Port}
	copy(to.Addr[:], net.ParseIP("127.0.0.1").To16())
	if who, err := dial(t, l, to, nil).identity(); err != nil || who.UID != otherUID {
		t.Errorf("%+v, %v", who, err)
	}
}

// TestMultipath: a client that speaks Multipath TCP is who it is, or unknown.
func TestMultipath(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0") // speaks it, too
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := &pair{client: -1}
	as(t, otherUID, func() error {
		p.client, _ = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
		if p.client < 0 {
			return nil // reported below
		}
		return unix.Connect(p.client, sockaddr(l.Addr()))
	})
	if p.client < 0 {
		t.Skip("the kernel has no Multipath TCP")
	}
	defer p.hangUp()
	if p.server, err = Identify(l).Accept(); err != nil {
		t.Fatal(err)
	}
	defer p.server.Close()
	if who, err := p.identity(); !errors.Is(err, ErrUnknown) && (err != nil || who.UID != otherUID) {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestHalfClosed(t *testing.T) {
	p := connect(t, "tcp", "127.0.0.1:0", func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	if who, err := p.identity(); err != nil || who.UID != otherUID {
		t.Errorf("%+v, %v", who, err)
	}
}

// TestClosed: of an end that nobody holds any more the kernel reports uid 0.
func TestClosed(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		p := connect(t, "tcp", address, unix.Close)
		if who, err := p.identity(); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %+v, %v", address, who, err)
		}
	}
}

// reask asks again about a connection that was accepted.
func reask(t *testing.T, p *pair) error {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	remote := p.server.RemoteAddr().(*address).Addr
	_, err = ask(fd, endpoint(remote), endpoint(p.server.LocalAddr()))
	return err
}

func TestTimeWaitAndGone(t *testing.T) {
	p := connect(t, "tcp", "127.0.0.1:0", nil)
	if err := reask(t, p); err != nil {
		t.Fatal(err)
	}
	p.hangUp()
	time.Sleep(10 * time.Millisecond)
	p.server.Close() // the client's end is in TIME_WAIT now
	if err := reask(t, p); !errors.Is(err, ErrUnknown) {
		t.Errorf("TIME_WAIT: %v", err)
	}
	q := connect(t, "tcp", "127.0.0.1:0", nil)
	if err := unix.SetsockoptLinger(q.client, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		t.Fatal(err)
	}
	q.hangUp() // a reset: nothing is left of it
	if err := reask(t, q); !errors.Is(err, ErrUnknown) {
		t.Errorf("after a reset: %v", err)
	}
}

// TestListenerAtTheClientsAddress: where no connection is found, the kernel
// shows who listens at the address.
func TestListenerAtTheClientsAddress(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := connect(t, "tcp4", "127.0.0.1:0", nil)
	p.server.RemoteAddr().(*address).Addr = l.Addr()
	if err := reask(t, p); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

// TestOtherNamespace: a listener that came from another network namespace; the
// addresses mean something else in ours.
func TestOtherNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	type result struct {
		server net.Conn
		err    error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		var r result
		r.server, r.err = connectElsewhere()
		done <- r
	}()
	r := <-done
	if r.err != nil {
		t.Skipf("no connection within another network namespace: %v", r.err)
	}
	defer r.server.Close()
	if _, err := ofTCP(r.server.(*net.TCPConn)); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("%v", err)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := ListenUnix(path, SocketOptions{Mode: 0o666, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := dial(t, l, &unix.SockaddrUnix{Name: path}, unix.Close) // closed, and known all the same
	who, err := p.identity()
	if err != nil || who.UID != otherUID || who.GID != otherGID || !slices.Equal(who.Groups, []uint32{7, 8}) || !who.Socket {
		t.Errorf("%+v, %v", who, err)
	}
	if got := p.server.RemoteAddr().String(); !strings.HasPrefix(got, "unix:uid=54321,pid=") {
		t.Errorf("address %q", got)
	}
	if err := CheckSocket(path); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("in use: %v", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestCheckSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "socket")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if err := CheckSocket(path); err != nil {
		t.Errorf("what a crash left: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckSocket(file); err == nil {
		t.Error("a file is taken for a socket")
	}
	for _, mode := range []os.FileMode{0o770, 0o777 | os.ModeSticky} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckSocket(path); err == nil {
			t.Errorf("a folder of mode %v is taken", mode)
		}
	}
}

// TestUnknown: without Identify, and after an answer that is none.
func TestUnknown(t *testing.T) {
	if who, err := Of(testContext); !errors.Is(err, ErrUnknown) {
		t.Errorf("%+v, %v", who, err)
	}
	for _, b := range [][]byte{nil, make([]byte, 15), make([]byte, 200)} {
		if _, err := answer(b, endpoint(&net.TCPAddr{}), endpoint(&net.TCPAddr{})); !errors.Is(err, ErrUnknown) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

// TestResetBeforeAccept: a connection that its client reset while it waited to
// be accepted is nobody's, though another user has its addresses when the
// kernel is asked.
func TestResetBeforeAccept(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	open := func() (fd int, err error) {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return fd, err
		}
		return fd, errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			unix.Bind(fd, from), unix.Connect(fd, sockaddr(l.Addr())))
	}
	as(t, otherUID, func() error {
		fd, err := open()
		if err != nil {
			return err
		}
		bound, err := unix.Getsockname(fd)
		if err != nil {
			return err
		}
		from.Port = bound.(*unix.SockaddrInet4).Port
		return errors.Join(unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}), unix.Close(fd))
	})
	victim, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(victim)
	identified := Identify(l)
	for i, want := range []bool{false, true} {
		c, err := identified.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		who, err := (&pair{server: c}).identity()
		if (err == nil) != want || err == nil && who.UID != 0 {
			t.Errorf("connection %d: %+v, %v", i, who, err)
		}
	}
}
