package nfsserver

import (
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/xdr"
	"ogw/vfs/lock"
)

// reservation describes a call of SHARE, or of UNSHARE.
type reservation struct {
	access, deny uint32
	unshare      bool
	reclaim      bool
	owner        string
}

const none, reading, writing, both = 0, 1, 2, 3

func (c *locker) reserve(a reservation) uint32 {
	c.t.Helper()
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	w.String(c.name)
	w.Opaque(c.fh)
	w.String("owner" + a.owner)
	w.Uint32(a.deny)
	w.Uint32(a.access)
	w.Bool(a.reclaim)
	proc := uint32(nlmShare)
	if a.unshare {
		proc = nlmUnshare
	}
	b, err := c.invoke("tcp", nlm.ProgramNumber, 4, proc, &w)
	if err != nil {
		c.t.Fatal(err)
	}
	r := xdr.NewReader(b)
	cookie := r.String(100)
	stat := r.Uint32()
	r.Uint32()
	if cookie != "cookie" || r.Err() != nil || r.Len() != 0 {
		c.t.Errorf("reply: %q, %v", cookie, r.Err())
	}
	return stat
}

func (c *locker) wantShare(what string, want uint32, a reservation) {
	c.t.Helper()
	if got := c.reserve(a); got != want {
		c.t.Errorf("%s: status %d, want %d", what, got, want)
	}
}

// shares returns what the store, or this server, has of them.
func (s *site) shares() (list []lock.Entry) {
	s.t.Helper()
	list, _, err := s.fs.Locks().List(s.t.Context(), 100, func(e *lock.Entry) bool { return e.Space == lock.Share })
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// exclude has two clients reserve the same file.
func exclude(a, b *locker) {
	a.t.Helper()
	for i, x := range []struct {
		c    *locker
		a    reservation
		want uint32
	}{
		{a, reservation{access: reading, deny: writing}, isGranted},
		{a, reservation{access: reading, deny: writing}, isGranted}, // the same again
		{b, reservation{access: writing}, isDenied},
		{b, reservation{access: reading, deny: reading}, isDenied},
		{b, reservation{access: reading}, isGranted},
		{a, reservation{access: both, deny: both}, isDenied}, // b reads
		{b, reservation{access: writing}, isDenied},          // a has what it had
		{b, reservation{unshare: true, owner: "of nothing"}, isGranted},
		{a, reservation{access: both, deny: both}, isDenied}, // b reads still
		{b, reservation{unshare: true, access: reading}, isGranted},
		{b, reservation{unshare: true, access: reading}, isGranted},
		{a, reservation{access: both, deny: both}, isGranted},
		{b, reservation{access: none}, isGranted}, // does nothing, denies nothing
		{b, reservation{unshare: true}, isGranted},
		{a, reservation{access: reading, owner: "another program of it"}, isDenied},
		{a, reservation{unshare: true, access: both, deny: both}, isGranted},
		{b, reservation{access: both, deny: both}, isGranted},
		{b, reservation{unshare: true}, isGranted},
	} {
		if got := x.c.reserve(x.a); got != x.want {
			a.t.Errorf("step %d: status %d, want %d", i, got, x.want)
		}
	}
}

func TestShares(t *testing.T) {
	s, a, b := pair(t)
	exclude(a, b)
	if n := s.fs.Locks().Count(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// Clients are notified of a restart, and reclaim in the grace period what they had reserved.
func TestSharesReclaimed(t *testing.T) {
	disk := mem.NewDisk()
	a := newLocker(t, "127.0.0.2", 0)
	b := newLocker(t, "127.0.0.3", a.port)
	s := lockSite(t, disk, a.port, time.Hour)
	a.at(s)
	b.at(s)
	a.wantShare("held", isGranted, reservation{access: reading, deny: writing})
	a.wantShare("too late to reclaim", isGrace, reservation{access: reading, reclaim: true})
	s.stop()

	s = lockSite(t, disk, a.port, time.Hour)
	a.at(s)
	b.at(s)
	select {
	case <-a.notified:
	case <-time.After(lockWait):
		t.Fatal("no SM_NOTIFY")
	}
	b.wantShare("not yet", isGrace, reservation{access: reading})
	a.wantShare("nor for who had it", isGrace, reservation{access: reading})
	a.wantShare("reclaimed", isGranted, reservation{access: reading, deny: writing, reclaim: true})
	a.wantShare("again", isGranted, reservation{access: reading, deny: writing, reclaim: true})
	b.wantShare("what another one denies", isDenied, reservation{access: writing, reclaim: true})
	a.wantShare("another one", isGranted, reservation{access: reading, reclaim: true, owner: "2"})
	a.wantShare("given up", isGranted, reservation{unshare: true, owner: "2"})
	if st := s.srv.Locks(); !st.Grace || len(s.shares()) != 1 {
		t.Errorf("%+v, %+v", st, s.shares())
	}
	s.stop()

	s = lockSite(t, disk, a.port, time.Second)
	a.at(s)
	b.at(s)
	a.wantShare("reclaimed", isGranted, reservation{access: reading, deny: writing, reclaim: true})
	eventually(t, "the end of the grace period", func() bool { return !s.srv.Locks().Grace })
	b.wantShare("is held", isDenied, reservation{access: writing})
	a.wantShare("given up", isGranted, reservation{unshare: true})
	b.wantShare("free", isGranted, reservation{access: writing})
}

// reboots has two clients, and a reboot of the first.
func reboots(x, y *locker) {
	x.t.Helper()
	x.want("says its state", isGranted, ask{proc: nlmLock, svid: 1, state: 3})
	x.wantShare("before", isGranted, reservation{access: writing})
	y.wantShare("is held", isDenied, reservation{deny: writing})
	y.notify(x.name, 5)
	y.freeAll(x.name)
	y.wantShare("another's notices", isDenied, reservation{deny: writing})
	x.notify(x.name, 3)
	y.wantShare("an old notice", isDenied, reservation{deny: writing})
	x.want("after", isGranted, ask{proc: nlmLock, svid: 1, state: 5})
	x.wantShare("after", isGranted, reservation{access: reading, owner: "2"})
	x.notify(x.name+".example.org", 5)
	y.wantShare("of after", isDenied, reservation{deny: reading})
	y.wantShare("of before", isGranted, reservation{deny: writing})
	x.freeAll(x.name)
	y.wantShare("free", isGranted, reservation{deny: both})
	y.wantShare("given up", isGranted, reservation{unshare: true})
}

func TestSharesOfRebooted(t *testing.T) {
	s, a, b := pair(t)
	reboots(a, b)
	if n := s.fs.Locks().Count(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// ready waits until a gateway knows that all of them know share reservations: until then a
// client is to ask again.
func (c *locker) ready() {
	c.t.Helper()
	eventually(c.t, "share reservations", func() bool {
		got := c.reserve(reservation{owner: "ready"})
		if got != isGranted && got != isGrace {
			c.t.Fatalf("status %d", got)
		}
		return got == isGranted
	})
	c.wantShare("given up", isGranted, reservation{unshare: true, owner: "ready"})
}

// What a client reserves at one gateway all know; it outlives that, and ends at any.
func TestBesideShares(t *testing.T) {
	g := newGroup(t)
	a, cut := g.open()
	b, _ := g.open()
	x, y := g.x, g.y
	x.at(a)
	y.at(b)
	x.ready()
	y.ready()
	exclude(x, y)
	exclude(y, x)
	reboots(x, y)
	if list := append(a.left(), b.left()...); len(list) != 0 {
		t.Errorf("left: %+v", list)
	}

	x.wantShare("held", isGranted, reservation{access: reading, deny: writing})
	y.wantShare("beside it", isGranted, reservation{access: reading})
	y.want("a lock is another matter", isGranted, ask{proc: nlmLock, svid: 0})
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 0})
	cut.Store(true)
	x.wantShare("cut off", isGrace, reservation{access: both})
	x.wantShare("cut off", isGrace, reservation{unshare: true})
	b.alone()
	y.wantShare("it is there", isDenied, reservation{access: writing})
	x.at(b) // the address moved
	x.wantShare("reclaimed, as after a restart", isGranted, reservation{access: reading, deny: writing, reclaim: true})
	x.wantShare("of another", isDenied, reservation{access: writing, deny: reading, reclaim: true})
	x.wantShare("as it is", isGranted, reservation{access: reading, deny: writing})
	if list := b.holders(x.name); len(list) != 1 || list[0].Shares != 1 || list[0].Locks != 0 {
		t.Errorf("%+v", list)
	}
	x.wantShare("given up there", isGranted, reservation{unshare: true})
	y.wantShare("free", isGranted, reservation{access: writing})
	c, _ := g.open()
	x.at(c)
	x.ready()
	x.wantShare("at a new one", isDenied, reservation{access: reading, deny: writing})
	if list := c.freed(y.addr.String()); len(list) != 1 || list[0].Shares != 1 {
		t.Errorf("%+v", list)
	}
	x.wantShare("freed by the operator", isGranted, reservation{access: reading, deny: writing})
	c.stop()
	y.wantShare("who stops leaves it", isDenied, reservation{access: writing})
	x.at(b)
	x.freeAll(x.name)
	if list := b.left(); len(list) != 0 || len(x.notified) > 0 {
		t.Errorf("left: %+v; %d notices", list, len(x.notified))
	}
}
