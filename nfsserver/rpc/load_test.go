package rpc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestStalledRecordIsBounded has clients announce large records, send a part
// of them and stop: they cost no more than their share, and are closed.
func TestStalledRecordIsBounded(t *testing.T) {
	const stall = 2 * time.Second
	h := start(t, Config{StallTimeout: stall, ConnBytes: 2 << 20, Bytes: 8 << 20})
	whole := h.srv.cfg.Bytes
	var stalled []*client
	for range 8 { // as many as would hold the whole
		c := h.dial()
		c.Write(binary.BigEndian.AppendUint32(nil, lastFragment|1<<20))
		c.Write(make([]byte, 10_000))
		stalled = append(stalled, c)
	}
	free := h.srv.requests.Free
	half := whole/2 + memoryOf(1<<20)/2 // to the nearest record
	for end := time.Now().Add(stall); whole-free() < half && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if used := whole - free(); used > half {
		t.Errorf("stalled records of one client cost %d bytes", used)
	}
	good := h.dialFrom("127.0.0.2")
	good.send(call(1, 1, opaque(500_000)...))
	good.want("another client meanwhile", 1, 1, 0, 0, 0, Success, 500_000)
	for _, c := range stalled {
		c.SetDeadline(time.Now().Add(30 * stall))
		c.wantClosed("half a record")
	}
	for end := time.Now().Add(30 * time.Second); free() != whole; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are not given back", whole-free())
		}
	}
}

const (
	manyConns = 10_000
	// connBytes is what one connection may cost: its buffer, its stack and
	// what the run time keeps for it.
	connBytes = 48 << 10
)

// TestTenThousandConnections serves a good client beside ten thousand others,
// half of which stopped in the middle of a record.
func TestTenThousandConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("opens ten thousand connections")
	}
	if raiseFiles() < manyConns+100 {
		t.Skip("this process may not open so many files")
	}
	h := start(t, Config{MaxConns: manyConns + 10})
	before := memory()
	child := crowd(t, h.addr)
	for end := time.Now().Add(60 * time.Second); len(h.srv.Clients()) < manyConns; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections", len(h.srv.Clients()))
		}
	}
	if cost := (memory() - before) / manyConns; cost > connBytes {
		t.Errorf("a connection costs %d bytes", cost)
	} else {
		t.Logf("a connection costs %d bytes", cost)
	}
	c := h.dial()
	c.SetDeadline(time.Now().Add(time.Minute))
	for i := range uint32(100) {
		c.send(call(i, 1, opaque(1000)...))
		c.want("a good client", i)
	}
	child.Close()
	for end := time.Now().Add(60 * time.Second); len(h.srv.Clients()) > 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are left", len(h.srv.Clients()))
		}
	}
}

// TestConnectionsOverTheLimit refuses them and goes on serving the others.
func TestConnectionsOverTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("opens ten thousand connections")
	}
	if raiseFiles() < manyConns+100 {
		t.Skip("this process may not open so many files")
	}
	h := start(t, Config{MaxConns: 50})
	c := h.dial()
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	c.send(call(1, 0))
	c.want("before", 1)
	crowd(t, h.addr)
	for end := time.Now().Add(60 * time.Second); h.srv.Refused() < manyConns-50; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d refused", h.srv.Refused())
		}
	}
	if n := len(h.srv.Clients()); n > 50 {
		t.Errorf("%d connections", n)
	}
	c.send(call(2, 0))
	c.want("after", 2)
}

func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}

// crowdVariable makes the test binary the crowd, at that address.
const crowdVariable = "OGW_TEST_RPC_CROWD"

// crowd opens manyConns connections from a process of their own, which has
// file descriptors of its own. Closing what it returns ends it.
func crowd(t *testing.T, addr string) io.Closer {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrowd$", "-test.v")
	cmd.Env = append(os.Environ(), crowdVariable+"="+addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // it has nothing to say any more
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			go io.Copy(io.Discard, out)
			return in
		}
	}
	t.Fatal("the crowd did not come")
	return nil
}

// TestCrowd is no test: it is what crowd runs.
func TestCrowd(t *testing.T) {
	addr := os.Getenv(crowdVariable)
	if addr == "" {
		t.Skip("part of the tests with many connections")
	}
	raiseFiles()
	conns := make([]net.Conn, 0, manyConns)
	for i := range manyConns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, _ = c.Write(frame(call(uint32(i), 0))) // may be refused
		} else {
			_, _ = c.Write([]byte{0x80, 0, 4, 0, 1, 2, 3})
		}
		conns = append(conns, c)
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	for _, c := range conns {
		c.Close()
	}
}
