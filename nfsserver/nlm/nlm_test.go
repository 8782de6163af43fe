package nlm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
	"ogw/vfs/lock"
)

func TestStatuses(t *testing.T) {
	for _, e := range errorTable {
		if got := statOf(fmt.Errorf("wrapped: %w", e.err)); got != e.stat {
			t.Errorf("%v: %v, want %v", e.err, got, e.stat)
		}
	}
	for err, want := range map[error]Stat{
		nil: statGranted, statFBig: statFBig, vfs.ErrAccess: statFailed, vfs.ErrInvalid: statFailed,
		errors.New("unheard of"): statFailed, lock.ErrWouldBlock: statDenied, lock.ErrGrace: statGrace,
	} {
		if got := statOf(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		offset, length uint64
		end            uint64
		err            error
	}{
		{0, 0, lock.EOF, nil},
		{0, 1, 0, nil},
		{10, 5, 14, nil},
		{lock.EOF, 1, lock.EOF, nil},
		{lock.EOF, 2, lock.EOF, nil},
		{5, math.MaxUint64, lock.EOF, nil},
		{lock.EOF + 1, 1, 0, statFBig},
		{math.MaxUint64, math.MaxUint64, 0, statFBig},
	} {
		a := lockArgs{offset: c.offset, length: c.length}
		l, err := a.lock("c")
		if !errors.Is(err, c.err) || err == nil && (l.Start != c.offset || l.End != c.end) {
			t.Errorf("%d+%d: %d-%d %v", c.offset, c.length, l.Start, l.End, err)
		}
	}
}

func TestOwners(t *testing.T) {
	o := ownerOf(clientName(testCaller, "host"), 7, []byte("oh"))
	if svid, oh, ok := splitOwner(o); svid != 7 || string(oh) != "oh" || !ok {
		t.Errorf("%d %q %v", svid, oh, ok)
	}
	if _, _, ok := splitOwner(lock.Owner{Client: "fuse:1", ID: "12345678"}); ok {
		t.Error("an owner of FUSE is taken for one of NFS")
	}
}

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"a", "A", true}, {"a", "a.example.org", true}, {"a.example.org", "a", true},
		{"a.example.org", "a.example.com", false}, {"a", "b", false}, {"", "a", false},
	} {
		if sameHost(c.a, c.b) != c.same {
			t.Errorf("%q %q: not %v", c.a, c.b, c.same)
		}
	}
}

// FuzzLockArgs: what is decoded encodes to the same arguments, and nothing
// crashes.
func FuzzLockArgs(f *testing.F) {
	sample := lockArgs{exclusive: true, caller: "host", fh: []byte("handle"), oh: []byte("1@host"), svid: 1, offset: 2, length: 3}
	for _, proc := range []int{procTest, procLock, procCancel, procUnlock, procGranted} {
		f.Add(byte(proc), sample.encodeGranted([]byte("cookie")))
	}
	f.Fuzz(func(t *testing.T, proc byte, b []byte) {
		r := xdr.NewReader(b)
		var a lockArgs
		err := a.decode(&r, int(proc))
		if err == nil && (len(a.caller) > nsm.MaxName || len(a.oh) > maxOwner || len(a.fh) > maxNetobj) {
			t.Error("longer than allowed")
		}
		if err == nil && proc == procGranted {
			if again := a.encodeGranted(a.cookie); r.Len() == 0 && !zeroPadded(b, again) {
				t.Errorf("%x became %x", b, again)
			}
		}
		if l, err := a.lock("c"); err == nil && l.Start > l.End {
			t.Errorf("range %d-%d", l.Start, l.End)
		}
		var s shareArgs
		r = xdr.NewReader(b)
		if s.decode(&r) == nil && (s.deny > maxShareMode || s.access > maxShareMode) {
			t.Error("share mode out of range")
		}
		_, _, _ = decodeResult(b)
	})
}

// zeroPadded compares encodings; padding may have been anything.
func zeroPadded(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && b[i] != 0 {
			return false
		}
	}
	return true
}

// memStore keeps settings in memory, as vfs.FS does in its store.
type memStore struct {
	mu     sync.Mutex
	values map[string][]byte
	broken error
}

func (m *memStore) Settings(_ context.Context, prefix string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string][]byte{}
	for k, v := range m.values {
		if len(k) >= len(prefix) && k[:len(prefix)] == prefix {
			found[k] = v
		}
	}
	return found, m.broken
}

func (m *memStore) UpdateSetting(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	v, err := change(m.values[name])
	if v == nil {
		delete(m.values, name)
	} else {
		m.values[name] = v
	}
	return err
}

// oneFile resolves every handle to the inode in its first byte.
type oneFile struct{}

func (oneFile) Resolve(_ context.Context, _ *rpc.Call, fh []byte, _ Access) (uint64, error) {
	if len(fh) != 1 {
		return 0, vfs.ErrStale
	}
	return uint64(fh[0]), nil
}

func newServer(t *testing.T, store *memStore) *Server {
	t.Helper()
	return newServerOver(t, lock.New(0), store)
}

func newServerOver(t *testing.T, locks lock.Locks, store *memStore) *Server {
	t.Helper()
	s, err := New(context.Background(), Config{Locks: locks, Files: oneFile{}, Store: store, Instance: "test",
		Grace: time.Hour, PortmapPort: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func (s *Server) testLock(t *testing.T, k caller, name string, a lockArgs) Stat {
	t.Helper()
	h, err := s.enter(k, name)
	if err != nil {
		return statOf(err)
	}
	defer s.leave(h)
	l, err := a.lock(h.client)
	if err != nil {
		t.Fatal(err)
	}
	a.monitored = true
	return statOf(s.lock(context.Background(), h, 1, &a, l))
}

var testCaller = caller{remote: netip.MustParseAddr("127.0.0.1"), network: "tcp"}

func TestNoLockWithoutDurableClient(t *testing.T) {
	store := &memStore{values: map[string][]byte{}}
	s := newServer(t, store)
	store.mu.Lock()
	store.broken = vfs.ErrUnavailable
	store.mu.Unlock()
	if got := s.testLock(t, testCaller, "a", lockArgs{exclusive: true}); got != statGrace || s.locks.Count() != 0 {
		t.Errorf("%v, %d locks", got, s.locks.Count())
	}
	store.mu.Lock()
	store.broken = nil
	store.mu.Unlock()
	if got := s.testLock(t, testCaller, "a", lockArgs{exclusive: true}); got != statGranted {
		t.Error(got)
	}
}

func TestIdleClientsAreForgotten(t *testing.T) {
	store := &memStore{values: map[string][]byte{}}
	s := newServer(t, store)
	s.testLock(t, testCaller, "holds", lockArgs{exclusive: true})
	s.testLock(t, testCaller, "waits", lockArgs{exclusive: true, block: true})
	s.testLock(t, testCaller, "idle", lockArgs{exclusive: true}) // denied
	if st := s.Stats(); st.Clients != 3 || st.Durable != 3 || st.Blocked != 1 {
		t.Errorf("%+v", st)
	}
	s.sweep(context.Background(), time.Hour)
	if st := s.Stats(); st.Durable != 3 {
		t.Errorf("forgotten too early: %+v", st)
	}
	s.sweep(context.Background(), 0)
	if st := s.Stats(); st.Clients != 2 || st.Durable != 2 {
		t.Errorf("%+v", st)
	}
	s.Close(context.Background())
	if left := newServer(t, store).monitor.Left(); len(left) != 2 {
		t.Errorf("told of the restart: %v", left)
	}
}

// otherCaller is at another address than testCaller.
var otherCaller = caller{remote: netip.MustParseAddr("127.0.0.2"), network: "tcp"}

// TestWaitersAreBounded: by address, whatever names a client takes.
func TestWaitersAreBounded(t *testing.T) {
	s := newServer(t, &memStore{values: map[string][]byte{}})
	s.testLock(t, testCaller, "holds", lockArgs{exclusive: true})
	wait := func(k caller, name string, svid uint32) Stat {
		t.Helper()
		return s.testLock(t, k, name, lockArgs{exclusive: true, block: true, svid: svid})
	}
	names := []string{"many", "more", "yet more"}
	for i := range uint32(maxBlocked / 2) {
		if got := wait(testCaller, names[i%3], i); got != statBlocked {
			t.Fatal(i, got)
		}
	}
	for _, name := range append(names, "new") {
		if got := wait(testCaller, name, 1<<30); got != statNoLocks {
			t.Errorf("one more of %s: %v", name, got)
		}
	}
	for i := range uint32(2 * addressBlocked) {
		if got := wait(otherCaller, "other", i); got != statBlocked {
			t.Fatalf("another client, request %d: %v", i, got)
		}
	}
	for _, name := range names {
		s.release(t.Context(), s.hosts[clientName(testCaller, name)], 0)
	}
	if st := s.Stats(); st.Blocked != 2*addressBlocked {
		t.Errorf("%d blocked", st.Blocked)
	}
}

// TestNamesAreBounded: one address cannot have all clients that are monitored,
// nor all that are known, by taking names.
func TestNamesAreBounded(t *testing.T) {
	s := newServer(t, &memStore{values: map[string][]byte{}})
	held := 0
	for ; held < 2*nsm.MaxPeers; held++ {
		// Shared, so that each holds something.
		if s.testLock(t, testCaller, fmt.Sprint("name ", held), lockArgs{}) != statGranted {
			break
		}
	}
	if held != nsm.MaxPeers/2 {
		t.Errorf("%d names of one address hold locks", held)
	}
	for i := range 100 {
		if got := s.testLock(t, otherCaller, fmt.Sprint("name ", i), lockArgs{}); got != statGranted {
			t.Fatalf("name %d of another address: %v", i, got)
		}
	}
	for i := range 200 { // so that it has less than is free
		s.release(t.Context(), s.hosts[clientName(testCaller, fmt.Sprint("name ", i))], 0)
	}
	s.sweep(context.Background(), 0)
	if got := s.testLock(t, testCaller, "the next", lockArgs{}); got != statGranted {
		t.Errorf("after one is free: %v", got)
	}
}

// testShare has a caller reserve the file, or give that up.
func testShare(t *testing.T, k caller, name, owner string, do func(context.Context, *rpc.Call, *rpc.Reply) error) Stat {
	t.Helper()
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	w.String(name)
	w.Opaque([]byte{1})
	w.String(owner)
	w.Uint32(0)
	w.Uint32(1)
	w.Bool(false)
	c := &rpc.Call{Remote: netip.AddrPortFrom(k.remote, 1), Local: netip.AddrPortFrom(k.remote, 2), Args: xdr.NewReader(w.B)}
	var reply rpc.Reply
	if err := do(t.Context(), c, &reply); err != nil {
		t.Fatal(err)
	}
	_, stat, err := decodeResult(reply.B)
	if err != nil {
		t.Fatal(err)
	}
	return stat
}

// TestSharesAreBounded: share reservations by address, with its locks, whatever names a client
// takes; one that is there can be made again, and given up.
func TestSharesAreBounded(t *testing.T) {
	const most = 4096
	s := newServer(t, &memStore{values: map[string][]byte{}})
	s.locks = lock.New(most)
	fill := func(k caller) (n int) {
		for ; ; n++ {
			switch got := testShare(t, k, fmt.Sprint("name ", n%10), fmt.Sprint(n), s.share); got {
			case statGranted:
			case statNoLocks:
				return n
			default:
				t.Fatal(n, got)
			}
		}
	}
	if n := fill(testCaller); n != most/2 {
		t.Errorf("alone: %d", n)
	}
	if got := s.testLock(t, testCaller, "name 0", lockArgs{}); got != statNoLocks {
		t.Errorf("and a lock: %v", got)
	}
	if got := testShare(t, testCaller, "name 0", "0", s.share); got != statGranted {
		t.Errorf("the same again: %v", got)
	}
	if n := fill(otherCaller); n != most/4 {
		t.Errorf("the second: %d", n)
	}
	for range 2 {
		if got := testShare(t, testCaller, "name 0", "0", s.unshare); got != statGranted {
			t.Errorf("given up: %v", got)
		}
	}
	if n := s.locks.Count(); n != most*3/4-1 {
		t.Errorf("%d are left", n)
	}
	s.sweep(t.Context(), 0)
	if st := s.Stats(); st.Clients != 20 || st.Durable != 20 {
		t.Errorf("%+v", st)
	}
}

// pausedLocks are asked, or answer, when the test lets them go on.
type pausedLocks struct {
	lock.Locks
	after       bool
	asked, goOn chan struct{}
}

func (p *pausedLocks) LockFunc(ctx context.Context, ino uint64, s lock.Space, l lock.Lock, done func(error)) (cancel func() bool, waiting bool, err error) {
	if !p.after {
		close(p.asked)
		<-p.goOn
	}
	cancel, waiting, err = p.Locks.LockFunc(ctx, ino, s, l, done)
	if p.after {
		close(p.asked)
		<-p.goOn
	}
	return cancel, waiting, err
}

// sharedLocks are those of a gateway that may have others beside it.
func sharedLocks(t *testing.T) lock.Locks {
	t.Helper()
	c, err := vfs.Join(t.Context(), mem.New(mem.Options{}), vfs.Gateway{Host: "test", PID: 1, Started: time.Now(), Beside: true, Serves: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := vfs.Open(t.Context(), c, vfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close(context.Background()) })
	return fs.Locks()
}

// A request that is ended in the moment in which it is granted leaves no lock, whatever ends it
// and whoever knows the locks.
func TestCancelOfGrant(t *testing.T) {
	for _, among := range []string{"one", "many"} {
		for _, after := range []bool{false, true} {
			for what, end := range map[string]func(s *Server, h *host, l lock.Lock) error{
				"CANCEL":      func(s *Server, h *host, l lock.Lock) error { return s.cancel(t.Context(), h, 1, l) },
				"UNLOCK":      func(s *Server, h *host, l lock.Lock) error { return s.unlock(t.Context(), h, 1, l) },
				"a reboot":    func(s *Server, h *host, _ lock.Lock) error { return s.rebooted(t.Context(), h.addr, h.name, 5) },
				"an operator": func(s *Server, h *host, _ lock.Lock) error { return s.release(t.Context(), h, 0) },
			} {
				t.Run(fmt.Sprint(among, " ", after, " ", what), func(t *testing.T) {
					testCancelOfGrant(t, among == "many", after, end)
				})
			}
		}
	}
}

func testCancelOfGrant(t *testing.T, shared, after bool, end func(s *Server, h *host, l lock.Lock) error) {
	var locks lock.Locks = lock.New(0)
	if shared {
		locks = sharedLocks(t)
	}
	s := newServerOver(t, locks, &memStore{values: map[string][]byte{}})
	paused := &pausedLocks{s.locks, after, make(chan struct{}), make(chan struct{})}
	s.locks = paused
	answer := make(chan Stat)
	go func() {
		answer <- s.testLock(t, testCaller, "impatient", lockArgs{exclusive: true, block: true, state: 3})
	}()
	<-paused.asked
	h := s.hosts[clientName(testCaller, "impatient")]
	a := lockArgs{exclusive: true}
	l, err := a.lock(h.client)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(s, h, l); err != nil {
		t.Error(err)
	}
	close(paused.goOn)
	if st := <-answer; st != statDenied {
		t.Errorf("the request: %v", st)
	}
	list, _, err := s.locks.List(t.Context(), 10, func(*lock.Entry) bool { return true })
	if err != nil || len(list) != 0 || s.locks.Count() != 0 {
		t.Errorf("%+v, %d locks are left, %v", list, s.locks.Count(), err)
	}
	if s.remotes == nil {
		return
	}
	if all, err := s.remotes.RemoteClients(t.Context(), clientPrefix); err != nil || len(all) != 0 {
		t.Errorf("%+v have locks, %v", all, err)
	}
}

// A conversion that was granted, and cancelled before the client knew, leaves it the lock that
// it converted.
func TestCancelOfConversion(t *testing.T) {
	for _, end := range []string{"CANCEL", "not delivered"} {
		t.Run(end, func(t *testing.T) {
			s := newServer(t, &memStore{values: map[string][]byte{}})
			s.closed = true // no callbacks
			for _, name := range []string{"reader", "other"} {
				if st := s.testLock(t, testCaller, name, lockArgs{length: 10}); st != statGranted {
					t.Fatal(st)
				}
			}
			asked := lockArgs{exclusive: true, block: true, length: 10}
			if st := s.testLock(t, testCaller, "reader", asked); st != statBlocked {
				t.Fatal(st)
			}
			h, other := s.hosts[clientName(testCaller, "reader")], s.hosts[clientName(testCaller, "other")]
			l, err := asked.lock(other.client)
			if err == nil {
				err = s.unlock(t.Context(), other, 1, l)
			}
			if err != nil {
				t.Fatal(err)
			}
			var b *blocked
			for _, b = range h.waits {
			}
			if b == nil || !s.isGranted(b) {
				t.Fatal("it was not granted")
			}
			if end == "CANCEL" {
				l, _ = asked.lock(h.client)
				err = s.cancel(t.Context(), h, 1, l)
			} else {
				s.giveUp(b, "test")
			}
			if err != nil {
				t.Error(err)
			}
			if st := s.testLock(t, testCaller, "other", lockArgs{exclusive: true, length: 10}); st != statDenied {
				t.Errorf("exclusive beside it: %v", st)
			}
			if st := s.testLock(t, testCaller, "other", lockArgs{length: 10}); st != statGranted {
				t.Errorf("shared beside it: %v", st)
			}
		})
	}
}

// A client that cannot be reached does not keep what it does not know of.
func TestGrantThatCannotBeTold(t *testing.T) {
	s := newServer(t, &memStore{values: map[string][]byte{}})
	s.testLock(t, testCaller, "holds", lockArgs{exclusive: true})
	s.testLock(t, testCaller, "gone", lockArgs{exclusive: true, block: true})
	h := s.hosts[clientName(testCaller, "gone")]
	var b *blocked
	for _, b = range h.waits {
	}
	if _, delivered, err := s.grant(b); err == nil || delivered {
		t.Fatalf("nobody listens, and yet: %v %v", delivered, err)
	}
	// Somebody takes the call and never answers: it may have been taken.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if nc, err := l.Accept(); err == nil {
			nc.Read(make([]byte, 1))
			nc.Close()
		}
	}()
	h.port = l.Addr().(*net.TCPAddr).AddrPort().Port()
	if _, delivered, err := s.grant(b); err == nil || !delivered {
		t.Errorf("taken without an answer: %v %v", delivered, err)
	}
	s.mu.Lock()
	b.state = granted
	s.mu.Unlock()
	s.giveUp(b, "test")
	if st := s.Stats(); st.Blocked != 0 || !bytes.Equal(b.args.fh, nil) {
		t.Errorf("%+v", st)
	}
}
