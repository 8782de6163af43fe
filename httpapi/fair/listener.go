package fair

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"
)

const (
	// parkPart is the part of a listener's connections that may wait beyond
	// them, accepted and unread, for one that ends or yields.
	parkPart = 8
	// parkTime is how long a connection waits so, before it is dropped.
	parkTime = 10 * time.Second
	// proxyHeaderTime bounds the wait for the header of a proxy, which sends
	// it at once.
	proxyHeaderTime = 10 * time.Second
	// acceptPause is how long accepting pauses after an error that passes,
	// such as too many open files.
	acceptPause = 20 * time.Millisecond
)

// Limits of a Listener.
type Limits struct {
	Connections int
	// Proxies are peers that carry other clients' requests. Their connections
	// are within Connections, and no client's share.
	Proxies []netip.Prefix
	// ProxyProtocol reports whether connections of Proxies begin with a header of
	// the PROXY protocol, version 1 or 2, which says whose they are.
	ProxyProtocol bool
	// Heads is what incomplete heads are charged to: the one of function Heads,
	// or, with nil, one of their own.
	Heads *Pool
}

// Listener hands out at most Connections connections at a time, divided by
// client as a Pool is. Where there is no room, an idle connection yields:
// the longest idle one of a client who has more than the newcomer. Others
// wait, then are dropped.
type Listener struct {
	inner net.Listener
	o     Limits
	floor int
	ready chan *conn // room for all that may be handed out: never blocks
	ended chan struct{}
	err   error // of accepting; set before ended is closed

	turns   atomic.Int64 // of connections that became idle
	waiting atomic.Int64 // those in parked, and one that may be the next

	mu     sync.Mutex
	free   int
	held   map[Key]int
	conns  []*conn // handed out, in no order
	parked []*conn
	closed bool
}

// Listen divides the connections of inner.
func Listen(inner net.Listener, o Limits) *Listener {
	if o.Heads == nil {
		o.Heads = NewPool(HeadBytes)
	}
	l := &Listener{inner: inner, o: o, floor: max(o.Connections/floorPart, minFloor),
		ready: make(chan *conn, o.Connections), ended: make(chan struct{}),
		free: o.Connections, held: map[Key]int{}}
	go l.run()
	return l
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ended:
		return nil, l.err
	}
}

// Close implements net.Listener. Connections that nobody accepted are closed.
func (l *Listener) Close() error {
	err := l.inner.Close()
	<-l.ended
	l.mu.Lock()
	l.closed = true
	parked := l.parked
	l.keepParked(nil)
	l.mu.Unlock()
	for _, c := range parked {
		_ = c.Close()
	}
	for {
		select {
		case c := <-l.ready:
			_ = c.Close()
		default:
			return err
		}
	}
}

// run accepts until the listener is closed.
func (l *Listener) run() {
	defer close(l.ended)
	for {
		nc, err := l.inner.Accept()
		if passes(err) {
			time.Sleep(acceptPause)
			continue
		}
		if err != nil {
			l.err = err
			return
		}
		l.admit(l.wrap(nc))
	}
}

// passes reports whether accepting goes on after err.
func passes(err error) bool {
	ne, ok := err.(interface{ Temporary() bool })
	return ok && ne.Temporary()
}

// wrap finds out whose connection it is, without waiting for the client.
func (l *Listener) wrap(nc net.Conn) *conn {
	c := &conn{Conn: nc, l: l}
	c.head.pool = l.o.Heads
	remote := nc.RemoteAddr()
	defer func() { c.head.is(c.key, remote.String()) }()
	if known, ok := remote.(interface{ User() string }); ok && known.User() != "" {
		c.key = User(known.User()) // of this machine, whatever the address
		return c
	}
	p, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return c
	}
	a := p.Addr().Unmap()
	c.key = addressKey(a)
	if c.proxy = within(l.o.Proxies, a); c.proxy && l.o.ProxyProtocol {
		p := proxyproto.NewConn(nc, proxyproto.SetReadHeaderTimeout(proxyHeaderTime))
		p.ProxyHeaderPolicy = proxyproto.REQUIRE
		c.Conn = p
	}
	return c
}

func within(list []netip.Prefix, a netip.Addr) bool {
	a = a.WithZone("") // of a link-local address; no network has one
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// admit hands c out, makes it wait, or drops it.
func (l *Listener) admit(c *conn) {
	l.mu.Lock()
	l.waiting.Add(1) // before the look: who rests after it looks for c
	victim, ok := l.room(c, l.conns)
	park := !ok && l.mayPark(c)
	switch {
	case ok:
		l.enter(c)
	case park:
		l.parked = append(l.parked, c)
		time.AfterFunc(parkTime, func() { l.giveUp(c) })
	}
	l.keepParked(l.parked)
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
	if ok {
		l.ready <- c
	} else if !park {
		_ = c.Close()
	}
}

// keepParked makes list what is parked. l.mu is held.
func (l *Listener) keepParked(list []*conn) {
	l.parked = list
	l.waiting.Store(int64(len(list)))
}

// room reports whether c may be handed out, and which of some connections yields to
// it: the longest idle one of those that may. The victim's place is free already.
// l.mu is held.
func (l *Listener) room(c *conn, some []*conn) (victim *conn, ok bool) {
	held := l.held[c.key]
	within := c.proxy || held < l.free || held < l.floor
	if within && l.free > 0 {
		return nil, true
	}
	for {
		var rested int64
		for _, v := range some {
			since := v.rested.Load()
			if since > 0 && v.counted && (victim == nil || since < rested) && (v.key == c.key || within && l.held[v.key] > held) {
				victim, rested = v, since
			}
		}
		if victim == nil {
			return nil, false
		}
		if victim.rested.CompareAndSwap(rested, 0) {
			l.leave(victim)
			return victim, true
		}
		victim = nil // it serves again
	}
}

// enter counts c, and leave takes it off. l.mu is held.
func (l *Listener) enter(c *conn) {
	c.counted, c.place = true, len(l.conns)
	l.conns = append(l.conns, c)
	l.free--
	l.held[c.key]++
}

func (l *Listener) leave(c *conn) {
	if !c.counted {
		return
	}
	c.counted = false
	last := l.conns[len(l.conns)-1]
	last.place, l.conns[c.place] = c.place, last
	l.conns[len(l.conns)-1] = nil
	l.conns = l.conns[:len(l.conns)-1]
	l.free++
	if l.held[c.key]--; l.held[c.key] == 0 {
		delete(l.held, c.key)
	}
}

// mayPark bounds what waits: in all, and by client. l.mu is held.
func (l *Listener) mayPark(c *conn) bool {
	left := l.o.Connections/parkPart + 1 - len(l.parked)
	own := 0
	for _, p := range l.parked {
		if p.key == c.key {
			own++
		}
	}
	return !l.closed && own < left
}

// release takes a closed connection off, and lets in who waited for it.
func (l *Listener) release(c *conn) {
	l.mu.Lock()
	l.leave(c)
	l.keepParked(slices.DeleteFunc(l.parked, func(p *conn) bool { return p == c }))
	l.mu.Unlock()
	l.unpark()
}

// giveUp drops a connection that still waits.
func (l *Listener) giveUp(c *conn) {
	l.mu.Lock()
	waits := slices.Contains(l.parked, c)
	l.mu.Unlock()
	if waits {
		_ = c.Close()
	}
}

// unpark hands out what waited, in order, as far as there is room, or some that are
// idle yield.
func (l *Listener) unpark(some ...*conn) {
	for l.waiting.Load() > 0 {
		l.mu.Lock()
		var next, victim *conn
		for i, c := range l.parked {
			v, ok := l.room(c, some)
			if ok {
				next, victim = c, v
				l.keepParked(slices.Delete(l.parked, i, i+1))
				l.enter(c)
				break
			}
		}
		l.mu.Unlock()
		if victim != nil {
			_ = victim.Close()
		}
		if next == nil {
			return
		}
		l.ready <- next
	}
}

// busy is notified that a request came on c.
func (l *Listener) busy(c *conn) {
	if c.proxy && l.o.ProxyProtocol {
		l.identify(c) // its header was read
		return
	}
	c.rested.Store(0)
}

// identify counts a proxy's connection as that of the client it names, and
// drops it where that one has no share left.
func (l *Listener) identify(c *conn) {
	key := Address(c.RemoteAddr().String())
	c.proxy = false
	c.head.is(key, c.RemoteAddr().String())
	c.rested.Store(0)
	l.mu.Lock()
	over := false
	if c.counted {
		l.leave(c)
		over = l.held[key] >= max(l.free, l.floor)
		c.key = key
		l.enter(c)
	}
	l.mu.Unlock()
	if over {
		_ = c.Close()
	}
}

// rest is notified that c waits for its next request. A caller that waits for a connection
// may have it.
func (l *Listener) rest(c *conn) {
	c.rested.Store(l.turns.Add(1))
	l.unpark(c)
}
