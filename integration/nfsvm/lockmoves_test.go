package nfsvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
)

// besideSite are gateways beside one another over a store of several machines: two in networks of
// their own that both have the address which the guest mounts, one of them plugged in, and
// one of this machine with a FUSE mount.
type besideSite struct {
	*lockSite
	conf   string // [cluster] of all
	other  *exec.Cmd
	nodes  [2]*node
	serves int // which of them is plugged in
}

// node is a machine for a gateway.
type node struct {
	name   string
	enter  []string
	server *exec.Cmd
	out    bytes.Buffer
}

// metadata starts a server of metadata, and returns its URL and its address.
type metadata func(t *testing.T) (url, addr string)

func onEtcd(t *testing.T) (url, addr string) {
	addr = testenv.StartEtcd(t, 1).Endpoints()[0]
	return "etcd://" + addr, addr
}

func onPostgres(t *testing.T) (url, addr string) {
	p := testenv.StartPostgres(t)
	return p.URL(p.Addr()), p.Addr()
}

func newBesideSite(t *testing.T, start metadata) *besideSite {
	t.Helper()
	b := &besideSite{lockSite: newNetwork(t)}
	url, addr := start(t)
	v := testenv.StartVersitygw(t, "blobs")
	b.conf = fmt.Sprintf("[cluster]\nengine = \"shared\"\ngateways = \"many\"\nmetadata = %q\n"+
		"objects = \"http://%s/blobs\"\nobjects_key = %q\nobjects_secret = %q\n", url, v.Addr(), v.Key, v.Secret)
	if err := os.Mkdir(b.mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	b.enter = b.namespace("network", nil, `
		ip tuntap add tap0 mode tap
		ip link add br0 type bridge
		ip link set tap0 master br0
		ip link set tap0 up
		ip link set br0 up`)
	for i, name := range []string{"a", "b"} {
		n := &node{name: name, enter: b.namespace("node-"+name, b.enter, "")}
		b.nodes[i] = n
		pid := n.enter[2]
		if err := errors.Join(
			b.in("ip", "link", "add", "v"+name, "type", "veth", "peer", "name", "eth0", "netns", pid),
			b.in("ip", "link", "set", "v"+name, "up"),
			b.at(n, "ip", "link", "set", "eth0", "address", "02:00:00:00:02:64"),
			b.at(n, "ip", "addr", "add", "10.0.2.100/24", "dev", "eth0"),
			b.at(n, "ip", "link", "set", "eth0", "up"),
		); err != nil {
			t.Fatal(err)
		}
	}
	for _, addr := range []string{addr, v.Addr()} {
		b.relay(addr)
	}
	rest := testenv.FreeAddr(t)
	b.write("other", fmt.Sprintf("[[gateway]]\nprotocol = \"rest\"\nlisten = %q\n", rest))
	b.other = exec.Command(b.binary, "serve", "--config", b.path("other.toml"))
	b.other.Stdout, b.other.Stderr = &b.out, &b.out
	if err := b.other.Start(); err != nil {
		t.Fatalf("%v (make build makes it)", err)
	}
	t.Cleanup(b.end)
	// Not by a command of the program: without a server it opens the store.
	b.await("the gateway of the mount", func() error {
		nc, err := net.Dial("tcp", rest)
		if err == nil {
			nc.Close()
		}
		return err
	})
	if t.Failed() {
		t.FailNow()
	}
	if err := b.here(b.binary, "mount", "--config", b.path("other.toml"), b.mnt); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.nodes {
		b.write(n.name, "[[gateway]]\nprotocol = \"nfs\"\nlisten = \"10.0.2.100:2049\"\nportmap = \"serve\"\n"+
			"[[gateway.export]]\npath = \"/\"\nclients = [\"10.0.2.0/24\"]\nsquash = \"none\"\n")
		b.launch(n)
	}
	if err := b.plug(0); err != nil {
		t.Fatal(err)
	}
	return b
}

// write makes a gateway's configuration.
func (b *besideSite) write(name, gateways string) {
	b.t.Helper()
	text := fmt.Sprintf("%sdir = %q\n[log]\nlevel = \"debug\"\n%s", b.conf, b.path("data-"+name), gateways)
	if err := os.WriteFile(b.path(name+".toml"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// relay makes a port of this machine's loopback one of each node's.
func (b *besideSite) relay(addr string) {
	b.t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.t.Fatal(err)
	}
	socket := b.path("port-" + port)
	b.keep(exec.Command("socat", "UNIX-LISTEN:"+socket+",fork", "TCP:"+addr))
	for _, n := range b.nodes {
		args := append(n.enter[1:len(n.enter):len(n.enter)], "socat", "TCP-LISTEN:"+port+",bind=127.0.0.1,fork,reuseaddr", "UNIX-CONNECT:"+socket)
		b.keep(exec.Command(n.enter[0], args...))
	}
}

// at runs a program in a node.
func (b *besideSite) at(n *node, args ...string) error {
	return b.here(append(n.enter[:len(n.enter):len(n.enter)], args...)...)
}

// hereTimeout bounds a program of the host.
const hereTimeout = time.Minute

// here runs a program.
func (b *besideSite) here(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), hereTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, bytes.TrimSpace(out))
	}
	return nil
}

// launch starts a node's gateway.
func (b *besideSite) launch(n *node) {
	b.t.Helper()
	args := append(n.enter[1:len(n.enter):len(n.enter)], b.binary, "serve", "--config", b.path(n.name+".toml"))
	n.server = exec.Command(n.enter[0], args...)
	n.server.Stdout, n.server.Stderr = &n.out, &n.out
	if err := n.server.Start(); err != nil {
		b.t.Error(err)
		return
	}
	b.await("gateway "+n.name, func() error { return b.at(n, "rpcinfo", "-n", "2049", "-t", "10.0.2.100", "100003", "3") })
}

// plug has node i be the one with the address.
func (b *besideSite) plug(i int) error {
	b.serves = i
	_ = b.in("ip", "link", "set", "v"+b.nodes[1-i].name, "nomaster")
	return b.in("ip", "link", "set", "v"+b.nodes[i].name, "master", "br0")
}

// move ends the gateway that serves, and has the other one serve.
func (b *besideSite) move(how syscall.Signal) error {
	n := b.nodes[b.serves]
	n.server.Process.Signal(how) // nsenter became the program
	n.server.Wait()
	err := b.plug(1 - b.serves)
	b.launch(n)
	return err
}

func (b *besideSite) end() {
	if err := b.here(b.binary, "umount", "--config", b.path("other.toml"), b.mnt); err != nil {
		b.t.Error(err)
		_ = b.here("umount", "-l", b.mnt)
	}
	for _, n := range b.nodes {
		if n != nil && n.server != nil && n.server.Process != nil {
			n.server.Process.Signal(syscall.SIGTERM)
			n.server.Wait()
		}
	}
	b.other.Process.Signal(syscall.SIGTERM)
	if err := b.other.Wait(); err != nil {
		b.t.Errorf("stopping the gateway of the mount: %v", err)
	}
	if b.t.Failed() {
		for _, n := range b.nodes {
			b.t.Logf("gateway %s said:\n%s", n.name, n.out.Bytes()[max(0, n.out.Len()-8000):])
		}
		b.t.Logf("the gateway of the mount said:\n%s", b.out.Bytes()[max(0, b.out.Len()-8000):])
	}
}

// do is what the guest asks for by a word; a file answers it.
func (b *besideSite) do(word string) {
	b.t.Logf("host: %s", word)
	file := filepath.Join(b.mnt, "f")
	try := func(start string) error { return b.here(b.locker, "try", file, "w", start, "10") }
	var err error
	switch word {
	case "fuse-hold":
		_, _ = os.Remove(b.path("held")), os.Remove(b.path("end"))
		b.holder = exec.Command(b.locker, "hold", file, "w", "20", "10", b.path("held"), b.path("end"))
		if err = b.holder.Start(); err == nil {
			b.await("lock through FUSE", func() error { _, err := os.Stat(b.path("held")); return err })
		}
	case "fuse-release":
		err = errors.Join(os.WriteFile(b.path("end"), nil, 0o600), b.holder.Wait())
	case "fuse-busy":
		var exit *exec.ExitError
		if err = try("0"); errors.As(err, &exit) && exit.ExitCode() == 3 {
			err = b.listed()
		} else {
			err = fmt.Errorf("a lock that the guest holds: %w", err)
		}
	case "fuse-free":
		err = errors.Join(try("0"), try("20"))
	case "kill":
		err = b.move(syscall.SIGKILL)
	case "restart":
		err = b.move(syscall.SIGTERM)
	default:
		err = errors.New("no such word")
	}
	if err != nil {
		b.t.Errorf("%s: %v", word, err)
	}
	if err := os.WriteFile(filepath.Join(b.mnt, "said-"+word), nil, 0o644); err != nil {
		b.t.Errorf("telling the guest: %v", err)
	}
}

// listed fails unless the lock is listed as the client's own.
func (b *besideSite) listed() error {
	out, err := exec.Command(b.binary, "lock", "list", "--config", b.path("other.toml")).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "nfs") && strings.Contains(line, "10.0.2.15 (guest) through 10.0.2.100") &&
			strings.Contains(line, "0-9") && strings.Contains(line, "held") && !strings.Contains(line, ", process ") {
			return nil
		}
	}
	return fmt.Errorf("lock list: %w\n%s", err, out)
}

// TestKernelClientLocksMove has a Linux client hold a lock, and wait for another, while its
// gateway is killed, and stopped, and the address moves to another one.
func TestKernelClientLocksMove(t *testing.T) {
	for name, start := range map[string]metadata{"etcd": onEtcd, "PostgreSQL": onPostgres} {
		t.Run(name, func(t *testing.T) { locksMove(t, start) })
	}
}

func locksMove(t *testing.T, start metadata) {
	b := newBesideSite(t, start)
	b.bootWith("lockmoves", nil, b.do)
	if out, err := exec.Command(b.binary, "lock", "list", "--config", b.path("other.toml")).CombinedOutput(); err != nil || strings.Contains(string(out), "nfs") {
		t.Errorf("left: %v\n%s", err, out)
	}
	if err := b.here(b.binary, "check", "--config", b.path("other.toml")); err != nil {
		t.Errorf("check: %v", err)
	}
}
