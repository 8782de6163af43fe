package nfsserver

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/nfsserver/nlm"
	"ogw/vfs/lock"
)

// cutKV is an engine that a gateway may be cut off from.
type cutKV struct {
	cluster.KV
	cut *atomic.Bool
}

var errCut = fmt.Errorf("%w: cut off", cluster.ErrUnavailable)

func (k cutKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if k.cut.Load() {
		return errCut
	}
	return k.KV.Update(ctx, fn)
}

func (k cutKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	if k.cut.Load() {
		return errCut
	}
	return k.KV.View(ctx, fn)
}

func (k cutKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	if k.cut.Load() {
		return errCut
	}
	return k.KV.Peek(ctx, fn)
}

// group is gateways beside one another, all at one address, as clients see one whose address
// moves, and two clients.
type group struct {
	t    *testing.T
	c    *cluster.Cluster
	x, y *locker
}

func newGroup(t *testing.T) *group {
	t.Helper()
	g := &group{t: t, c: mem.New(mem.Options{})}
	t.Cleanup(func() { g.c.Close() })
	g.x = newLocker(t, "127.0.0.2", 0)
	g.y = newLocker(t, "127.0.0.3", g.x.port)
	return g
}

// open has a gateway come; cut cuts it off from the store.
func (g *group) open() (s *site, cut *atomic.Bool) {
	g.t.Helper()
	mine := *g.c
	cut = &atomic.Bool{}
	mine.KV = cutKV{g.c.KV, cut}
	s = lockSiteOver(g.t, nil, besideOthers(g.t, &mine), g.x.port, time.Hour, everyone)
	return s, cut
}

// left returns what the store has of NFS clients.
func (s *site) left() (list []lock.Entry) {
	s.t.Helper()
	list, _, err := s.fs.Locks().List(context.Background(), 100, func(e *lock.Entry) bool { return e.Lock.Owner.Remote() })
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// What a client locks at one gateway is locked at all, for NFS clients and other doors, and
// is given up at any.
func TestBesideLocks(t *testing.T) {
	g := newGroup(t)
	a, _ := g.open()
	b, _ := g.open()
	x, y := g.x, g.y
	x.at(a)
	y.at(b)
	x.want("first", isGranted, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	y.want("at another", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
	y.want("behind it", isGranted, ask{proc: nlmLock, svid: 1, start: 10, length: 10})
	stat, r := y.call(ask{proc: nlmTest, svid: 2, length: 5})
	exclusive, svid, oh := r.Bool(), r.Uint32(), r.String(100)
	if stat != isDenied || !exclusive || svid != 1 || oh != "owner" {
		t.Errorf("TEST: %d %v %d %q", stat, exclusive, svid, oh)
	}
	whole := lock.Lock{Owner: lock.Owner{Client: "mount", ID: "1"}, Type: lock.Exclusive, End: lock.EOF}
	ino := a.ino(t, "f")
	if _, waiting, err := b.fs.Locks().LockFunc(t.Context(), ino, lock.Range, whole, func(error) {}); err != nil || !waiting {
		t.Errorf("a mount at another: %v", err)
	}
	y.want("giving up another's", isGranted, ask{proc: nlmUnlock, svid: 1, length: 10})
	y.want("still held", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
	x.at(b) // the address moved
	x.want("held still", isGranted, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	x.want("not monitored, of another process", isDenied, ask{proc: nlmNMLock, svid: 2, length: 10})
	x.want("a reclaim that is not needed", isGranted, ask{proc: nlmLock, svid: 1, length: 10, reclaim: true, state: 3})
	x.want("a reclaim of another's", isDenied, ask{proc: nlmLock, svid: 1, start: 10, length: 1, reclaim: true, state: 3})
	x.want("given up there", isGranted, ask{proc: nlmUnlock, svid: 1, length: 10})
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	eventually(t, "the mount has it", func() bool {
		_, held, err := a.fs.Locks().Test(t.Context(), ino, lock.Range, lock.Lock{Owner: lock.Owner{Client: "z"}, End: lock.EOF})
		return held && err == nil && len(b.left()) == 0
	})
	x.want("over the mount", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
}

// What waits at one gateway is granted by what is given up at another, and the client called
// back by the one that it asked; if it asks another meanwhile, by that alone.
func TestBesideBlocked(t *testing.T) {
	g := newGroup(t)
	a, _ := g.open()
	b, _ := g.open()
	x, y := g.x, g.y
	x.at(a)
	y.at(b)
	y.want("first", isGranted, ask{proc: nlmLock, svid: 1})
	x.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, block: true})
	y.want("given up elsewhere", isGranted, ask{proc: nlmUnlock, svid: 1})
	x.wantGrant("by callback", 2)
	y.want("taken", isDenied, ask{proc: nlmLock, svid: 1})
	x.want("given up", isGranted, ask{proc: nlmUnlock, svid: 2})

	y.want("again", isGranted, ask{proc: nlmLock, svid: 1})
	x.want("waits", isBlocked, ask{proc: nlmLock, svid: 3, block: true})
	x.at(b)
	x.want("waits here, too", isBlocked, ask{proc: nlmLock, svid: 3, block: true})
	eventually(t, "it waits once", func() bool { return a.srv.Locks().Blocked == 0 && b.srv.Locks().Blocked == 1 })
	if list := b.left(); len(list) != 2 {
		t.Errorf("%+v", list)
	}
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	x.wantGrant("by the second", 3)
	select {
	case svid := <-x.grants:
		t.Errorf("%d is granted twice", svid)
	case <-time.After(time.Second):
	}
	x.want("given up", isGranted, ask{proc: nlmUnlock, svid: 3})

	y.want("once more", isGranted, ask{proc: nlmLock, svid: 1})
	x.want("waits", isBlocked, ask{proc: nlmLock, svid: 4, block: true})
	x.at(a)
	x.want("another range", isDenied, ask{proc: nlmCancel, svid: 4, block: true, length: 7})
	y.at(a)
	y.want("another's", isDenied, ask{proc: nlmCancel, svid: 4, block: true})
	x.want("cancelled elsewhere", isGranted, ask{proc: nlmCancel, svid: 4, block: true})
	x.want("cancelled before", isDenied, ask{proc: nlmCancel, svid: 4, block: true})
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	eventually(t, "nothing is left", func() bool { return len(a.left()) == 0 && b.srv.Locks().Blocked == 0 })

	// The client refuses what it was granted.
	y.want("once more", isGranted, ask{proc: nlmLock, svid: 1})
	x.want("waits", isBlocked, ask{proc: nlmLock, svid: 5, block: true})
	x.mu.Lock()
	x.answer = isDenied
	x.mu.Unlock()
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	x.wantGrant("and refused", 5)
	eventually(t, "what the client refuses is free", func() bool { return len(b.left()) == 0 })
}

// A gateway that is put out takes with it what waits, and no lock: the client goes on at
// another, without a grace period. One that comes then finds all.
func TestBesideGatewayDies(t *testing.T) {
	g := newGroup(t)
	a, cut := g.open()
	b, _ := g.open()
	x, y := g.x, g.y
	x.at(a)
	y.at(b)
	x.want("held", isGranted, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	y.want("held", isGranted, ask{proc: nlmLock, svid: 1, start: 10, length: 10})
	x.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, start: 10, length: 10, block: true, state: 3})
	cut.Store(true)
	b.alone()
	y.want("the lock is there", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
	x.at(b)
	x.want("asked again", isBlocked, ask{proc: nlmLock, svid: 2, start: 10, length: 10, block: true, state: 3})
	if list := b.left(); len(list) != 3 {
		t.Errorf("%+v", list)
	}
	y.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	x.wantGrant("at the second", 2)
	c, _ := g.open()
	if st := c.srv.Locks(); st.Grace || st.Durable != 0 {
		t.Errorf("%+v", st)
	}
	y.at(c)
	y.want("at a new one", isDenied, ask{proc: nlmLock, svid: 1})
	x.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1, length: 10})
	x.want("given up", isGranted, ask{proc: nlmUnlock, svid: 2})
	y.want("free", isGranted, ask{proc: nlmLock, svid: 1})
	if len(x.notified) > 0 {
		t.Error("a client is told of a restart")
	}
}

// alone waits until the other gateways are put out.
func (s *site) alone() {
	s.t.Helper()
	eventually(s.t, "it is put out", func() bool {
		list, err := s.fs.Gateways(context.Background())
		return err == nil && len(list) == 1
	})
}

// A gateway that ends in order leaves to its clients what they hold.
func TestBesideStop(t *testing.T) {
	g := newGroup(t)
	a, _ := g.open()
	b, _ := g.open()
	g.x.at(a)
	g.y.at(b)
	g.x.want("held", isGranted, ask{proc: nlmLock, svid: 1})
	a.stop()
	g.y.want("is held", isDenied, ask{proc: nlmLock, svid: 1})
	g.x.at(b)
	g.x.want("given up", isGranted, ask{proc: nlmUnlock, svid: 1})
	g.y.want("free", isGranted, ask{proc: nlmLock, svid: 1})
}

// The notice of a reboot and the operator, at any gateway, end what a client locked at
// another, and no other client does.
func TestBesideReboot(t *testing.T) {
	g := newGroup(t)
	a, _ := g.open()
	b, _ := g.open()
	x, y := g.x, g.y
	x.at(a)
	y.at(b)
	x.want("held", isGranted, ask{proc: nlmLock, svid: 1, length: 10, state: 3})
	y.notify(x.name, 5)
	y.want("another's notice", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
	y.freeAll(x.name)
	y.want("another's FREE_ALL", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
	x.at(b)
	x.notify(x.name, 3)
	y.want("a late notice", isDenied, ask{proc: nlmLock, svid: 1, length: 10})
	y.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, length: 10, block: true})
	x.want("after the reboot", isGranted, ask{proc: nlmLock, svid: 1, start: 20, length: 10, state: 5})
	x.notify(x.name+".example.org", 5)
	y.wantGrant("of before", 2)
	y.want("of after", isDenied, ask{proc: nlmLock, svid: 1, start: 20, length: 10})
	x.at(a)
	x.freeAll(x.name)
	y.want("free", isGranted, ask{proc: nlmLock, svid: 2, start: 20, length: 10})

	server := netip.MustParseAddrPort(b.addr).Addr()
	if list := a.holders(y.name); len(list) != 1 || list[0] != (nlm.Holder{Addr: y.addr, Server: server, Host: y.name, Locks: 2}) {
		t.Errorf("%+v", list)
	}
	if list := a.freed(y.addr.String()); len(list) != 1 || len(b.left()) != 0 {
		t.Errorf("%+v", list)
	}
	if list := b.holders(y.name); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// A store that does not answer makes clients ask again, whatever they ask.
func TestBesideAway(t *testing.T) {
	g := newGroup(t)
	a, cut := g.open()
	g.x.at(a)
	g.x.want("held", isGranted, ask{proc: nlmLock, svid: 1, length: 10})
	cut.Store(true)
	g.x.want("a lock", isGrace, ask{proc: nlmLock, svid: 1, start: 20, length: 10})
	g.x.want("one that waits", isGrace, ask{proc: nlmLock, svid: 1, start: 20, length: 10, block: true})
	g.x.want("giving up", isGrace, ask{proc: nlmUnlock, svid: 1, length: 10})
	g.x.want("a cancel", isGrace, ask{proc: nlmCancel, svid: 1, start: 20, length: 10})
	g.x.want("a test", isGrace, ask{proc: nlmTest, svid: 1, length: 10})
	cut.Store(false)
	eventually(t, "it is given up", func() bool {
		stat, _ := g.x.call(ask{proc: nlmUnlock, svid: 1})
		return stat == isGranted && len(a.left()) == 0
	})
}
