package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"ogw/nfsserver/xdr"
)

const testProg = 400123

// harness is a server with one program:
// 0 null, 1 echo of an opaque, 2 waits for a token, 3 panics, 4 counts
// (cached), 5 drops, 6 fails, 7 has no handler, 8 payload of n bytes, 9 quick
// (n words; 0 is left to Handle, which answers quickLeft, as a panic at 1 is), 10 n
// bytes of pages at an offset.
type harness struct {
	t      *testing.T
	srv    *Server
	addr   string
	tokens chan struct{}
	count  atomic.Int32
	events atomic.Int32
	file   *os.File // of which the pages are
	paged  atomic.Int32
}

func start(t *testing.T, cfg Config) *harness {
	t.Helper()
	h := &harness{t: t, tokens: make(chan struct{}, 100)}
	cfg.Programs = []Program{{Number: testProg, Low: 3, High: 3, Procs: []Proc{
		{Name: "null", Handle: func(context.Context, *Call, *Reply) error { return nil }, Inline: true},
		{Name: "echo", Handle: func(_ context.Context, c *Call, r *Reply) error {
			p := c.Args.Opaque(1 << 20)
			if c.Args.Err() != nil {
				return ErrGarbageArgs
			}
			r.Opaque(p)
			return nil
		}},
		{Name: "wait", Handle: func(context.Context, *Call, *Reply) error { <-h.tokens; return nil }},
		{Name: "panic", Handle: func(context.Context, *Call, *Reply) error { panic("test") }},
		{Name: "count", Cached: true, Handle: func(_ context.Context, _ *Call, r *Reply) error {
			n := h.count.Add(1)
			<-h.tokens
			r.Uint32(uint32(n))
			return nil
		}},
		{Name: "drop", Handle: func(context.Context, *Call, *Reply) error { return ErrDrop }},
		{Name: "fail", Handle: func(context.Context, *Call, *Reply) error { return errors.New("no") }},
		{Name: "none"},
		{Name: "payload", Handle: func(_ context.Context, c *Call, r *Reply) error {
			n := c.Args.Uint32()
			b := GetBuffer(int(n))
			for i := range b.B {
				b.B[i] = byte(i)
			}
			r.Uint32(n)
			r.Payload(b)
			return nil
		}, ReplyBytes: func(a xdr.Reader) int { return int(a.Uint32()) }},
		{Name: "quick", Quick: quickWords, Handle: func(_ context.Context, _ *Call, r *Reply) error {
			r.Uint32(quickLeft)
			return nil
		}},
		{Name: "pages", Handle: h.pages, ReplyBytes: func(a xdr.Reader) int { return int(a.Uint32()) }},
	}}}
	observe := cfg.Observe
	cfg.Observe = func(e Event) {
		h.events.Add(1)
		if observe != nil {
			observe(e)
		}
	}
	h.srv = NewServer(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- h.srv.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.srv.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return h
}

type client struct {
	t *testing.T
	net.Conn
	br *bufio.Reader
}

func (h *harness) dial() *client { return h.dialFrom("127.0.0.1") }

// dialFrom connects as the client of that address.
func (h *harness) dialFrom(ip string) *client {
	h.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := d.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return &client{h.t, c, bufio.NewReader(c)}
}

func header(xid, rpcvers, prog, vers, proc uint32) *xdr.Writer {
	w := &xdr.Writer{}
	for _, v := range []uint32{xid, 0, rpcvers, prog, vers, proc} {
		w.Uint32(v)
	}
	return w
}

func noAuth(w *xdr.Writer) *xdr.Writer {
	w.Uint64(0)
	w.Uint64(0)
	return w
}

func call(xid, proc uint32, args ...byte) []byte {
	w := noAuth(header(xid, 2, testProg, 3, proc))
	w.B = append(w.B, args...)
	return w.B
}

func opaque(n int) []byte {
	var w xdr.Writer
	w.Opaque(bytes.Repeat([]byte{'x'}, n))
	return w.B
}

func frame(rec []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(rec))), rec...)
}

func (c *client) send(rec []byte) {
	c.t.Helper()
	if _, err := c.Write(frame(rec)); err != nil {
		c.t.Fatal(err)
	}
}

// recv returns the words of the next reply.
func (c *client) recv() []uint32 {
	c.t.Helper()
	b, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	words := make([]uint32, len(b)/4)
	for i := range words {
		words[i] = binary.BigEndian.Uint32(b[4*i:])
	}
	return words
}

func (c *client) read() ([]byte, error) {
	var m [4]byte
	if _, err := io.ReadFull(c.br, m[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(m[:])&^lastFragment)
	_, err := io.ReadFull(c.br, b)
	return b, err
}

func (c *client) want(what string, words ...uint32) {
	c.t.Helper()
	got := c.recv()
	if len(got) < len(words) {
		c.t.Fatalf("%s: reply %v, want %v", what, got, words)
	}
	for i := range words {
		if got[i] != words[i] {
			c.t.Fatalf("%s: reply %v, want %v", what, got, words)
		}
	}
}

func (c *client) wantClosed(what string) {
	c.t.Helper()
	if b, err := c.read(); err == nil {
		c.t.Errorf("%s: got a reply of %d bytes, want the connection closed", what, len(b))
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.t.Errorf("%s: connection still open", what)
	}
}

func TestReplies(t *testing.T) {
	h := start(t, Config{})
	c := h.dial()
	badCred := header(9, 2, testProg, 3, 0)
	badCred.Uint32(AuthUnix)
	badCred.Opaque([]byte{1, 2, 3})
	badCred.Uint64(0)
	gss := header(10, 2, testProg, 3, 0)
	gss.Uint64(6 << 32)
	gss.Uint64(0)
	for _, x := range []struct {
		name string
		rec  []byte
		want []uint32
	}{
		{"null", call(1, 0), []uint32{1, 1, 0, 0, 0, Success}},
		{"echo", call(2, 1, opaque(4)...), []uint32{2, 1, 0, 0, 0, Success, 4, 0x78787878}},
		{"garbage", call(3, 1, 0, 0, 0, 9), []uint32{3, 1, 0, 0, 0, GarbageArgs}},
		{"panic", call(4, 3), []uint32{4, 1, 0, 0, 0, SystemErr}},
		{"failure", call(5, 6), []uint32{5, 1, 0, 0, 0, SystemErr}},
		{"no handler", call(6, 7), []uint32{6, 1, 0, 0, 0, ProcUnavail}},
		{"no procedure", call(7, 99), []uint32{7, 1, 0, 0, 0, ProcUnavail}},
		{"version 4", noAuth(header(8, 2, testProg, 4, 1)).B, []uint32{8, 1, 0, 0, 0, ProgMismatch, 3, 3}},
		{"other program", noAuth(header(8, 2, 99, 3, 1)).B, []uint32{8, 1, 0, 0, 0, ProgUnavail}},
		{"RPC version 3", noAuth(header(8, 3, testProg, 3, 1)).B, []uint32{8, 1, 1, 0, 2, 2}},
		{"bad credential", badCred.B, []uint32{9, 1, 1, 1, authBadCred}},
		{"unknown flavor", gss.B, []uint32{10, 1, 1, 1, authTooWeak}},
	} {
		c.send(x.rec)
		c.want(x.name, x.want...)
	}
	c.send(call(11, 5))
	c.send(call(12, 0))
	c.want("after a dropped call", 12)
}

func TestFragments(t *testing.T) {
	h := start(t, Config{})
	c := h.dial()
	rec := call(1, 1, opaque(200_000)...)
	for i := 0; i < len(rec); {
		n := min(len(rec)-i, 10_001)
		mark := uint32(n)
		if i+n == len(rec) {
			mark |= lastFragment
		}
		c.Write(binary.BigEndian.AppendUint32(nil, mark))
		c.Write(rec[i : i+n])
		i += n
	}
	got := c.recv()
	if got[6] != 200_000 || len(got) != 7+50_000 {
		t.Fatalf("%d words, length %d", len(got), got[6])
	}
}

func TestPayload(t *testing.T) {
	h := start(t, Config{})
	c := h.dial()
	for _, n := range []uint32{0, 1, 5, 4096, 1<<20 + 1} {
		var w xdr.Writer
		w.Uint32(n)
		c.send(call(n, 8, w.B...))
		b, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != 28+int(n)+xdr.Pad(int(n)) {
			t.Fatalf("payload of %d: reply of %d bytes", n, len(b))
		}
		for i := range n {
			if b[28+i] != byte(i) {
				t.Fatalf("payload of %d differs at %d", n, i)
			}
		}
	}
}

func TestRepliesInAnyOrder(t *testing.T) {
	h := start(t, Config{})
	c := h.dial()
	for i := range uint32(20) {
		c.send(call(i, 2))
	}
	c.send(call(99, 1, opaque(4)...))
	c.want("the call behind the waiting ones", 99)
	for range 20 {
		h.tokens <- struct{}{}
	}
	seen := map[uint32]bool{}
	for range 20 {
		seen[c.recv()[0]] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d different replies", len(seen))
	}
}

func TestCallsInFlightAreBounded(t *testing.T) {
	h := start(t, Config{ConnCalls: 4})
	c := h.dial()
	for i := range uint32(10) {
		c.send(call(i, 2))
	}
	time.Sleep(50 * time.Millisecond)
	if n := h.srv.Clients()[0].InFlight; n != 4 {
		t.Errorf("%d calls in flight", n)
	}
	for range 10 {
		h.tokens <- struct{}{}
	}
	for range 10 {
		c.recv()
	}
}

func TestBytesAreBounded(t *testing.T) {
	// A client that reads no replies: what it holds is limited, others go on.
	h := start(t, Config{ConnBytes: 4 << 20, Bytes: 8 << 20, StallTimeout: 500 * time.Millisecond})
	c := h.dial()
	c.Conn.(*net.TCPConn).SetReadBuffer(4096)
	go func() {
		for i := range uint32(100) {
			var w xdr.Writer
			w.Uint32(1 << 20)
			if _, err := c.Write(frame(call(i, 8, w.B...))); err != nil {
				return
			}
		}
	}()
	time.Sleep(100 * time.Millisecond)
	if free := h.srv.replies.Free(); free < 4<<20 {
		t.Errorf("%d bytes of replies left for others", free)
	}
	o := h.dialFrom("127.0.0.2")
	o.send(call(1, 8, 0, 16, 0, 0))
	o.want("another client", 1)
}

// TestBuffersAreBounded: a record counts as much as the buffer that it takes.
func TestBuffersAreBounded(t *testing.T) {
	h := start(t, Config{StallTimeout: time.Minute})
	for _, n := range []int{freeBytes + 1, 100 << 10, 300 << 10, 1 << 20} {
		c := h.dial()
		c.Write(frame(make([]byte, n))[:5]) // of a record that does not come
		want := DefaultBytes - cap(GetBuffer(n).B)
		for begin := time.Now(); h.srv.requests.Free() != want; time.Sleep(time.Millisecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatalf("%d bytes are reserved for a record of %d", DefaultBytes-h.srv.requests.Free(), n)
			}
		}
		c.Close()
		for h.srv.requests.Free() != DefaultBytes {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestDuplicates(t *testing.T) {
	h := start(t, Config{})
	a, b := h.dial(), h.dial()
	a.send(call(7, 4))
	for h.count.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	b.send(call(7, 4)) // while the original runs
	time.Sleep(20 * time.Millisecond)
	h.tokens <- struct{}{}
	a.want("original", 7, 1, 0, 0, 0, Success, 1)
	b.want("duplicate while it runs", 7, 1, 0, 0, 0, Success, 1)
	b.send(call(7, 4))
	b.want("duplicate afterwards", 7, 1, 0, 0, 0, Success, 1)
	h.tokens <- struct{}{}
	b.send(call(7, 4, 0, 0, 0, 1))
	b.want("other arguments", 7, 1, 0, 0, 0, Success, 2)
	h.tokens <- struct{}{}
	b.send(call(8, 4))
	b.want("other transaction", 8, 1, 0, 0, 0, Success, 3)
}

func TestDuplicateCacheIsBounded(t *testing.T) {
	d := newDupCache()
	for i := range uint32(3 * dupEntriesPerClient) {
		c := &Call{XID: i, Remote: netip.MustParseAddrPort("10.0.0.1:1")}
		e, isNew := d.begin(c)
		if !isNew {
			t.Fatal("found what was never sent")
		}
		d.finish(c, e, make([]byte, 200), true)
	}
	cl := d.clients[netip.MustParseAddr("10.0.0.1")]
	if len(cl.entries) != dupEntriesPerClient || cl.bytes != d.bytes || d.bytes != dupEntriesPerClient*(dupEntryBytes+200) {
		t.Errorf("%d entries, %d bytes of %d", len(cl.entries), cl.bytes, d.bytes)
	}
	for i := range 300 {
		for x := range uint32(dupEntriesPerClient) {
			c := &Call{XID: x, Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 1)}
			e, _ := d.begin(c)
			d.finish(c, e, make([]byte, 200), true)
		}
	}
	sum := 0
	for _, cl := range d.clients {
		sum += cl.bytes
	}
	if d.bytes > dupMaxBytes || sum != d.bytes || len(d.clients) != d.lru.Len() {
		t.Errorf("%d bytes, sum %d, %d clients, %d in LRU", d.bytes, sum, len(d.clients), d.lru.Len())
	}
}

// A call that runs is not forgotten, however many its client and others make meanwhile.
func TestDuplicateCacheKeepsRunning(t *testing.T) {
	d := newDupCache()
	call := func(xid uint32, host int) *Call {
		return &Call{XID: xid, Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(host >> 8), byte(host)}), 1)}
	}
	slow, _ := d.begin(call(1<<30, 0))
	for host := range 300 {
		for xid := range uint32(2 * dupEntriesPerClient) {
			c := call(xid, host)
			e, _ := d.begin(c)
			d.finish(c, e, make([]byte, 200), true)
		}
	}
	e, isNew := d.begin(call(1<<30, 0))
	if isNew || e != slow {
		t.Error("a call that runs was taken for a new one")
	}
	d.finish(call(1<<30, 0), e, nil, true)
	if cl := d.clients[netip.MustParseAddr("10.1.0.0")]; cl.running != 0 || len(cl.entries) != dupEntriesPerClient {
		t.Errorf("%d run, %d entries", cl.running, len(cl.entries))
	}
	if d.bytes > dupMaxBytes+dupEntriesPerClient*(dupEntryBytes+200) {
		t.Errorf("%d bytes", d.bytes)
	}
}

// An answer is for who sends a request again, not for one that is the same long after.
func TestDuplicateCacheAges(t *testing.T) {
	d := newDupCache()
	now := time.Now()
	d.now = func() time.Time { return now }
	c := &Call{XID: 7, Remote: netip.MustParseAddrPort("10.0.0.1:1")}
	first, _ := d.begin(c)
	now = now.Add(2 * dupLife)
	if e, isNew := d.begin(c); isNew || e != first {
		t.Error("a call that runs for long was taken for a new one")
	}
	d.finish(c, first, []byte("first"), true)
	now = now.Add(dupLife - 1)
	if e, isNew := d.begin(c); isNew || e != first {
		t.Error("an answer was forgotten early")
	}
	now = now.Add(1)
	e, isNew := d.begin(c)
	if !isNew {
		t.Fatal("an old answer was given")
	}
	d.finish(c, e, []byte("second"), true)
	if again, isNew := d.begin(c); isNew || again != e {
		t.Error("the new answer was not kept")
	}
	cl := d.clients[c.Remote.Addr()]
	if want := dupEntryBytes + len("second"); len(cl.entries) != 1 || cl.bytes != want || d.bytes != want {
		t.Errorf("%d entries, %d bytes of %d, want %d", len(cl.entries), cl.bytes, d.bytes, want)
	}
}

func TestBadStreams(t *testing.T) {
	h := start(t, Config{StallTimeout: 100 * time.Millisecond, IdleTimeout: 300 * time.Millisecond, MaxRecord: 64 << 10})
	for _, x := range []struct {
		name string
		in   []byte
	}{
		{"half a mark", []byte{0x80, 0}},
		{"half a record", []byte{0x80, 0, 0, 40, 1, 2, 3}},
		{"record over the limit", []byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3}},
		{"a reply", frame([]byte{0, 0, 0, 1, 0, 0, 0, 1})},
		{"empty record", frame(nil)},
		{"empty fragments without end", make([]byte, 4*1000)},
		{"nothing at all", nil},
	} {
		c := h.dial()
		c.Write(x.in)
		c.SetDeadline(time.Now().Add(3 * time.Second))
		c.wantClosed(x.name)
	}
	c := h.dial()
	c.send(call(1, 0))
	c.want("a good client afterwards", 1)
	if free := h.srv.requests.Free(); free != DefaultBytes {
		t.Errorf("%d bytes leaked", DefaultBytes-free)
	}
}

func TestConnectionLimitAndAllow(t *testing.T) {
	h := start(t, Config{MaxConns: 2})
	a, b := h.dial(), h.dial()
	for i, c := range []*client{a, b} {
		c.send(call(uint32(i), 0))
		c.recv()
	}
	h.dial().wantClosed("third connection")
	if h.srv.Refused() != 1 {
		t.Errorf("%d refused", h.srv.Refused())
	}
	h = start(t, Config{Allow: func(a netip.Addr) bool { return !a.IsLoopback() }})
	h.dial().wantClosed("client that is not allowed")
}

func TestShutdownDrains(t *testing.T) {
	h := start(t, Config{})
	c := h.dial()
	c.send(call(1, 2))
	for len(h.srv.Clients()) == 0 || h.srv.Clients()[0].InFlight == 0 {
		time.Sleep(time.Millisecond)
	}
	done := make(chan error, 1)
	go func() { done <- h.srv.Shutdown(context.Background()) }()
	time.Sleep(20 * time.Millisecond)
	h.tokens <- struct{}{}
	c.want("call in flight at the shutdown", 1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.wantClosed("after the shutdown")
	if h.events.Load() != 1 {
		t.Errorf("%d calls observed", h.events.Load())
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(frame(call(1, 1, opaque(4)...)))
	f.Add([]byte{0, 0, 0, 4, 1, 2, 3, 4, 0x80, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		total := 0
		rr := recordReader{br: bufio.NewReaderSize(bytes.NewReader(b), smallRecord), max: 1 << 12,
			reserve: func(n int) error { total += n; return nil }, wait: func(bool, int) error { return nil }}
		for {
			small, _ := rr.peek()
			seen := bytes.Clone(small)
			rec, err := rr.next()
			if err != nil {
				break
			}
			if small != nil && !bytes.Equal(seen, rec.B) {
				t.Fatalf("the record %x was %x before it was taken", rec.B, seen)
			}
			if len(rec.B) > 1<<12 {
				t.Fatal("record over the limit")
			}
			c := Call{rec: rec}
			if denied, err := c.parse(rec.B); err == nil && denied == nil && len(c.Cred.GIDs) > maxGIDs {
				t.Fatal("too many groups")
			}
			rec.Free()
		}
	})
}

func BenchmarkNull(b *testing.B)  { benchmark(b, call(1, 0)) }
func BenchmarkEcho4(b *testing.B) { benchmark(b, call(1, 1, opaque(4)...)) }

// benchmark keeps 32 calls in flight on one connection.
func benchmark(b *testing.B, rec []byte) {
	srv := NewServer(Config{Programs: []Program{{Number: testProg, Low: 3, High: 3, Procs: []Proc{
		{Name: "null", Handle: func(context.Context, *Call, *Reply) error { return nil }, Inline: true},
		{Name: "echo", Handle: func(_ context.Context, c *Call, r *Reply) error {
			r.Opaque(c.Args.Opaque(1 << 20))
			return nil
		}}}}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go srv.Serve(l)
	defer srv.Shutdown(context.Background())
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	msg := frame(rec)
	window := make(chan struct{}, 32)
	b.ResetTimer()
	go func() {
		for range b.N {
			window <- struct{}{}
			nc.Write(msg)
		}
	}()
	br := bufio.NewReaderSize(nc, 64<<10)
	for range b.N {
		p, err := br.Peek(4)
		if err != nil {
			b.Fatal(err)
		}
		br.Discard(4 + int(binary.BigEndian.Uint32(p)&^lastFragment))
		<-window
	}
}
