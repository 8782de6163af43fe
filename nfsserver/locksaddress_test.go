package nfsserver

import (
	"net"
	"net/netip"
	"testing"

	"ogw/cluster/mem"
)

// A client numbers its processes for each address of the server anew: what it locks through
// one is not what it locks through another, and its reboot ends both.
func TestLocksByServerAddress(t *testing.T) {
	a := newLocker(t, "127.0.0.5", 0)
	s := lockSite(t, mem.NewDisk(), a.port, 0)
	a.at(s)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.srv.Serve(l)
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4zero, Port: int(port)})
	if err != nil {
		t.Fatal(err)
	}
	go s.srv.ServePacket(pc)
	through := func(addr string) func() *locker {
		return func() *locker {
			a.via = netip.AddrPortFrom(netip.MustParseAddr(addr), port).String()
			return a
		}
	}
	one, two := through("127.0.0.1"), through("127.0.0.2")
	one().want("through one address", isGranted, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	two().want("the same number through another", isDenied, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	two().want("nor over UDP", isDenied, ask{proc: nlmLock, svid: 1, length: 10, state: 3, udp: true})
	two().want("giving up what it has not", isGranted, ask{proc: nlmUnlock, svid: 1})
	two().want("beside it", isGranted, ask{proc: nlmLock, svid: 1, start: 20, length: 10, state: 3, udp: true})
	two().want("waits", isBlocked, ask{proc: nlmLock, svid: 1, length: 10, block: true, state: 3})
	one().want("the same address over UDP", isGranted, ask{proc: nlmUnlock, svid: 1, length: 10, udp: true})
	two().wantGrant("after the unlock", 1)
	one().want("held", isDenied, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	if list := s.holders(a.name); len(list) != 1 || list[0].Locks != 2 {
		t.Errorf("%+v", list)
	}
	one().want("beside both", isGranted, ask{proc: nlmLock, svid: 1, start: 40, length: 10, state: 3})
	one().notify(a.name, 5)
	eventually(t, "the reboot ends all", func() bool { return s.fs.Locks().Count() == 0 })
	one().want("again", isGranted, ask{proc: nlmLock, svid: 1, start: 40, length: 10, state: 5})
	two().want("again", isGranted, ask{proc: nlmLock, svid: 1, length: 10, state: 5})
	if list := s.freed(a.addr.String()); len(list) != 2 || s.fs.Locks().Count() != 0 {
		t.Errorf("%+v, %d locks", list, s.fs.Locks().Count())
	}
}

// Clients are notified of a restart by each address of the server that they used.
func TestNotifyByServerAddress(t *testing.T) {
	disk := mem.NewDisk()
	a := newLocker(t, "127.0.0.5", 0)
	s := lockSite(t, disk, a.port, 0)
	a.at(s)
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.srv.Serve(l)
	a.want("through one address", isGranted, ask{proc: nlmLock, svid: 1, length: 10})
	a.via = l.Addr().String()
	a.want("through another", isGranted, ask{proc: nlmLock, svid: 1, start: 20, length: 10})
	a.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1})
	if n := s.srv.Locks().Durable; n != 2 {
		t.Errorf("%d are to be notified", n)
	}
	s.stop()
	s = lockSite(t, disk, a.port, 0)
	if n := s.srv.Locks().Durable; n != 1 {
		t.Errorf("%d are to be notified after the restart", n)
	}
}
