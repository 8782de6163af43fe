package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// lazyPair returns both ends of a connection over loopback, and how often the
// first was given a deadline.
func lazyPair(t testing.TB) (c *lazyConn, peer net.Conn, armed *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	armed = new(atomic.Int32)
	c = newLazyConn(&countedDeadlines{inner, armed}, StallTime)
	t.Cleanup(func() { c.Close(); peer.Close() })
	return c, peer, armed
}

type countedDeadlines struct {
	net.Conn
	n *atomic.Int32
}

func (c *countedDeadlines) SetReadDeadline(t time.Time) error {
	c.n.Add(1)
	return c.Conn.SetReadDeadline(t)
}

func (c *countedDeadlines) SetWriteDeadline(t time.Time) error {
	c.n.Add(1)
	return c.Conn.SetWriteDeadline(t)
}

func TestLazyConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		c, peer, _ := lazyPair(t)
		c.write.stall = 0 // bytes put nothing off
		return c, peer, func() { c.Close(); peer.Close() }, nil
	})
}

// Deadlines that move on, as those of one request after the other do, cost
// one timer.
func TestLazyDeadlineSparesTimers(t *testing.T) {
	c, peer, armed := lazyPair(t)
	for i := range 1000 {
		if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Minute)), c.SetReadDeadline(time.Time{}),
			c.SetReadDeadline(time.Now().Add(2*time.Minute))); err != nil {
			t.Fatal(i, err)
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 2)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := armed.Load(); n != 1 {
		t.Errorf("%d timers", n)
	}
}

// The read that net/http begins with a request and ends with it does not reach the
// connection, and takes no byte of the next request.
func TestNoticeEndsWithRequest(t *testing.T) {
	c, peer, armed := lazyPair(t)
	below := &failedReads{Conn: c.Conn}
	c.Conn = below
	if _, err := peer.Write([]byte("next")); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		got := make(chan error, 1)
		go func() {
			n, err := c.Read(make([]byte, 1))
			if n > 0 {
				t.Error("it took a byte")
			}
			got <- err
		}()
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := armed.Load(); n > 0 || below.n > 0 {
		t.Errorf("%d timers, %d reads failed", n, below.n)
	}
	got := make([]byte, 8)
	if n, err := c.Read(got); string(got[:n]) != "next" || err != nil {
		t.Errorf("%q, %v", got[:n], err)
	}
}

// A request learns that its client is gone, in its first moments and later.
func TestNoticeOfClientsEnd(t *testing.T) {
	for _, after := range []time.Duration{0, 4 * noticeAfter} {
		began, gone := make(chan struct{}), make(chan struct{})
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
			close(gone)
		}))
		srv.Listener = LazyDeadlines(srv.Listener, &Sends{})
		srv.Start()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		<-began
		time.Sleep(after)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		<-gone
		srv.Close()
	}
}

// A deadline that was put off or taken away does not end who waits.
func TestLazyDeadlinePutOff(t *testing.T) {
	c, peer, _ := lazyPair(t)
	const soon = 50 * time.Millisecond
	for _, later := range []time.Time{{}, time.Now().Add(time.Hour)} {
		if err := errors.Join(c.SetDeadline(time.Now().Add(soon)), c.SetDeadline(later)); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			got <- err
		}()
		select {
		case err := <-got:
			t.Fatal("woken by a deadline that is gone:", err)
		case <-time.After(3 * soon):
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("y")); err != nil {
			t.Fatal("the deadline for writing came:", err)
		}
	}
}

// A write that a deadline put off meanwhile interrupted goes on where it was.
func TestLazyDeadlineLongWrite(t *testing.T) {
	c, peer, _ := lazyPair(t)
	const size = 64 << 20
	if err := errors.Join(c.SetWriteDeadline(time.Now().Add(50*time.Millisecond)), c.SetWriteDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	read := make(chan int64, 1)
	go func() {
		time.Sleep(200 * time.Millisecond) // so that the first one passes
		n, _ := io.CopyN(io.Discard, peer, size)
		read <- n
	}()
	if n, err := c.Write(make([]byte, size)); n != size || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n := <-read; n != size {
		t.Errorf("%d bytes came", n)
	}
	if err := c.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("after its deadline:", err)
	}
}

// failedReads counts the reads that fail.
type failedReads struct {
	net.Conn
	n int
}

func (c *failedReads) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.n++
	}
	return n, err
}

// net/http ends the read that it has under way between requests by a deadline
// long past: after that is taken back no read fails because of it.
func TestLazyDeadlineAfterAbort(t *testing.T) {
	c, peer, _ := lazyPair(t)
	below := &failedReads{Conn: c.Conn}
	c.Conn = below
	for range 3 {
		if err := errors.Join(c.SetReadDeadline(time.Unix(1, 0)), c.SetReadDeadline(time.Time{})); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if below.n > 0 {
		t.Errorf("%d reads failed", below.n)
	}
}
