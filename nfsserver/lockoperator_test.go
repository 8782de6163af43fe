package nfsserver

import (
	"context"
	"net/netip"
	"testing"

	"ogw/nfsserver/nlm"
	"ogw/vfs/lock"
)

// The locks of a client that is dead are freed by name or address, and those
// who waited for them get them.
func TestFreeLocks(t *testing.T) {
	s, a, b := pair(t)
	a.want("held", isGranted, ask{proc: nlmLock, svid: 1, length: 10})
	a.want("another", isGranted, ask{proc: nlmLock, svid: 2, start: 20, length: 10})
	b.want("waits", isBlocked, ask{proc: nlmLock, svid: 7, length: 10, block: true})
	a.wantShare("nobody else writes", isGranted, reservation{access: 1, deny: 2})
	for _, nobody := range []string{"127.0.0.9", "elsewhere", ""} {
		if list := s.freed(nobody); len(list) != 0 {
			t.Errorf("%q: %+v", nobody, list)
		}
	}
	server := netip.MustParseAddrPort(s.addr).Addr()
	held := nlm.Holder{Addr: a.addr, Server: server, Host: a.name, Locks: 2, Shares: 1}
	if list := s.holders(a.addr.String()); len(list) != 1 || list[0] != held {
		t.Errorf("%+v", list)
	}
	if list := s.freed(a.name); len(list) != 1 || list[0] != held {
		t.Errorf("%+v", list)
	}
	b.wantGrant("freed", 7)
	if list := s.freed(a.addr.String()); len(list) != 0 {
		t.Errorf("twice: %+v", list)
	}
	list, _, _ := s.fs.Locks().List(t.Context(), 10, func(*lock.Entry) bool { return true })
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if o, ok := nlm.OwnerOf(list[0].Lock.Owner); !ok || o.Addr != b.addr || o.Server != server || o.Host != b.name || o.PID != 7 || string(o.ID) != "owner" {
		t.Errorf("%+v %v", o, ok)
	}
}

// holders are what a client has.
func (s *site) holders(client string) []nlm.Holder {
	s.t.Helper()
	list, err := s.srv.LockHolders(context.Background(), client)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// freed are what a client had, and the operator freed.
func (s *site) freed(client string) []nlm.Holder {
	s.t.Helper()
	list, err := s.srv.FreeLocks(context.Background(), client)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}
