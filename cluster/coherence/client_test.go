package coherence

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/bootclock"
)

// group are clients of one store, and who the store says that they are.
type group struct {
	t  *testing.T
	mu sync.Mutex
	// there is replaced, not changed.
	there []cluster.Peer
}

func (g *group) members() []cluster.Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.there
}

// newClient returns one that is not there yet. By way others reach it, if not empty.
func (g *group) newClient(id uint64, listen, way string) *Client {
	g.t.Helper()
	c, err := New(Options{Listen: listen, Address: way, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	c.Join(id, func(context.Context) error { g.look(c); return nil }, func(settled func()) {})
	return c
}

func (g *group) look(c *Client) {
	_ = c.Look(g.t.Context(), func(context.Context) ([]cluster.Peer, bool, error) { return g.members(), true, nil })
}

// enter has c be there, and look again and again.
func (g *group) enter(c *Client) {
	g.t.Helper()
	g.register(c)
	stop := make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		for {
			g.look(c)
			select {
			case <-stop:
				return
			case <-time.After(knownTime / 4):
			}
		}
	})
	g.t.Cleanup(func() { close(stop); looks.Wait() })
	if err := c.Introduce(g.t.Context(), nil); err != nil {
		g.t.Fatal(err)
	}
}

func (g *group) register(c *Client) {
	address, key := c.Me()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.there = append(g.there[:len(g.there):len(g.there)], cluster.Peer{ID: c.me, Address: address, Key: key})
}

// leave has c be there no more.
func (g *group) leave(c *Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var rest []cluster.Peer
	for _, p := range g.there {
		if p.ID != c.me {
			rest = append(rest, p)
		}
	}
	g.there = rest
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("never: " + what)
		}
	}
}

const loopback = "127.0.0.1:0"

// A client that has come is told, and tells; one that has gone is not missed.
func TestComeAndGo(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a := g.newClient(1, loopback, "")
	g.enter(a)
	eventually(t, "alone", a.Told)
	key := []byte("key")
	since := a.Trust().Now()
	b := g.newClient(2, loopback, "")
	g.enter(b)
	if a.Trust().Holds(LineOf(key), since) {
		t.Error("it answers what it read before the other one was there")
	}
	eventually(t, "both", func() bool { return a.Told() && b.Told() })

	since = a.Trust().Now()
	change, err := b.Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.Trust().Holds(LineOf(key), since) {
		t.Error("it answers what is about to change")
	}
	change.Done()
	eventually(t, "the end of the change", func() bool { return a.Trust().Holds(LineOf(key), a.Trust().Now()) })

	change, err = b.Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	change.Failed(true) // nobody ever says that it cannot come any more
	since = a.Trust().Now()
	b.Close()
	eventually(t, "that the other one tells no more", func() bool { return !a.Told() })
	g.leave(b)
	eventually(t, "alone again", a.Told)
	if a.Trust().Holds(LineOf(key), since) {
		t.Error("it answers what may have changed")
	}
}

// One that cannot be reached keeps others from trusting, and itself from changing anything
// before their looks have ended.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a := g.newClient(1, loopback, "")
	g.enter(a)
	eventually(t, "alone", a.Told)
	g.mu.Lock()
	g.there[0].Address = "127.0.0.1:1" // nobody is there
	g.mu.Unlock()
	b := g.newClient(2, loopback, "127.0.0.1:1")
	g.register(b)
	begin := time.Now()
	g.look(b)
	if err := b.Introduce(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < knownTime {
		t.Errorf("it was introduced after %v", took)
	}
	g.look(a)
	if a.Told() || b.Told() {
		t.Error("they trust, and do not reach each other")
	}
}

// One that takes no note is waited for as long as its lease goes on, and then not for a while.
func TestSlow(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a, mute := g.newClient(1, loopback, ""), g.newClient(2, loopback, "")
	mute.Join(2, func(context.Context) error { return nil }, nil) // it follows nobody
	g.register(mute)
	g.enter(a)
	dial := func() net.Conn {
		conn, err := mute.id.dial(t.Context(), cluster.Peer{Address: a.address, Key: a.id.key})
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	defer dial().Close()
	subscribers := func() int {
		a.tells.mu.Lock()
		defer a.tells.mu.Unlock()
		return len(a.tells.subs)
	}
	eventually(t, "subscribed", func() bool { return subscribers() == 1 })
	begin := time.Now()
	change, err := a.Announce(t.Context(), []byte("key"))
	if took := time.Since(begin); err != nil || took < leaseTime/4 || took > 10*leaseTime {
		t.Errorf("it took %v, %v", took, err)
	}
	change.Done()
	again := dial()
	defer again.Close()
	if n, err := again.Read(make([]byte, 1)); err == nil {
		t.Errorf("it is told again at once: %d bytes", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if change, err = a.Announce(ctx, []byte("key")); err != nil {
		t.Errorf("it was waited for: %v", err)
	}
	change.Done()
}

// twoByWays are two clients that tell each other, and the ways to them.
func twoByWays(t *testing.T) (g *group, clients [2]*Client, ways [2]*way) {
	g = &group{t: t}
	for i := range clients {
		clients[i], ways[i] = g.byWay(uint64(i) + 1)
	}
	eventually(t, "both are told", func() bool { return clients[0].Told() && clients[1].Told() })
	return g, clients, ways
}

func (g *group) byWay(id uint64) (*Client, *way) {
	g.t.Helper()
	l, err := net.Listen("tcp", loopback)
	if err != nil {
		g.t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	w := newWay(g.t, at)
	c := g.newClient(id, at, w.Addr().String())
	g.enter(c)
	return c, w
}

// Who changes something goes on without one that is cut off when that has stopped to answer
// from memory, and not before.
func TestCut(t *testing.T) {
	t.Parallel()
	_, clients, ways := twoByWays(t)
	for range 3 {
		time.Sleep(leaseTime + time.Duration(rand.Int64N(int64(renewEvery)))) // renewed some times
		ways[1].set(true)
		change, err := clients[1].Announce(t.Context(), []byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		if clients[0].Told() {
			t.Error("it would answer from memory what is being changed")
		}
		change.Done()
		ways[1].set(false)
		eventually(t, "they tell again", func() bool { return clients[0].Told() })
	}
}

// A change that is under way when the connection is lost is told again.
func TestReset(t *testing.T) {
	t.Parallel()
	_, clients, ways := twoByWays(t)
	key := []byte("key")
	change, err := clients[1].Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ways[1].reset()
		for begin := time.Now(); time.Since(begin) < redialPause || !clients[0].Told(); {
			if trust := clients[0].Trust(); trust.Holds(LineOf(key), trust.Now()) {
				t.Fatal("it answers from memory what is being changed")
			}
			if time.Since(begin) > time.Minute {
				t.Fatal("they do not tell again")
			}
		}
	}
	change.Done()
	eventually(t, "the end", func() bool { return clients[0].Trust().Holds(LineOf(key), clients[0].Trust().Now()) })
}

// A commit whose answer comes late, after others were free to change the same without telling, is
// no news of what the store has.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	_, clients, ways := twoByWays(t)
	a, b := clients[0], clients[1]
	key := []byte("key")
	change, err := a.Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ways[1].set(true)
	eventually(t, "it is not told", func() bool { return !a.Told() })
	other, err := b.Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	other.Done()
	ways[1].set(false)
	ways[1].reset()
	eventually(t, "it is told again", a.Told)
	if since := change.Done(); a.Trust().Holds(LineOf(key), since) {
		t.Error("it takes what it wrote for what is there")
	}
}

// Of two looks at a time the second one waits: it could end last, and have seen less.
func TestLooksInTurn(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a := g.newClient(1, loopback, "")
	g.register(a)
	looks, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Look(t.Context(), func(context.Context) ([]cluster.Peer, bool, error) {
			list := g.members()
			close(looks)
			<-goOn
			return list, true, nil
		})
	}()
	<-looks
	j := g.newClient(2, loopback, "")
	g.register(j)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := a.Look(ctx, func(context.Context) ([]cluster.Peer, bool, error) { return g.members(), true, nil }); err == nil {
		t.Error("two looks at a time")
	}
	close(goOn)
	<-done
	g.look(a)
	if id, _ := a.find(j.id.key); id != 2 {
		t.Error("it does not know the one that came")
	}
}

// What was seen before a client registered itself introduces it to nobody.
func TestIntroducedByOldLook(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	j := g.newClient(2, loopback, "")
	g.look(j) // somebody connected, while it was about to register
	b := g.newClient(1, loopback, "")
	g.enter(b)
	eventually(t, "told", b.Told)
	since := b.Trust().Now()
	g.register(j)
	if err := j.Introduce(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	change, err := j.Announce(t.Context(), []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if b.Trust().Holds(LineOf([]byte("key")), since) {
		t.Error("another one answers from memory what it is changing")
	}
	change.Done()
}

// A clock that is a tenth slower does not have a client answer for longer than others wait.
func TestSlowClock(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a := g.newClient(1, loopback, "")
	begin := bootclock.Now()
	slow := func() time.Duration { now := bootclock.Now(); return now - (now-begin)/10 }
	a.clock, a.trust.clock, a.tells.clock = slow, slow, slow
	g.enter(a)
	b, w := g.byWay(2)
	eventually(t, "both are told", func() bool { return a.Told() && b.Told() })
	time.Sleep(2 * leaseTime)
	w.set(true)
	change, err := b.Announce(t.Context(), []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Told() {
		t.Error("it would answer from memory what is being changed")
	}
	change.Done()
}

// lazy subscribes as a client does, and takes note of each change after a pause.
func lazy(conn net.Conn, pause time.Duration) {
	go func() {
		for n := uint64(1); ; n++ {
			m := message{kind: renew, number: n}
			if _, err := conn.Write(m.append(nil)); err != nil {
				return
			}
			time.Sleep(renewEvery)
		}
	}()
	go func() {
		for r := bufio.NewReader(conn); ; {
			m, err := readMessage(r)
			if err != nil {
				return
			}
			if m.kind == told && len(m.begun) > 0 {
				time.Sleep(pause)
				note := message{kind: applied, number: m.number}
				if _, err := conn.Write(note.append(nil)); err != nil {
					return
				}
			}
		}
	}()
}

// One that takes its time again and again is told no more, longer each time.
func TestLazy(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a, idler := g.newClient(1, loopback, ""), g.newClient(2, loopback, "")
	idler.Join(2, func(context.Context) error { return nil }, nil) // it follows nobody
	g.register(idler)
	g.enter(a)
	subscribed := func() bool {
		a.tells.mu.Lock()
		defer a.tells.mu.Unlock()
		return len(a.tells.subs) == 1
	}
	for strike := range 2 {
		var conn net.Conn
		eventually(t, "subscribed", func() bool {
			if subscribed() {
				return true
			}
			if conn != nil {
				conn.Close()
			}
			var err error
			if conn, err = idler.id.dial(t.Context(), cluster.Peer{Address: a.address, Key: a.id.key}); err != nil {
				t.Fatal(err)
			}
			lazy(conn, noteTime+leaseTime/10)
			time.Sleep(leaseTime / 10)
			return false
		})
		for n := 0; subscribed(); n++ {
			if n == 4*maxTardy {
				t.Fatal("it is waited for again and again")
			}
			change, err := a.Announce(t.Context(), []byte("key"))
			if err != nil {
				t.Fatal(err)
			}
			change.Done()
		}
		conn.Close()
		a.tells.mu.Lock()
		wait := a.tells.slow[2].until - a.clock()
		a.tells.mu.Unlock()
		if least := slowTime<<strike - leaseTime; wait < least || wait > slowTime<<strike {
			t.Errorf("it is told again after %v, want %v", wait, slowTime<<strike)
		}
	}
}

// Where there are more than one follows, one that is not followed may not know of this one.
func TestIntroducedToMany(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	c := g.newClient(1, loopback, "")
	for id := range uint64(maxPeers + 1) {
		g.there = append(g.there, cluster.Peer{ID: 2 + id, Address: "127.0.0.1:1", Key: fmt.Append(nil, id)})
	}
	g.look(c)
	c.mu.Lock()
	for _, s := range c.sources {
		s.met = true
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Introduce(ctx, nil); err == nil {
		t.Error("it is introduced to all, but has not met one")
	}
}

// However many connect and say nothing, no more than some are served at a time; and one client
// has one place, however often it connects.
func TestPlaces(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a, greedy := g.newClient(1, loopback, ""), g.newClient(2, loopback, "")
	greedy.Join(2, func(context.Context) error { return nil }, nil)
	g.register(greedy)
	g.enter(a)
	for range maxPeers {
		conn, err := greedy.id.dial(t.Context(), cluster.Peer{Address: a.address, Key: a.id.key})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		lazy(conn, 0)
	}
	for range 4 * maxHandshakes {
		conn, err := net.Dial("tcp", a.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	eventually(t, "all places of beginnings are taken", func() bool { return len(a.begins) == maxHandshakes })
	a.tells.mu.Lock()
	n := len(a.tells.subs)
	a.tells.mu.Unlock()
	if n > 1 {
		t.Errorf("one client has %d places", n)
	}
	b := g.newClient(3, loopback, "")
	g.enter(b)
}

// A caller that gives up has changed nothing, and leaves nothing behind.
func TestAnnounceGivenUp(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a, mute := g.newClient(1, loopback, ""), g.newClient(2, loopback, "")
	s, _, _ := a.tells.enter(mute.me)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Announce(ctx, []byte("key")); err == nil {
		t.Error("it was announced")
	}
	if len(a.tells.open) != 0 || a.trust.lines[LineOf([]byte("key"))].changing.Load() != 0 {
		t.Error("it is under way")
	}
	b, err := readMessages(s.take(nil))
	if err != nil || len(b) != 1 || len(b[0].begun) != 1 || len(b[0].ended) != 1 {
		t.Errorf("told %+v, %v", b, err)
	}
}

// Whom the store does not name learns nothing, and is not believed.
func TestStranger(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a, stranger := g.newClient(1, loopback, ""), g.newClient(2, loopback, "")
	g.enter(a)
	conn, err := stranger.id.dial(t.Context(), cluster.Peer{Address: a.address, Key: a.id.key})
	if err == nil { // TLS 1.3: the refusal comes with the first read
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	if err == nil {
		t.Error("a stranger is told what changes")
	}
	if conn, err := tls.Dial("tcp", a.address, &tls.Config{InsecureSkipVerify: true}); err == nil {
		if _, err = conn.Read(make([]byte, 1)); err == nil {
			t.Error("somebody without a key is told what changes")
		}
		conn.Close()
	}
	// At the address of one that the store names somebody else listens.
	g.mu.Lock()
	g.there = append(g.there, cluster.Peer{ID: 3, Address: stranger.address, Key: []byte("another one's key")})
	g.mu.Unlock()
	g.look(a)
	time.Sleep(2 * redialPause)
	if a.Told() {
		t.Error("somebody is believed who is not the one")
	}
}

// way is a relay that can stand still.
type way struct {
	net.Listener
	mu   sync.Mutex
	open sync.Cond
	shut bool
	all  []net.Conn
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	w := &way{Listener: l}
	w.open.L = &w.mu
	t.Cleanup(func() { l.Close(); w.set(false); w.reset() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			w.all = append(w.all, from, server)
			w.mu.Unlock()
			go w.copy(from, server)
			go w.copy(server, from)
		}
	}()
	return w
}

func (w *way) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		for w.shut {
			w.open.Wait()
		}
		w.mu.Unlock()
		if _, e := to.Write(b[:n]); err != nil || e != nil {
			return
		}
	}
}

func (w *way) set(shut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shut = shut
	w.open.Broadcast()
}

func (w *way) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.all {
		c.Close()
	}
	w.all = nil
}

// model is a store of two pairs for each number, which always have the same version.
type model struct {
	mu       sync.Mutex
	versions [modelKeys]uint64
	seen     [modelKeys]atomic.Uint64 // the latest version that anybody has seen, or was told
}

const modelKeys = 8

// saw notes a version.
func (m *model) saw(k int, v uint64) {
	for {
		old := m.seen[k].Load()
		if old >= v || m.seen[k].CompareAndSwap(old, v) {
			return
		}
	}
}

// remembered is a version, and since when.
type remembered struct {
	version uint64
	since   Stamp
}

// modelKernel keeps pairs of what a client has read, and asks nobody as long as it may. As the kernel does
// it ignores answers to what it asked before a recall.
type modelKernel struct {
	mu       sync.Mutex
	recalled [modelKeys]int
	versions [modelKeys]uint64
	until    [modelKeys]time.Duration
	kept     atomic.Int64 // how often it asked nobody
}

func (x *modelKernel) recall(numbers []uint64) {
	for _, k := range numbers {
		pauseABit()
		x.mu.Lock()
		x.recalled[k]++
		x.until[k] = 0
		x.mu.Unlock()
	}
}

// modelUser uses the model through a client, and remembers.
type modelUser struct {
	t      *testing.T
	m      *model
	c      *Client
	asked  *atomic.Int64
	memory *[2][modelKeys]atomic.Pointer[remembered]
	kernel *modelKernel
}

// look reads through the kernel.
func (u *modelUser) look(k int) {
	x := u.kernel
	least := u.m.seen[k].Load()
	x.mu.Lock()
	v, recalled, keeps := x.versions[k], x.recalled[k], u.c.clock() < x.until[k]
	x.mu.Unlock()
	if keeps {
		if x.kept.Add(1); v < least {
			u.t.Errorf("%d is kept, when %d was known", v, least)
		}
		u.m.saw(k, v)
		return
	}
	begin, since := u.c.clock(), u.c.Moment()
	pauseABit()
	v = u.askBoth(k, least)
	pauseABit()
	d := u.c.Keep(since, uint64(k), pairKeys(k)...)
	pauseABit()
	x.mu.Lock()
	defer x.mu.Unlock()
	if now := u.c.clock(); x.recalled[k] == recalled && now-begin < cluster.AnswerTime {
		x.versions[k], x.until[k] = v, now+d
	}
}

func pairKeys(k int) [][]byte {
	return [][]byte{fmt.Appendf(nil, "left%d", k), fmt.Appendf(nil, "right%d", k)}
}

// write changes both pairs.
func (u *modelUser) write(k int) {
	change, err := u.c.Announce(u.t.Context(), pairKeys(k)...)
	if err != nil {
		return
	}
	pauseABit()
	u.m.mu.Lock()
	u.m.versions[k]++
	v := u.m.versions[k]
	u.m.mu.Unlock()
	pauseABit()
	since := change.Done()
	for side := range u.memory {
		u.memory[side][k].Store(&remembered{v, since})
	}
	u.m.saw(k, v)
}

// read reads both pairs, from memory if they hold.
func (u *modelUser) read(k int) {
	least := u.m.seen[k].Load()
	var got [2]*remembered
	begin := u.c.Trust().Now()
	for side := range got {
		if got[side] = u.memory[side][k].Load(); got[side] == nil {
			got[side] = u.ask(side, k, begin)
		}
		pauseABit()
	}
	for side, key := range pairKeys(k) {
		if !u.c.Trust().Holds(LineOf(key), got[side].since) {
			u.askBoth(k, least)
			return
		}
	}
	if got[0].version != got[1].version || got[0].version < least {
		u.t.Errorf("read %d and %d, when %d was known", got[0].version, got[1].version, least)
	}
	u.m.saw(k, got[0].version)
}

func (u *modelUser) ask(side, k int, since Stamp) *remembered {
	u.asked.Add(1)
	u.m.mu.Lock()
	r := &remembered{u.m.versions[k], since}
	u.m.mu.Unlock()
	pauseABit()
	u.memory[side][k].Store(r)
	return r
}

// askBoth reads the store.
func (u *modelUser) askBoth(k int, least uint64) (v uint64) {
	u.asked.Add(1)
	since := u.c.Trust().Now()
	pauseABit()
	u.m.mu.Lock()
	v = u.m.versions[k]
	u.m.mu.Unlock()
	pauseABit()
	for side := range u.memory {
		u.memory[side][k].Store(&remembered{v, since})
	}
	if v < least {
		u.t.Errorf("the store has %d, and %d was known", v, least)
	}
	u.m.saw(k, v)
	return v
}

func pauseABit() {
	if rand.IntN(4) == 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(200 * time.Microsecond))))
	}
}

// Whatever happens to the ways between clients, nobody reads what is older than what anybody
// has read, and of two pairs that change together, nobody reads one as it was before; nor does who keeps
// what was read.
func TestModel(t *testing.T) {
	t.Parallel()
	g, m := &group{t: t}, &model{}
	var clients []*Client
	var ways []*way
	var asked, reads, writes atomic.Int64
	for id := range uint64(3) {
		c, w := g.byWay(id + 1)
		clients, ways = append(clients, c), append(ways, w)
	}
	eventually(t, "all are told", func() bool { return clients[0].Told() && clients[1].Told() && clients[2].Told() })
	end := time.Now().Add(10 * time.Second)
	var users sync.WaitGroup
	var kernels []*modelKernel
	for _, c := range clients {
		memory := &[2][modelKeys]atomic.Pointer[remembered]{}
		kernel := new(modelKernel)
		kernels = append(kernels, kernel)
		c.OnRecall(kernel.recall)
		for range 4 {
			u := &modelUser{t, m, c, &asked, memory, kernel}
			users.Go(func() {
				for time.Now().Before(end) {
					switch k := rand.IntN(modelKeys); rand.IntN(20) {
					case 0:
						u.write(k)
						writes.Add(1)
					case 1, 2, 3, 4, 5, 6:
						u.look(k)
					default:
						u.read(k)
						reads.Add(1)
					}
				}
			})
		}
	}
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		w := ways[rand.IntN(len(ways))]
		if rand.IntN(2) == 0 {
			w.reset()
			continue
		}
		w.set(true)
		time.Sleep(time.Duration(rand.Int64N(int64(leaseTime))))
		w.set(false)
	}
	users.Wait()
	t.Logf("%d reads, %d writes, the store was asked %d times", reads.Load(), writes.Load(), asked.Load())
	if asked.Load() >= reads.Load() {
		t.Error("nobody answered from memory")
	}
	for _, x := range kernels {
		if t.Logf("kept %d times", x.kept.Load()); x.kept.Load() == 0 {
			t.Error("nobody kept anything")
		}
	}
}

// One that has ended is not waited for by who knows that, and tells nobody, as long as it is there.
func TestIntroducedAfterEnd(t *testing.T) {
	t.Parallel()
	g := &group{t: t}
	a, b := g.newClient(1, loopback, ""), g.newClient(2, loopback, "")
	g.enter(a)
	g.enter(b)
	eventually(t, "told", a.Told)
	since := a.Trust().Now()
	b.Close()
	next := g.newClient(3, loopback, "")
	g.register(next)
	begin := time.Now()
	if err := next.Introduce(t.Context(), []uint64{b.me}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > cluster.PeerWait/4 {
		t.Errorf("it took %v", took)
	}
	change, err := next.Announce(t.Context(), []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Trust().Holds(LineOf([]byte("key")), since) {
		t.Error("another one answers from memory what it is changing")
	}
	change.Done()
	if next.Told() {
		t.Error("it is told by one that has ended")
	}
	g.leave(b)
	g.look(next)
	eventually(t, "told without it", func() bool { return next.Told() && a.Told() })
}
