package rpc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"ogw/nfsserver/xdr"
)

// servePackets serves a program of an echo over datagrams, and another one
// that is for streams only.
func servePackets(t *testing.T, network, listen string) uint16 {
	t.Helper()
	echo := []Proc{{Name: "null", Handle: func(context.Context, *Call, *Reply) error { return nil }},
		{Name: "echo", Handle: func(_ context.Context, c *Call, r *Reply) error {
			p := c.Args.Opaque(1 << 20)
			if c.Args.Err() != nil {
				return ErrGarbageArgs
			}
			r.Opaque(p)
			r.String(c.Local.Addr().String())
			return nil
		}},
		{Name: "long", Handle: func(_ context.Context, _ *Call, r *Reply) error {
			r.Opaque(make([]byte, maxDatagram))
			return nil
		}}}
	s := NewServer(Config{Programs: []Program{{Number: testProg, Low: 3, High: 3, Procs: echo, Datagrams: true},
		{Number: testProg + 1, Low: 3, High: 3, Procs: echo}}})
	addr, err := net.ResolveUDPAddr(network, listen)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenUDP(network, addr)
	if err != nil {
		t.Skip(err) // no IPv6 here
	}
	done := make(chan error, 1)
	go func() { done <- s.ServePacket(pc) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return uint16(pc.LocalAddr().(*net.UDPAddr).Port)
}

// Replies come from the address that was called, whatever the socket is bound
// to: the client's socket takes no others.
func TestDatagrams(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, c := range []struct{ network, listen, to string }{
		{"udp4", "127.0.0.1:0", "127.0.0.1"},
		{"udp4", "0.0.0.0:0", "127.0.0.5"},
		{"udp", "[::]:0", "127.0.0.6"},
		{"udp", "[::]:0", "::1"},
	} {
		t.Run(c.listen+" called at "+c.to, func(t *testing.T) {
			port := servePackets(t, c.network, c.listen)
			nc, err := Dial(ctx, "udp", netip.Addr{}, netip.AddrPortFrom(netip.MustParseAddr(c.to), port))
			if err != nil {
				t.Skip(err)
			}
			defer nc.Close()
			var w xdr.Writer
			w.String("hello")
			b, err := Invoke(ctx, nc, Procedure{testProg, 3, 1}, w.B)
			r := xdr.NewReader(b)
			if text, local := r.String(100), r.String(100); err != nil || text != "hello" || local != c.to {
				t.Errorf("%q to %q: %v", text, local, err)
			}
			if _, err := Invoke(ctx, nc, Procedure{testProg + 1, 3, 0}, nil); !errors.Is(err, ErrNoProgram) {
				t.Errorf("a program for streams: %v", err)
			}
			if _, err := Invoke(ctx, nc, Procedure{testProg, 3, 1}, []byte{0, 0, 0, 9}); !errors.Is(err, ErrRefused) {
				t.Errorf("garbage: %v", err)
			}
			// What is no call is not answered, and harms nobody.
			for _, junk := range [][]byte{nil, {1}, make([]byte, 100), make([]byte, maxDatagram+1)} {
				nc.Write(junk)
			}
			if _, err := Invoke(ctx, nc, Procedure{testProg, 3, 0}, nil); err != nil {
				t.Errorf("after junk: %v", err)
			}
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			if _, err := Invoke(short, nc, Procedure{testProg, 3, 2}, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a reply that does not fit: %v", err)
			}
		})
	}
}
