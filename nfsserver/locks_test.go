package nfsserver

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/portmap"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// Procedures and statuses of NLM as they stand on the wire.
const (
	nlmTest, nlmLock, nlmCancel, nlmUnlock, nlmGranted = 1, 2, 3, 4, 5
	nlmLockMsg, nlmLockRes                             = 7, 12
	nlmShare, nlmUnshare, nlmNMLock, nlmFreeAll        = 20, 21, 22, 23

	isGranted, isDenied, isBlocked, isGrace, isROFS, isStale, isFailed = 0, 1, 3, 4, 6, 7, 9
)

// lockWait bounds what a test waits for; it is far above what that takes.
const lockWait = 20 * time.Second

// locker is a client machine: it calls, and has a portmapper, a lock manager
// and a status monitor that are called.
type locker struct {
	t     *testing.T
	name  string
	addr  netip.Addr
	port  uint16
	conns map[string]net.Conn
	site  *site
	via   string // an address of the server; "": that of the site
	fh    []byte

	mu       sync.Mutex
	answer   uint32 // to GRANTED
	grants   chan uint32
	results  chan uint32 // of LOCK_RES
	notified chan uint32 // states of SM_NOTIFY
}

// newLocker starts a client at an address; port 0 takes any.
func newLocker(t *testing.T, addr string, port uint16) *locker {
	c := &locker{t: t, name: "host-" + addr, addr: netip.MustParseAddr(addr), conns: map[string]net.Conn{},
		grants: make(chan uint32, 16), results: make(chan uint32, 16), notified: make(chan uint32, 64)}
	l, err := net.Listen("tcp", netip.AddrPortFrom(c.addr, port).String())
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	c.port = at.Port()
	pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	var services []portmap.Service
	for _, network := range []string{"tcp", "udp"} {
		services = append(services, portmap.Service{Prog: nlm.ProgramNumber, Vers: 4, Network: network, Addr: at},
			portmap.Service{Prog: nsm.ProgramNumber, Vers: 1, Network: network, Addr: at})
	}
	procs := make([]rpc.Proc, nlmLockRes+1)
	procs[nlmGranted] = rpc.Proc{Name: "GRANTED", Handle: c.granted}
	procs[nlmLockRes] = rpc.Proc{Name: "LOCK_RES", Handle: func(_ context.Context, call *rpc.Call, _ *rpc.Reply) error {
		call.Args.Opaque(100)
		c.results <- call.Args.Uint32()
		return nil
	}}
	status := make([]rpc.Proc, 7)
	status[6] = rpc.Proc{Name: "NOTIFY", Handle: func(_ context.Context, call *rpc.Call, _ *rpc.Reply) error {
		call.Args.String(1024)
		c.notified <- call.Args.Uint32()
		return nil
	}}
	srv := rpc.NewServer(rpc.Config{Programs: []rpc.Program{portmap.Program(services),
		{Number: nlm.ProgramNumber, Low: 4, High: 4, Procs: procs, Datagrams: true},
		{Number: nsm.ProgramNumber, Low: 1, High: 1, Procs: status, Datagrams: true}}})
	go srv.Serve(l)
	go srv.ServePacket(pc)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
	})
	return c
}

func (c *locker) granted(_ context.Context, call *rpc.Call, r *rpc.Reply) error {
	cookie := call.Args.Opaque(100)
	exclusive := call.Args.Bool()
	name, fh := call.Args.String(255), call.Args.Opaque(64)
	call.Args.Opaque(255)
	svid := call.Args.Uint32()
	if call.Args.Err() != nil || !exclusive || name != c.name || string(fh) != string(c.fh) {
		c.t.Errorf("GRANTED for %q", name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Opaque(cookie)
	r.Uint32(c.answer)
	c.grants <- svid
	return nil
}

// lockSite is a server that finds its clients' portmappers at port, with a
// file in it.
func lockSite(t *testing.T, disk *mem.Disk, port uint16, grace time.Duration, exports ...Export) *site {
	t.Helper()
	if len(exports) == 0 {
		exports = []Export{everyone}
	}
	return lockSiteOver(t, disk, mem.New(mem.Options{Disk: disk}), port, grace, exports...)
}

// lockSiteOver is lockSite over a cluster on disk.
func lockSiteOver(t *testing.T, disk *mem.Disk, clu *cluster.Cluster, port uint16, grace time.Duration, exports ...Export) *site {
	t.Helper()
	s := &site{t: t, disk: disk, clu: clu}
	exports = anyPort(exports)
	var err error
	if s.fs, err = vfs.Open(context.Background(), s.clu, vfs.Config{}); err != nil {
		t.Fatal(err)
	}
	if s.srv, err = New(Config{FS: s.fs, Exports: exports, Logger: testLogger(t), Grace: grace, ClientPortmapPort: port}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.Addr().(*net.TCPAddr).AddrPort()))
	if err != nil {
		t.Fatal(err)
	}
	s.done = make(chan error, 1)
	go func() {
		packets := make(chan error, 1)
		go func() { packets <- s.srv.ServePacket(pc) }()
		s.done <- errors.Join(s.srv.Serve(l), <-packets)
	}()
	t.Cleanup(s.stop)
	return s
}

// at makes the client use a server, and the file "f" there.
func (c *locker) at(s *site) {
	c.t.Helper()
	for _, nc := range c.conns {
		nc.Close()
	}
	clear(c.conns)
	c.site = s
	m := s.mount("/", 0)
	_, fh, _ := m.create(m.root, "f", createUnchecked, set{})
	if c.fh = fh; len(fh) == 0 {
		c.t.Fatal("no file")
	}
}

func (c *locker) invoke(network string, prog, vers, proc uint32, w *xdr.Writer) ([]byte, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	to := cmp.Or(c.via, c.site.addr)
	nc := c.conns[network+to]
	if nc == nil {
		var err error
		if nc, err = rpc.Dial(ctx, network, c.addr, netip.MustParseAddrPort(to)); err != nil {
			c.t.Fatal(err)
		}
		c.conns[network+to] = nc
		c.t.Cleanup(func() { nc.Close() })
	}
	return rpc.Invoke(ctx, nc, rpc.Procedure{Prog: prog, Vers: vers, Proc: proc}, w.B)
}

// ask describes a lock call.
type ask struct {
	proc          uint32
	svid          uint32
	shared        bool
	start, length uint64
	block         bool
	reclaim       bool
	state         uint32
	fh            []byte
	udp           bool
}

func (c *locker) call(a ask) (stat uint32, rest *xdr.Reader) {
	c.t.Helper()
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	switch a.proc {
	case nlmLock, nlmLockMsg, nlmCancel, nlmNMLock:
		w.Bool(a.block)
		w.Bool(!a.shared)
	case nlmTest:
		w.Bool(!a.shared)
	}
	if a.fh == nil {
		a.fh = c.fh
	}
	w.String(c.name)
	w.Opaque(a.fh)
	w.String("owner")
	w.Uint32(a.svid)
	w.Uint64(a.start)
	w.Uint64(a.length)
	if a.proc == nlmLock || a.proc == nlmLockMsg || a.proc == nlmNMLock {
		w.Bool(a.reclaim)
		w.Uint32(a.state)
	}
	b, err := c.invoke(map[bool]string{true: "udp", false: "tcp"}[a.udp], nlm.ProgramNumber, 4, a.proc, &w)
	if err != nil {
		c.t.Fatalf("%+v: %v", a, err)
	}
	r := xdr.NewReader(b)
	if a.proc == nlmLockMsg {
		return 0, &r
	}
	if cookie := r.String(100); cookie != "cookie" {
		c.t.Fatalf("%+v: cookie %q", a, cookie)
	}
	stat = r.Uint32()
	return stat, &r
}

func (c *locker) want(what string, want uint32, a ask) {
	c.t.Helper()
	if got, _ := c.call(a); got != want {
		c.t.Errorf("%s: status %d, want %d", what, got, want)
	}
}

func (c *locker) wantGrant(what string, svid uint32) {
	c.t.Helper()
	select {
	case got := <-c.grants:
		if got != svid {
			c.t.Errorf("%s: granted to %d, want %d", what, got, svid)
		}
	case <-time.After(lockWait):
		c.t.Fatalf("%s: no GRANTED call", what)
	}
}

// notify sends SM_NOTIFY.
func (c *locker) notify(name string, state uint32) {
	c.t.Helper()
	var w xdr.Writer
	w.String(name)
	w.Uint32(state)
	if _, err := c.invoke("udp", nsm.ProgramNumber, 1, 6, &w); err != nil {
		c.t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(lockWait); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// pair is a server and two clients of it.
func pair(t *testing.T) (s *site, a, b *locker) {
	a = newLocker(t, "127.0.0.2", 0)
	b = newLocker(t, "127.0.0.3", a.port)
	s = lockSite(t, mem.NewDisk(), a.port, 0)
	a.at(s)
	b.at(s)
	return s, a, b
}

func TestLocksExclude(t *testing.T) {
	s, a, b := pair(t)
	a.want("first", isGranted, ask{proc: nlmLock, svid: 1, start: 0, length: 10})
	a.want("the same again", isGranted, ask{proc: nlmLock, svid: 1, start: 0, length: 10})
	a.want("another process", isDenied, ask{proc: nlmLock, svid: 2, start: 9, length: 1})
	b.want("the same process number elsewhere", isDenied, ask{proc: nlmLock, svid: 1, start: 9, length: 0})
	b.want("over UDP", isDenied, ask{proc: nlmLock, svid: 1, start: 9, length: 0, udp: true})
	b.want("behind it", isGranted, ask{proc: nlmLock, svid: 1, start: 10, length: 0, udp: true})
	stat, r := b.call(ask{proc: nlmTest, svid: 1, start: 5, length: 100, shared: true})
	exclusive, svid, oh, start, length := r.Bool(), r.Uint32(), r.String(100), r.Uint64(), r.Uint64()
	if stat != isDenied || !exclusive || svid != 1 || oh != "owner" || start != 0 || length != 10 || r.Err() != nil || r.Len() != 0 {
		t.Errorf("TEST: %d %v %d %q %d %d %v", stat, exclusive, svid, oh, start, length, r.Err())
	}
	// Through another door of the same process.
	fuse := lock.Owner{Client: "fuse:1", ID: "x"}
	ino := s.ino(t, "f")
	if err := s.fs.Locks().TryLock(t.Context(), ino, lock.Range, lock.Lock{Owner: fuse, Start: 3, End: 3}); !errors.Is(err, lock.ErrWouldBlock) {
		t.Errorf("FUSE over NFS: %v", err)
	}
	a.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1, start: 0, length: 10})
	if err := s.fs.Locks().TryLock(t.Context(), ino, lock.Range, lock.Lock{Owner: fuse, Type: lock.Exclusive, Start: 3, End: 3, PID: 77}); err != nil {
		t.Errorf("FUSE after unlock: %v", err)
	}
	stat, r = a.call(ask{proc: nlmTest, svid: 1, start: 0, length: 5})
	if exclusive, pid := r.Bool(), r.Uint32(); stat != isDenied || !exclusive || pid != 77 {
		t.Errorf("NFS over FUSE: %d, holder %d", stat, pid)
	}
	a.want("not monitored, beside it", isGranted, ask{proc: nlmNMLock, svid: 1, start: 4, length: 1})
	a.want("a range over the largest offset", isDenied, ask{proc: nlmLock, svid: 3, start: 1, length: 1<<64 - 1})
}

// ino returns the inode of a file in the root.
func (s *site) ino(t *testing.T, name string) uint64 {
	t.Helper()
	a, err := s.fs.Resolve(context.Background(), vfs.Root, name, true)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(a.Ino)
}

func TestBlockedLockIsGrantedByCallback(t *testing.T) {
	s, a, b := pair(t)
	a.want("first", isGranted, ask{proc: nlmLock, svid: 1, block: true})
	b.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, block: true})
	b.want("asks again", isBlocked, ask{proc: nlmLock, svid: 2, block: true})
	if n := s.srv.Locks().Blocked; n != 1 {
		t.Errorf("%d blocked", n)
	}
	a.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1})
	b.wantGrant("after the unlock", 2)
	a.want("taken", isDenied, ask{proc: nlmLock, svid: 1})
	b.want("knows already", isGranted, ask{proc: nlmLock, svid: 2, block: true})
	b.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 2})
	eventually(t, "nothing is left", func() bool { return s.fs.Locks().Count() == 0 && s.srv.Locks().Blocked == 0 })

	// Over UDP, both ways, and from a lock of another door.
	ino, fuse := s.ino(t, "f"), lock.Owner{Client: "fuse:1", ID: "x"}
	if err := s.fs.Locks().TryLock(t.Context(), ino, lock.Range, lock.Lock{Owner: fuse, End: lock.EOF}); err != nil {
		t.Fatal(err)
	}
	a.want("waits for FUSE", isBlocked, ask{proc: nlmLock, svid: 4, block: true, udp: true})
	s.fs.Locks().ReleaseOwner(ino, lock.Range, fuse)
	a.wantGrant("after FUSE", 4)
}

func TestCancelAndRefusal(t *testing.T) {
	s, a, b := pair(t)
	a.want("first", isGranted, ask{proc: nlmLock, svid: 1})
	b.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, block: true})
	b.want("another range waits not", isDenied, ask{proc: nlmCancel, svid: 2, block: true, length: 7})
	b.want("cancelled", isGranted, ask{proc: nlmCancel, svid: 2, block: true})
	b.want("cancelled before", isDenied, ask{proc: nlmCancel, svid: 2, block: true})
	b.want("waits again", isBlocked, ask{proc: nlmLock, svid: 3, block: true})
	b.mu.Lock()
	b.answer = isDenied // the process is gone
	b.mu.Unlock()
	a.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1})
	b.wantGrant("refused by the client", 3)
	eventually(t, "what the client refuses is free", func() bool { return s.fs.Locks().Count() == 0 })
	a.want("free", isGranted, ask{proc: nlmLock, svid: 1})
	select {
	case svid := <-b.grants:
		t.Errorf("granted to %d, who cancelled", svid)
	default:
	}
}

func TestAsynchronousForm(t *testing.T) {
	_, a, b := pair(t)
	for _, want := range []uint32{isGranted, isDenied} {
		c := map[uint32]*locker{isGranted: a, isDenied: b}[want]
		c.call(ask{proc: nlmLockMsg, svid: 1})
		select {
		case got := <-c.results:
			if got != want {
				t.Errorf("LOCK_RES %d, want %d", got, want)
			}
		case <-time.After(lockWait):
			t.Fatal("no LOCK_RES")
		}
	}
}

func TestReclaimAfterRestart(t *testing.T) {
	disk := mem.NewDisk()
	a := newLocker(t, "127.0.0.2", 0)
	b := newLocker(t, "127.0.0.3", a.port)
	s := lockSite(t, disk, a.port, time.Hour)
	a.at(s)
	b.at(s)
	if s.srv.Locks().Grace {
		t.Error("a grace period although there were no clients")
	}
	a.want("lock", isGranted, ask{proc: nlmLock, svid: 1, length: 10})
	b.want("lock and unlock", isGranted, ask{proc: nlmLock, svid: 1, start: 20, length: 1})
	b.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1, start: 20, length: 1})
	s.stop()

	s = lockSite(t, disk, a.port, time.Hour)
	a.at(s)
	b.at(s)
	if st := s.srv.Locks(); !st.Grace || st.Durable != 1 {
		t.Fatalf("after the restart: %+v", st)
	}
	select {
	case state := <-a.notified:
		if state != 3 {
			t.Errorf("state %d, want 3: the second start", state)
		}
	case <-time.After(lockWait):
		t.Fatal("no SM_NOTIFY")
	}
	b.want("not yet", isGrace, ask{proc: nlmLock, svid: 1, length: 1})
	b.want("not even waiting", isGrace, ask{proc: nlmLock, svid: 1, length: 1, block: true})
	b.want("nor known", isGrace, ask{proc: nlmTest, svid: 1, length: 1})
	fuse := lock.Lock{Owner: lock.Owner{Client: "fuse:1", ID: "x"}, End: lock.EOF}
	if err := s.fs.Locks().TryLock(t.Context(), s.ino(t, "f"), lock.Range, fuse); !errors.Is(err, lock.ErrWouldBlock) {
		t.Errorf("FUSE in the grace period: %v", err)
	}
	a.want("reclaimed", isGranted, ask{proc: nlmLock, svid: 1, length: 10, reclaim: true})
	b.want("reclaimed by one who had it not", isDenied, ask{proc: nlmLock, svid: 1, length: 1, reclaim: true})
	a.want("unlock in the grace period", isGranted, ask{proc: nlmUnlock, svid: 1, start: 5, length: 5})
	s.stop()

	// A short one ends by itself.
	s = lockSite(t, disk, a.port, time.Second)
	a.at(s)
	b.at(s)
	a.want("reclaimed once more", isGranted, ask{proc: nlmLock, svid: 1, length: 5, reclaim: true})
	eventually(t, "the end of the grace period", func() bool { return !s.srv.Locks().Grace })
	b.want("held", isDenied, ask{proc: nlmLock, svid: 1, length: 1})
	b.want("free", isGranted, ask{proc: nlmLock, svid: 1, start: 5, length: 1})
	a.want("too late", isGrace, ask{proc: nlmLock, svid: 1, start: 50, length: 1, reclaim: true})
	a.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1})
	b.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1})
	s.stop()

	s = lockSite(t, disk, a.port, time.Hour)
	if st := s.srv.Locks(); st.Grace || st.Durable != 0 {
		t.Errorf("a grace period although nobody held anything: %+v", st)
	}
}

func TestRebootFreesLocks(t *testing.T) {
	s, a, b := pair(t)
	a.want("lock", isGranted, ask{proc: nlmLock, svid: 1, state: 5})
	b.want("waits", isBlocked, ask{proc: nlmLock, svid: 2, block: true, state: 3})
	b.notify(a.name, 7)
	b.want("another's name frees nothing", isBlocked, ask{proc: nlmLock, svid: 2, block: true, state: 7})
	a.notify(a.name, 5)
	b.want("an old notice frees nothing", isBlocked, ask{proc: nlmLock, svid: 2, block: true, state: 7})
	a.notify(a.name+".example.org", 7)
	b.wantGrant("after the reboot", 2)
	a.want("taken", isDenied, ask{proc: nlmLock, svid: 1, state: 7})

	// What it locked before it reboots goes, what it locked before the notice of that
	// arrives stays.
	b.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 2})
	a.want("before", isGranted, ask{proc: nlmLock, svid: 1, start: 100, length: 10, state: 7})
	b.want("again", isGranted, ask{proc: nlmLock, svid: 2, length: 10, state: 7})
	a.want("waits after", isBlocked, ask{proc: nlmLock, svid: 1, length: 10, block: true, state: 9})
	a.want("after", isGranted, ask{proc: nlmLock, svid: 1, start: 105, length: 20, state: 9})
	a.notify(a.name, 9)
	b.want("before", isGranted, ask{proc: nlmLock, svid: 2, start: 100, length: 5, state: 7})
	b.want("after", isDenied, ask{proc: nlmLock, svid: 2, start: 105, length: 1, state: 7})
	b.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 2})
	a.wantGrant("what waits of after", 1)
	a.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 1})
	b.want("all", isGranted, ask{proc: nlmLock, svid: 2, state: 7})

	// A client that waits reboots: its request goes.
	a.want("waits", isBlocked, ask{proc: nlmLock, svid: 1, block: true, state: 9})
	a.notify(a.name, 11)
	b.want("unlock", isGranted, ask{proc: nlmUnlock, svid: 2})
	eventually(t, "nothing is left", func() bool { return s.fs.Locks().Count() == 0 && s.srv.Locks().Blocked == 0 })

	// FREE_ALL is the same without a status monitor.
	a.want("not monitored", isGranted, ask{proc: nlmNMLock, svid: 1})
	a.freeAll(a.name)
	b.want("free", isGranted, ask{proc: nlmLock, svid: 2})
}

// freeAll sends FREE_ALL.
func (c *locker) freeAll(name string) {
	c.t.Helper()
	var w xdr.Writer
	w.String(name)
	w.Uint32(0)
	if _, err := c.invoke("tcp", nlm.ProgramNumber, 4, nlmFreeAll, &w); err != nil {
		c.t.Fatal(err)
	}
}

func TestLocksHonourExports(t *testing.T) {
	c := newLocker(t, "127.0.0.2", 0)
	s := lockSite(t, mem.NewDisk(), c.port, 0, everyone, Export{Path: "/ro", ReadOnly: true},
		Export{Path: "/squashed", Squash: SquashAll}, Export{Path: "/others", Squash: SquashNone})
	c.at(s)
	root := s.mount("/", 0)
	handles := map[string][]byte{}
	for _, dir := range []string{"ro", "squashed", "others"} {
		_, d, _ := root.mkdir(root.root, dir, set{mode: ptr(uint32(0o755))})
		_, _, _ = root.create(d, "f", createGuarded, set{mode: ptr(uint32(0o644))})
		_, _, _ = root.create(d, "private", createGuarded, set{mode: ptr(uint32(0o600))})
		m := s.mount("/"+dir, 0)
		for _, name := range []string{"f", "private"} {
			if _, handles[dir+"/"+name], _ = m.lookup(m.root, name); handles[dir+"/"+name] == nil && dir != "squashed" {
				t.Fatal(dir, name)
			}
		}
		handles[dir] = m.root
	}
	for _, x := range []struct {
		what string
		want uint32
		a    ask
	}{
		{"exclusive in a read-only export", isROFS, ask{proc: nlmLock, fh: handles["ro/f"]}},
		{"shared in a read-only export", isGranted, ask{proc: nlmLock, shared: true, fh: handles["ro/f"]}},
		{"exclusive by one who may only read", isFailed, ask{proc: nlmLock, fh: handles["squashed/f"]}},
		{"shared by one who may read", isGranted, ask{proc: nlmLock, shared: true, fh: handles["squashed/f"]}},
		{"shared by one who may not read", isFailed, ask{proc: nlmLock, shared: true, fh: handles["squashed/private"]}},
		{"by the superuser", isGranted, ask{proc: nlmLock, fh: handles["others/private"]}},
		{"a directory", isFailed, ask{proc: nlmLock, fh: handles["others"]}},
		{"a forged handle", isStale, ask{proc: nlmLock, fh: make([]byte, 40)}},
		{"no handle", isStale, ask{proc: nlmUnlock, fh: []byte{}}},
	} {
		c.want(x.what, x.want, x.a)
	}
	root.must("remove", root.unlink(procRemove, root.root, "f"))
	c.want("a removed file", isStale, ask{proc: nlmLock})
	c.want("giving up a lock of a removed file", isGranted, ask{proc: nlmUnlock})
}

func TestBadLockCalls(t *testing.T) {
	_, a, _ := pair(t)
	for _, args := range [][]byte{nil, {0, 0, 0, 1}, make([]byte, 3), make([]byte, 4096)} {
		_, err := a.invoke("tcp", nlm.ProgramNumber, 4, nlmLock, &xdr.Writer{B: args})
		if len(args) == 4096 {
			continue // zeros are a call, of an empty handle
		}
		if !errors.Is(err, rpc.ErrRefused) {
			t.Errorf("%d bytes: %v", len(args), err)
		}
	}
	a.name = string(make([]byte, nsm.MaxName+1))
	var w xdr.Writer
	w.Opaque(nil)
	w.Bool(false)
	w.Bool(true)
	w.String(a.name)
	if _, err := a.invoke("tcp", nlm.ProgramNumber, 4, nlmLock, &w); !errors.Is(err, rpc.ErrRefused) {
		t.Errorf("a long name: %v", err)
	}
	for _, vers := range []uint32{1, 3, 5} {
		if _, err := a.invoke("tcp", nlm.ProgramNumber, vers, nlmLock, &xdr.Writer{}); !errors.Is(err, rpc.ErrNoProgram) {
			t.Errorf("version %d: %v", vers, err)
		}
	}
	for _, proc := range []uint32{2, 3, 4, 5} {
		if _, err := a.invoke("udp", nsm.ProgramNumber, 1, proc, &xdr.Writer{}); !errors.Is(err, rpc.ErrNoProgram) {
			t.Errorf("procedure %d of the status monitor from outside: %v", proc, err)
		}
	}
	if _, err := a.invoke("udp", ProgramNFS, 3, 0, &xdr.Writer{}); !errors.Is(err, rpc.ErrNoProgram) {
		t.Errorf("NFS over UDP: %v", err)
	}
}
