package rpc

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// other is the address of the client who must not notice.
const other = "127.0.0.2"

// TestRepliesNobodyTakes: connections of one client that ask for far more
// than there is and read nothing. Another client's replies come at once, and
// the others are ended.
func TestRepliesNobodyTakes(t *testing.T) {
	h := start(t, Config{ConnBytes: 4 << 20, Bytes: 8 << 20, StallTimeout: time.Second})
	for range 8 {
		c := h.dial()
		c.Conn.(*net.TCPConn).SetReadBuffer(4096)
		go func() {
			for i := range uint32(100) {
				if _, err := c.Write(frame(call(i, 8, 0, 16, 0, 0))); err != nil {
					return
				}
			}
		}()
	}
	for end := time.Now().Add(5 * time.Second); h.srv.replies.Free() > 5<<20 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	good := h.dialFrom(other)
	for i := range uint32(20) {
		good.send(call(i, 8, 0, 16, 0, 0))
		good.want("another client", i)
	}
	for end := time.Now().Add(20 * time.Second); len(h.srv.Clients()) > 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are left", len(h.srv.Clients()))
		}
	}
	if free := h.srv.replies.Free(); free != 8<<20 {
		t.Errorf("%d bytes are not given back", 8<<20-free)
	}
}

// TestTrickledRecord: a byte now and then is no progress.
func TestTrickledRecord(t *testing.T) {
	h := start(t, Config{StallTimeout: 300 * time.Millisecond})
	for _, small := range []bool{true, false} {
		c := h.dial()
		size := uint32(1 << 20)
		if small {
			size = 200
		}
		c.Write(binary.BigEndian.AppendUint32(nil, lastFragment|size))
		done := make(chan int)
		go func() {
			n := 0
			for ; n < 100; n++ {
				if _, err := c.Write([]byte{0}); err != nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			done <- n
		}()
		c.wantClosed("a record that trickles")
		c.Close()
		if n := <-done; n == 100 {
			t.Errorf("small %v: it may go on for ever", small)
		}
	}
}

// TestSlowButSteady: who moves more than the least is kept, however long the
// whole takes.
func TestSlowButSteady(t *testing.T) {
	h := start(t, Config{StallTimeout: time.Second})
	c := h.dial()
	rec := frame(call(1, 1, opaque(320<<10)...))
	for len(rec) > 0 { // 2.5 s
		n := min(len(rec), 13<<10)
		c.Write(rec[:n])
		rec = rec[n:]
		time.Sleep(100 * time.Millisecond)
	}
	c.want("at eight times the least rate", 1, 1, 0, 0, 0, Success, 320<<10)
}

// TestCallsOfOneClient do not take all slots.
func TestCallsOfOneClient(t *testing.T) {
	h := start(t, Config{Calls: 64, ConnCalls: 32})
	for range 4 {
		c := h.dial()
		for i := range uint32(32) {
			c.send(call(i, 2)) // waits
		}
	}
	for end := time.Now().Add(5 * time.Second); h.srv.calls.Free() > 32 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	good := h.dialFrom(other)
	good.send(call(1, 1, opaque(4)...))
	good.want("another client", 1)
	for range 4 * 32 {
		h.tokens <- struct{}{}
	}
}

// TestConnectionsYield: idle connections of the client that has the most make
// room, those with a call in flight last.
func TestConnectionsYield(t *testing.T) {
	h := start(t, Config{MaxConns: 8})
	var idle []*client
	for range 7 {
		c := h.dial()
		c.send(call(1, 0))
		c.want("idle", 1)
		idle = append(idle, c)
	}
	busy := h.dial()
	busy.send(call(2, 2))
	for inFlight := 0; inFlight == 0; time.Sleep(time.Millisecond) {
		for _, i := range h.srv.Clients() {
			inFlight += i.InFlight
		}
	}
	h.dial().wantClosed("a ninth of the same client")
	for i := range uint32(4) {
		c := h.dialFrom(other)
		c.send(call(i, 0))
		c.want("another client", i)
	}
	h.dialFrom(other).wantClosed("more than the other has")
	h.tokens <- struct{}{}
	busy.want("the busy one", 2)
	// Which of the idle ones was still for longer is the server's to say: a
	// reader may wait for its next record later than its client has the answer.
	kept := 0
	for _, c := range idle {
		_, _ = c.Write(frame(call(3, 0)))
		if _, err := c.read(); err == nil {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("%d of 7 idle connections are left, want 3", kept)
	}
}
