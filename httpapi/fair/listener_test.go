package fair

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// web serves the address of the client at a listener with limits.
func web(t *testing.T, o Limits) string {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Heads = NewPool(HeadBytes)
	l := Listen(inner, o)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, Address(r.RemoteAddr).addr) })
	var handler http.Handler = h
	if !o.ProxyProtocol {
		handler = Forwarded(h, o.Proxies)
	}
	srv := &http.Server{Handler: Heads(handler, o.Heads), ConnState: State, ConnContext: ConnContext}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		<-ended
		if l.free != o.Connections || len(l.held) != 0 || len(l.conns) != 0 {
			t.Errorf("%d of %d free after the end, %v", l.free, o.Connections, l.held)
		}
		empty(t, o.Heads)
	})
	return inner.Addr().String()
}

// dial connects from a loopback address of its own.
func dial(t *testing.T, addr, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	return c
}

// ask sends one request and returns the answer's body.
func ask(c net.Conn, prefix string, headers ...string) (string, error) {
	fmt.Fprint(c, prefix+"GET / HTTP/1.1\r\nHost: h\r\n"+strings.Join(append(headers, ""), "\r\n")+"\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// Idle connections of one client yield to another, at once.
func TestIdleYield(t *testing.T) {
	addr := web(t, Limits{Connections: 8})
	var held []net.Conn
	for range 8 {
		c := dial(t, addr, "127.0.0.1")
		if _, err := ask(c, ""); err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for range 3 {
		start := time.Now()
		if _, err := ask(dial(t, addr, "127.0.0.2"), ""); err != nil || time.Since(start) > 3*time.Second {
			t.Fatal(err, time.Since(start))
		}
	}
	lost := 0
	for _, c := range held {
		if _, err := ask(c, ""); err != nil {
			lost++
		}
	}
	if lost != 3 {
		t.Errorf("%d connections yielded to 3", lost)
	}
	// Its own idle ones yield to a client who has its share.
	for range 20 {
		if _, err := ask(dial(t, addr, "127.0.0.1"), ""); err != nil {
			t.Fatal(err)
		}
	}
}

// A client whose connections are all busy, or have sent nothing yet, leaves
// room for others.
func TestConnectionShare(t *testing.T) {
	addr := web(t, Limits{Connections: 64})
	for range 70 {
		dial(t, addr, "127.0.0.1")
	}
	for range 12 {
		if _, err := ask(dial(t, addr, "127.0.0.2"), ""); err != nil {
			t.Fatal(err)
		}
	}
}

// Who waits for room gets it when a connection ends.
func TestParked(t *testing.T) {
	addr := web(t, Limits{Connections: 8})
	var busy []net.Conn
	for range 8 {
		busy = append(busy, dial(t, addr, "127.0.0.1"))
	}
	late := dial(t, addr, "127.0.0.2")
	go func() {
		time.Sleep(200 * time.Millisecond)
		busy[0].Close()
	}()
	if _, err := ask(late, ""); err != nil {
		t.Fatal(err)
	}
}

// parkedServer serves 8 connections of 127.0.0.1, whose requests run until end is
// closed, and has a ninth one wait for room.
func parkedServer(t *testing.T, request string) (l *Listener, late net.Conn, end chan struct{}) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Listen(inner, Limits{Connections: 8})
	running := make(chan struct{}, 16)
	end = make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") {
			running <- struct{}{}
			<-end
		}
		fmt.Fprint(w, "done")
	})
	srv := &http.Server{Handler: Heads(h, l.o.Heads), ConnState: State, ConnContext: ConnContext, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	for range 8 {
		fmt.Fprint(dial(t, inner.Addr().String(), "127.0.0.1"), request)
		<-running
	}
	late = dial(t, inner.Addr().String(), "127.0.0.2")
	for l.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	return l, late, end
}

// Who waits for room gets that of a connection which becomes idle.
func TestParkedGetsIdle(t *testing.T) {
	_, late, end := parkedServer(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	time.AfterFunc(50*time.Millisecond, func() { close(end) })
	if got, err := ask(late, ""); got != "done" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A connection that yields though its next request is there already leaves nothing
// behind: neither a charge for that request's head, nor its place twice.
func TestYieldBetweenPipelined(t *testing.T) {
	request := "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	l, late, end := parkedServer(t, request+request)
	close(end)
	if got, err := ask(late, ""); got != "done" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	late.Close()
	empty(t, l.o.Heads)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free != l.o.Connections-len(l.conns) {
		t.Errorf("%d free beside %d connections", l.free, len(l.conns))
	}
}

// One that was taken off is nobody's room any more.
func TestTakenOffYieldsNothing(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, Limits{Connections: 1})
	defer l.Close()
	gone, next := &conn{l: l, key: User("a")}, &conn{l: l, key: User("a")}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(&conn{l: l, key: User("b")})
	gone.rested.Store(l.turns.Add(1))
	if victim, ok := l.room(next, []*conn{gone}); ok {
		t.Errorf("room of %v, which has none", victim)
	}
}

// The longest idle connection yields first.
func TestLongestIdleYields(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, idle := inner.Addr().String(), make(chan struct{}, 16)
	srv := &http.Server{Handler: http.NotFoundHandler(), ConnContext: ConnContext, ConnState: func(c net.Conn, s http.ConnState) {
		State(c, s)
		if s == http.StateIdle {
			idle <- struct{}{}
		}
	}}
	l := Listen(inner, Limits{Connections: 8})
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	var held []net.Conn
	for range 8 {
		held = append(held, dial(t, addr, "127.0.0.1"))
	}
	for _, i := range []int{3, 0, 1, 2, 4, 5, 6, 7, 0} {
		if _, err := ask(held[i], ""); err != nil {
			t.Fatal(i, err)
		}
		<-idle
	}
	for range 2 {
		if _, err := ask(dial(t, addr, "127.0.0.2"), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range held {
		if _, err := ask(c, ""); (err != nil) != (i == 3 || i == 1) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// More clients than places come and go: each connects, and nothing is counted in the
// end.
func TestManyMoreThanPlaces(t *testing.T) {
	addr := web(t, Limits{Connections: 16})
	var wg sync.WaitGroup
	var failed atomic.Int64
	for i := range 48 {
		wg.Go(func() {
			for range 20 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					failed.Add(1)
					return
				}
				for range 1 + i%3 {
					if _, err := ask(c, ""); err != nil {
						break // it yielded
					}
				}
				c.Close()
			}
		})
	}
	wg.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d could not connect", failed.Load())
	}
}

// A proxy on the same link has the name of an interface in its address.
func TestProxiesOfTheLink(t *testing.T) {
	for _, network := range []string{"fe80::/10", "fe80::1/128"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "[fe80::1%eth0]:1"
		r.Header.Set("X-Forwarded-For", "1.2.3.4, fe80::1%eth1")
		got := ""
		next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })
		Forwarded(next, []netip.Prefix{netip.MustParsePrefix(network)}).ServeHTTP(nil, r)
		if want := "1.2.3.4:0"; got != want {
			t.Errorf("%s: %s, want %s", network, got, want)
		}
	}
}

func TestProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	addr := web(t, Limits{Connections: 64, Proxies: proxies})
	for _, c := range []struct {
		from, header, want string
	}{
		{"127.0.0.1", "X-Forwarded-For: 1.2.3.4", "1.2.3.4"},
		{"127.0.0.1", "X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"},
		{"127.0.0.1", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 1.2.3.4:80", "1.2.3.4"},
		{"127.0.0.1", "X-Forwarded-For: nonsense", "127.0.0.1"},
		{"127.0.0.1", "X-Forwarded-For: nonsense, 10.1.1.1", "10.1.1.1"},
		{"127.0.0.1", "X-Forwarded-For: [2001:db8::1]", "2001:db8::"},
		{"127.0.0.1", "X: y", "127.0.0.1"},
		{"127.0.0.2", "X-Forwarded-For: 1.2.3.4", "127.0.0.2"},
	} {
		if got, err := ask(dial(t, addr, c.from), "", c.header); err != nil || got != c.want {
			t.Errorf("%s, %s: %q %v; want %s", c.from, c.header, got, err, c.want)
		}
	}
	addr = web(t, Limits{Connections: 64, Proxies: proxies, ProxyProtocol: true})
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x01\x02\x03\x05\x7f\x00\x00\x01\x10\x00\x00\x50"
	for _, c := range []struct {
		from, prefix, want string
	}{
		{"127.0.0.1", "PROXY TCP4 1.2.3.4 127.0.0.1 4000 80\r\n", "1.2.3.4"},
		{"127.0.0.1", v2, "1.2.3.5"},
		{"127.0.0.2", "", "127.0.0.2"},
	} {
		if got, err := ask(dial(t, addr, c.from), c.prefix, "X-Forwarded-For: 6.6.6.6"); err != nil || got != c.want {
			t.Errorf("%s: %q %v; want %s", c.from, got, err, c.want)
		}
	}
	if got, err := ask(dial(t, addr, "127.0.0.1"), ""); err == nil {
		t.Errorf("a proxy without its header is served: %q", got)
	}
	if got, _ := ask(dial(t, addr, "127.0.0.2"), "PROXY TCP4 1.2.3.4 127.0.0.1 4000 80\r\n"); got == "1.2.3.4" {
		t.Error("a client says who it is")
	}
}
