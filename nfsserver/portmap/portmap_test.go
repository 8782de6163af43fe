package portmap

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"ogw/nfsserver/rpc"
)

func serve(t *testing.T, programs ...rpc.Program) netip.AddrPort {
	t.Helper()
	srv := rpc.NewServer(rpc.Config{Programs: programs})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- srv.Serve(l) }()
	go func() { done <- srv.ServePacket(pc) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return addr
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestLookup(t *testing.T) {
	ctx := testContext(t)
	any4 := netip.MustParseAddrPort("0.0.0.0:2049")
	host := serve(t, Program([]Service{
		{100003, 3, "tcp", any4},
		{100021, 4, "udp", netip.MustParseAddrPort("[::]:4045")},
	}))
	for _, c := range []struct {
		prog, vers uint32
		network    string
		port       uint16 // 0: not registered
	}{
		{100003, 3, "tcp", 2049},
		{100003, 4, "tcp", 2049}, // the program says which versions it has
		{100003, 3, "udp", 0},
		{100021, 4, "udp", 4045},
		{100005, 3, "tcp", 0},
		{ProgramNumber, 2, "udp", Port},
	} {
		// The question travels by the network that it is about.
		a, err := Lookup(ctx, Question{Prog: c.prog, Vers: c.vers, Network: c.network, Host: host})
		if c.port == 0 {
			if !errors.Is(err, ErrNotRegistered) {
				t.Errorf("%v: %v %v, want ErrNotRegistered", c, a, err)
			}
		} else if err != nil || a != netip.AddrPortFrom(host.Addr(), c.port) {
			t.Errorf("%v: %v %v", c, a, err)
		}
	}
}

func TestGetAddrAndRefusals(t *testing.T) {
	ctx := testContext(t)
	host := serve(t, Program([]Service{{100003, 3, "tcp", netip.MustParseAddrPort("[::]:2049")}}))
	r := &Registrar{log: slog.New(slog.DiscardHandler), mine: map[Service]bool{}}
	nc, err := rpc.Dial(ctx, "tcp", netip.Addr{}, host)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	s := Service{100003, 3, "tcp", netip.MustParseAddrPort("127.0.0.1:2049")}
	res, err := r.call(ctx, nc, procGetPort, encodeRPCB(s, "", ""))
	if got := res.String(100); err != nil || got != "127.0.0.1.8.1" {
		t.Errorf("GETADDR: %q %v", got, err)
	}
	s6 := Service{100003, 3, "tcp", netip.MustParseAddrPort("[::1]:2049")}
	if a, err := r.registered(ctx, nc, s6); err != nil || a != netip.MustParseAddrPort("[::]:2049") {
		t.Errorf("in the list: %v %v", a, err)
	}
	for _, proc := range []uint32{procSet, procUnset} {
		if res, err := r.call(ctx, nc, proc, encodeRPCB(s, "127.0.0.1.1.1", "")); err != nil || res.Bool() {
			t.Errorf("procedure %d from outside: %v", proc, err)
		}
	}
	if _, err := r.call(ctx, nc, 5, encodeRPCB(s, "", "")); !errors.Is(err, rpc.ErrNoProgram) {
		t.Errorf("CALLIT: %v", err)
	}
}

func TestUniversalAddresses(t *testing.T) {
	for _, c := range []struct{ text, addr string }{
		{"127.0.0.1.8.1", "127.0.0.1:2049"},
		{"::.0.111", "[::]:111"},
		{"fe80::1.255.255", "[fe80::1]:65535"},
	} {
		a, err := ParseAddr(c.text)
		if err != nil || a.String() != c.addr || FormatAddr(a) != c.text {
			t.Errorf("%s: %v %v %s", c.text, a, err, FormatAddr(a))
		}
	}
	for _, bad := range []string{"", ".", "1.2", "127.0.0.1", "127.0.0.1.8", "127.0.0.1.256.1", "127.0.0.1.-1.1", "x.1.1"} {
		if a, err := ParseAddr(bad); err == nil {
			t.Errorf("%q is %v", bad, a)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	f.Add("127.0.0.1.8.1")
	f.Add("::.0.111")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddr(s)
		if err != nil || a.Addr().Zone() != "" || a.Addr().Is4In6() {
			return
		}
		if b, err := ParseAddr(FormatAddr(a)); err != nil || a != b {
			t.Errorf("%q: %v, again %v %v", s, a, b, err)
		}
	})
}

func TestNoPortmapper(t *testing.T) {
	r := NewRegistrar([]string{t.TempDir() + "/no.sock"}, nil, slog.New(slog.DiscardHandler))
	if err := r.Register(testContext(t)); !errors.Is(err, ErrNoPortmapper) {
		t.Error(err)
	}
}

// inNamespace is set in the process that has a network and a /run of its own.
const inNamespace = "OGW_TEST_IN_NAMESPACE"

// TestRpcbind registers with the real rpcbind, in a network namespace.
func TestRpcbind(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		testRpcbind(t)
		return
	}
	rpcbind, err := exec.LookPath("rpcbind")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs rpcbind (integration/setup/apt.sh vm) and root for a network namespace")
	}
	cmd := exec.Command("unshare", "-n", "-m", "sh", "-ec", `
		mount -t tmpfs run /run
		ip link set lo up
		"$1" -f & rpcbind=$!
		trap 'kill $rpcbind' EXIT
		"$2" -test.run '^TestRpcbind$' -test.v`, "sh", rpcbind, os.Args[0])
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func testRpcbind(t *testing.T) {
	ctx := testContext(t)
	for ctx.Err() == nil { // until rpcbind listens
		if nc, err := net.Dial("unix", SocketPaths()[0]); err == nil {
			nc.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	null := rpc.Program{Number: 100021, Low: 4, High: 4, Datagrams: true,
		Procs: []rpc.Proc{{Name: "NULL", Handle: func(context.Context, *rpc.Call, *rpc.Reply) error { return nil }}}}
	host := netip.MustParseAddrPort("127.0.0.1:111")
	services := func(port uint16) []Service {
		any6 := netip.AddrPortFrom(netip.IPv6Unspecified(), port)
		return []Service{{100021, 4, "tcp", any6}, {100021, 4, "udp", any6}}
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	first := NewRegistrar(SocketPaths(), services(1234), log)
	if err := first.Register(ctx); err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"tcp", "udp"} {
		if a, err := Lookup(ctx, Question{Prog: 100021, Vers: 4, Network: network, Host: host}); err != nil || a.Port() != 1234 {
			t.Errorf("%s: %v %v", network, a, err)
		}
		if a, err := Lookup(ctx, Question{Prog: 100021, Vers: 4, Network: network, Host: netip.MustParseAddrPort("[::1]:111")}); err != nil || a.Port() != 1234 {
			t.Errorf("%s over IPv6: %v %v", network, a, err)
		}
	}
	// Nobody answers at 1234: another may take its place, and one who
	// answers keeps it.
	alive := serve(t, null).Port()
	second := NewRegistrar(SocketPaths(), services(alive), log)
	if err := second.Register(ctx); err != nil {
		t.Fatal(err)
	}
	if err := NewRegistrar(SocketPaths(), services(4321), log).Register(ctx); !errors.Is(err, ErrTaken) {
		t.Errorf("over a server that answers: %v", err)
	}
	if a, err := Lookup(ctx, Question{Prog: 100021, Vers: 4, Network: "tcp", Host: host}); err != nil || a.Port() != alive {
		t.Errorf("after the attempt: %v %v", a, err)
	}
	second.Unregister()
	if a, err := Lookup(ctx, Question{Prog: 100021, Vers: 4, Network: "udp", Host: host}); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("after taking it back: %v %v", a, err)
	}
}
