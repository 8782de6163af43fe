package rpc

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"ogw/nfsserver/xdr"
)

// procQuick of the harness, and what its Handle answers.
const (
	procQuick = 9
	quickLeft = 0xfeedbeef
)

func quickWords(_ *Call, args xdr.Reader, r *Reply) bool {
	n := args.Uint32()
	for range n {
		r.Uint32(n)
	}
	if n == 1 {
		panic("test")
	}
	return n > 0 && args.Err() == nil
}

func word(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// TestQuickCalls sends many calls at once, short and long replies, some that
// the reader cannot answer, in pieces that end anywhere.
func TestQuickCalls(t *testing.T) {
	var calls, in, out atomic.Int64
	h := start(t, Config{Observe: func(e Event) {
		if e.Proc == procQuick {
			calls.Add(int64(e.Calls))
			in.Add(int64(e.In))
			out.Add(int64(e.Out))
		}
		if e.Duration <= 0 || e.Calls <= 0 {
			t.Errorf("%+v", e)
		}
	}})
	const count = 3000
	words := func(i uint32) uint32 { // in the reply to call i
		switch i % 10 {
		case 3, 7:
			return i % 10 / 4 // 0 and 1
		case 5:
			return laneReply // four times its bytes
		}
		return 2 + i%20
	}
	var stream []byte
	sent, received := 0, 0
	for i := range uint32(count) {
		rec := call(i, procQuick, word(words(i))...)
		if i%97 == 0 { // in two fragments
			stream = append(stream, word(20)...)
			stream = append(append(stream, rec[:20]...), frame(rec[20:])...)
		} else {
			stream = append(stream, frame(rec)...)
		}
		sent += len(rec)
	}
	c := h.dial()
	c.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		for i := 1; len(stream) > 0; i++ {
			n := min(len(stream), i*37%5000+1)
			if _, err := c.Write(stream[:n]); err != nil {
				t.Error(err)
				return
			}
			stream = stream[n:]
		}
	}()
	seen := make([]bool, count)
	for range count {
		r := c.recv()
		received += 4 + 4*len(r)
		xid := r[0]
		if xid >= count || seen[xid] {
			t.Fatalf("reply to call %d", xid)
		}
		seen[xid] = true
		n := words(xid)
		want, value := int(n), n
		if n <= 1 || xid%97 == 0 {
			want, value = 1, quickLeft // a record in fragments goes the long way
		}
		if body := r[6:]; len(body) != want || body[0] != value || body[want-1] != value || r[5] != Success {
			t.Fatalf("call %d: %d words of %x, want %d of %x", xid, len(body), body[0], want, value)
		}
	}
	// What is counted is counted behind the reply.
	counted := func() bool {
		i := h.srv.Clients()[0]
		return calls.Load() == count && in.Load() == int64(sent) && out.Load() == int64(received) &&
			i.Calls == count && i.In == uint64(sent) && i.Out == uint64(received) && i.InFlight == 0
	}
	for end := time.Now().Add(time.Minute); !counted(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("observed %d calls, %d bytes in, %d out, want %d, %d, %d; %+v",
				calls.Load(), in.Load(), out.Load(), count, sent, received, h.srv.Clients()[0])
		}
	}
}

// TestQuickRefusals: the header of a call that could be quick is checked as
// that of any other.
func TestQuickRefusals(t *testing.T) {
	h := start(t, Config{ConnCalls: 1, Calls: 1})
	c := h.dial()
	badCred := header(2, 2, testProg, 3, procQuick)
	badCred.Uint32(AuthUnix)
	badCred.Opaque([]byte{1, 2, 3})
	badCred.Uint64(0)
	badCred.Uint32(2)
	for _, x := range []struct {
		what string
		rec  []byte
		want []uint32
	}{
		{"before", call(1, procQuick, word(2)...), []uint32{1, 1, 0, 0, 0, Success, 2, 2}},
		{"bad credential", badCred.B, []uint32{2, 1, 1, 1, 1}},
		{"version of the program", append(noAuth(header(3, 2, testProg, 4, procQuick)).B, word(2)...), []uint32{3, 1, 0, 0, 0, ProgMismatch, 3, 3}},
		{"version of RPC", append(noAuth(header(4, 3, testProg, 3, procQuick)).B, word(2)...), []uint32{4, 1, 1, 0, 2, 2}},
		{"no argument", call(5, procQuick), []uint32{5, 1, 0, 0, 0, Success, quickLeft}},
		{"after", call(6, procQuick, word(3)...), []uint32{6, 1, 0, 0, 0, Success, 3, 3, 3}},
	} {
		c.send(x.rec)
		c.want(x.what, x.want...)
	}
	c.send(call(7, procQuick, word(2)...)[:30])
	c.wantClosed("half a header")
}
