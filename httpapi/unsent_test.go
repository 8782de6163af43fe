package httpapi

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs/clients/unsent"
)

// slowPair returns a connection of l whose client reads nothing at first.
func slowPair(t *testing.T, l net.Listener) (c *lazyConn, client *net.TCPConn) {
	t.Helper()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = dialed.(*net.TCPConn)
	if err := client.SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close(); client.Close() })
	return accepted.(*lazyConn), client
}

// fill writes until the kernel takes no more, and returns what it holds unsent.
func fill(t *testing.T, c *lazyConn) int {
	t.Helper()
	c.write.stall = 0 // bytes put nothing off
	large := make([]byte, 32<<20)
	for full := false; !full; {
		if err := c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(large); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the kernel took all, or %v: the test is about nothing", err)
		}
		// On a busy machine the time may be over before it was asked.
		if err := c.unsent.Socket().Control(func(fd uintptr) {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			n, err := unix.Poll(poll, 0)
			full = n == 0 && err == nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return c.unsent.Unsent()
}

// TestUnsent: the kernel holds much for few connections at a time, those with
// large replies that move; the others make do with little.
func TestUnsent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := NewSends(2.0 / unsent.Conns)
	l = LazyDeadlines(l, s)
	// Connections that send little come first, and take no room.
	for range 3 {
		c, _ := slowPair(t, l)
		if _, err := c.Write([]byte("hello")); err != nil || c.unsent.Wide() {
			t.Fatal(err, c.unsent.Wide())
		}
	}
	const slack = 64 << 10 // a segment more, or two
	first, client := slowPair(t, l)
	second, _ := slowPair(t, l)
	for i, c := range []*lazyConn{first, second} {
		if n := fill(t, c); n < unsent.Bytes/2 || n > unsent.Bytes+slack {
			t.Errorf("connection %d: %d bytes are unsent", i, n)
		}
	}
	third, _ := slowPair(t, l)
	if n := fill(t, third); n > unsent.Narrow+slack {
		t.Errorf("beyond the room: %d bytes are unsent", n)
	}
	// Who has read all gives way.
	go io.Copy(io.Discard, client)
	for first.unsent.Unsent() > unsent.Narrow {
		time.Sleep(time.Millisecond)
	}
	fourth, _ := slowPair(t, l)
	for range 2 { // second does not
		if n := fill(t, fourth); n >= unsent.Bytes/2 {
			break
		}
	}
	if !fourth.unsent.Wide() || first.unsent.Wide() || !second.unsent.Wide() {
		t.Errorf("wide: first %t, second %t, fourth %t", first.unsent.Wide(), second.unsent.Wide(), fourth.unsent.Wide())
	}
	if n := s.wides.Len(); n != 2 {
		t.Errorf("%d are wide", n)
	}
	second.Close()
	if fifth, _ := slowPair(t, l); fill(t, fifth) < unsent.Bytes/2 {
		t.Error("no room after one was closed")
	}
}

// TestSendsShrink: with a part of the memory there is as much less of each.
func TestSendsShrink(t *testing.T) {
	s := NewSends(1.0 / 8)
	w := &response{rec: &Record{Identity: "alice"}, sends: s}
	var got int
	for range 2 * maxLargeSends {
		b, _ := borrow(w, 1<<30)
		got += len(b)
	}
	// One client has half of each, or a floor of eight.
	if most := 8*largeSendBytes + 8*SendBufferBytes + 2*maxLargeSends*leastSendBytes; got > most {
		t.Errorf("the buffers are %d bytes, more than %d", got, most)
	}
}
