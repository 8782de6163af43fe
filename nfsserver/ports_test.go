package nfsserver

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"ogw/nfsserver/nlm"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

func TestReservedPorts(t *testing.T) {
	now := time.Now()
	table := mustTable(t, Export{Path: "/"},
		Export{Path: "/open", Insecure: true, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, c := range []struct {
		from                 string
		whole, open, trusted bool
	}{
		{"10.0.0.1:1023", true, true, true},
		{"10.0.0.1:1024", false, true, true},
		{"[2001:db8::1]:40000", false, false, false},
		{"192.0.2.1:40000", false, false, false},
		{"192.0.2.1:1", true, false, true},
	} {
		from := netip.MustParseAddrPort(c.from)
		if table.list[0].allows(from, now) != c.whole || table.list[1].allows(from, now) != c.open || table.trusts(from, now) != c.trusted {
			t.Errorf("%s: %v, %v, %v", c.from, table.list[0].refuses(from, now), table.list[1].refuses(from, now), table.trusts(from, now))
		}
	}
}

// TestCallsOfAnybody: a program of any user of a client gets nothing without
// insecure, through any program, with whichever handle.
func TestCallsOfAnybody(t *testing.T) {
	s := newSite(t)
	good := s.mount("/", 0)
	_, fh, _ := good.create(good.root, "f", createGuarded, set{})
	if err := s.srv.SetExports([]Export{everyone}); err != nil { // as newSite had it, and with ports
		t.Fatal(err)
	}
	c := s.dial()
	st, _ := c.mnt("/")
	c.want("MNT", Status(st), ErrAcces)
	for range 2 { // by the reader and by a worker
		st, _ := c.getattr(fh)
		c.want("GETATTR", st, ErrAcces)
	}
	c.want("WRITE", statusOfWrite(c.write(fh, 0, fileSync, []byte("x"))), ErrAcces)
	c.call(ProgramNFS, procNull, &xdr.Writer{})
	c.call(ProgramMount, mountExport, &xdr.Writer{}) // as showmount does

	for _, x := range []struct {
		name       string
		prog, proc uint32
		vers       uint32
		denied     bool
	}{
		{"NLM NULL", nlm.ProgramNumber, 0, nlm.Version, false},
		{"NSM NULL", nsm.ProgramNumber, 0, nsm.Version, false},
		{"LOCK", nlm.ProgramNumber, nlmLock, nlm.Version, true},
		{"UNLOCK", nlm.ProgramNumber, nlmUnlock, nlm.Version, true},
		{"FREE_ALL", nlm.ProgramNumber, nlmFreeAll, nlm.Version, true},
		{"SM_NOTIFY", nsm.ProgramNumber, 6, nsm.Version, true},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), lockWait)
		nc, err := rpc.Dial(ctx, "tcp", netip.MustParseAddr("127.0.0.1"), netip.MustParseAddrPort(s.addr))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rpc.Invoke(ctx, nc, rpc.Procedure{Prog: x.prog, Vers: x.vers, Proc: x.proc}, nil); (err != nil) != x.denied {
			t.Errorf("%s: %v", x.name, err)
		}
		nc.Close()
		cancel()
	}
}
