package rpc

import (
	"net"
	"testing"
	"time"

	"ogw/vfs/clients/unsent"
)

// asks begins a connection that asks for megabytes and reads nothing, and
// returns what the server knows of it once the kernel holds from bytes for it.
func (h *harness) asks(ip string, from int) *conn {
	h.t.Helper()
	c := h.dialFrom(ip)
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		h.t.Fatal(err)
	}
	for i := range 12 {
		c.send(call(uint32(i), 8, 0, 16, 0, 0)) // 1 MiB
	}
	local := addrPort(c.LocalAddr())
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		h.srv.mu.Lock()
		for sc := range h.srv.conns.all {
			if sc.remote == local && sc.unsent.Unsent() >= from {
				h.srv.mu.Unlock()
				return sc
			}
		}
		h.srv.mu.Unlock()
	}
	h.t.Fatalf("the kernel never held %d bytes", from)
	return nil
}

// TestUnsent: the kernel holds much for few clients that read nothing, and
// little for the others.
func TestUnsent(t *testing.T) {
	h := start(t, Config{MaxRecord: 1 << 20, Bytes: DefaultBytes / unsent.Conns})
	wide := h.asks("127.0.0.1", unsent.Bytes/2)
	narrow := h.asks("127.0.0.2", unsent.Narrow/2)
	time.Sleep(50 * time.Millisecond) // in which more would come
	if n := narrow.unsent.Unsent(); n > unsent.Narrow+64<<10 || narrow.unsent.Wide() {
		t.Errorf("%d bytes are unsent on the second", n)
	}
	if n := wide.unsent.Unsent(); n > unsent.Bytes+64<<10 || !wide.unsent.Wide() {
		t.Errorf("%d bytes are unsent on the first", n)
	}
}
