package adversary

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"ogw/integration/testenv"
)

const (
	// headConns is more than one client's share of server.connections, and
	// frameConns what is enough where each may have much kept.
	headConns, frameConns = 2048 + 128, 256
	// headSize is less than a head may have.
	headSize = 60 << 10
)

// lines is a head without end, of lines that cost much more than their bytes.
func lines(size int) string {
	text := "GET / HTTP/1.1\r\nHost: h\r\n"
	return text + strings.Repeat("a:\n", (size-len(text))/3)
}

// dialTLS connects from the attacker's address, with ALPN.
func dialTLS(s *testenv.Server, protocol string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)}, Timeout: giveUp, Control: smallWindow}
	c, err := tls.DialWithDialer(&d, "tcp", s.S3, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// holds has n connections that send something and stay, while the server's
// memory is watched, and its other clients are served.
func holds(t *testing.T, n int, scheme string, dial func(s *testenv.Server) (net.Conn, error), send func(c net.Conn)) {
	t.Helper()
	o := testenv.ServerOptions{}
	if scheme == "https" {
		cert, key := certificate(t)
		o.S3 = fmt.Sprintf("tls_cert = %q\ntls_key = %q", cert, key)
	}
	s := webServer(t, o, scheme)
	visit := browser{s: s, tls: scheme == "https", anew: true}.visits(t)
	if err := visit(); err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, n)
	bounded(t, s, func() {
		many(frameConns, n, func(i int) {
			c, err := dial(s)
			if err != nil {
				return // all that the server takes
			}
			conns[i] = c
			_ = c.SetDeadline(time.Now().Add(giveUp))
			send(c) // the server may end it
		})
		time.Sleep(time.Second)
		for range 10 {
			if err := visit(); err != nil {
				t.Errorf("another client: %v", err)
			}
		}
	})
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// TestMemoryOfHeads: heads of HTTP/1 that nobody ends.
func TestMemoryOfHeads(t *testing.T) {
	plain := func(s *testenv.Server) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)}, Timeout: giveUp, Control: smallWindow}
		return d.Dial("tcp", s.S3)
	}
	secure := func(s *testenv.Server) (net.Conn, error) { return dialTLS(s, "http/1.1") }
	pipelined := "GET / HTTP/1.1\r\nHost: h\r\n\r\n" + lines(4000)
	for _, c := range []struct {
		name, scheme string
		dial         func(s *testenv.Server) (net.Conn, error)
		text         string
	}{
		{"long", "http", plain, lines(headSize)},
		{"short", "http", plain, lines(4 << 10)},
		{"behind a request", "http", plain, pipelined},
		{"long over TLS", "https", secure, lines(headSize)},
		{"behind a request over TLS", "https", secure, pipelined},
	} {
		t.Run(c.name, func(t *testing.T) {
			holds(t, headConns, c.scheme, c.dial, func(conn net.Conn) { _, _ = io.WriteString(conn, c.text) })
		})
	}
}

// fields is a block of a head, of many fields that are one byte each.
func fields(head ...string) []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(head); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: head[i], Value: head[i+1]})
	}
	for range 1500 {
		_ = enc.WriteField(hpack.HeaderField{Name: "x-a", Value: ""})
	}
	return block.Bytes()
}

// requestTo is the head of a request for a target.
func requestTo(method, target string) []string {
	return []string{":method", method, ":scheme", "https", ":path", target, ":authority", "h"}
}

// TestMemoryOfFrames: what an HTTP/2 connection may have the server keep.
func TestMemoryOfFrames(t *testing.T) {
	for _, a := range []struct {
		name  string
		conns int
		send  func(c net.Conn, f *http2.Framer)
	}{
		{"heads without end", headConns, func(_ net.Conn, f *http2.Framer) {
			block := fields(requestTo("GET", "/")...)
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:len(block)-1]})
			_ = f.WriteContinuation(1, false, nil)
		}},
		{"refusals that are not taken", frameConns, func(_ net.Conn, f *http2.Framer) {
			for i := range uint32(40) {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1 + 2*i, BlockFragment: fields(requestTo("GET", "/secret/x")...), EndHeaders: true, EndStream: true})
			}
		}},
		{"bodies that are not read", frameConns, func(_ net.Conn, f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(requestTo("GET", "/open/large")...), EndHeaders: true})
			for range 63 {
				_ = f.WriteData(1, false, make([]byte, 16<<10))
			}
		}},
		{"pings whose answers are not taken", frameConns, func(c net.Conn, _ *http2.Framer) {
			var pings bytes.Buffer
			f := http2.NewFramer(&pings, nil)
			for range 9000 {
				_ = f.WritePing(false, [8]byte{})
			}
			for range 20 { // more than the kernel's buffers take
				if _, err := c.Write(pings.Bytes()); err != nil {
					break
				}
			}
		}},
	} {
		t.Run(a.name, func(t *testing.T) {
			dial := func(s *testenv.Server) (net.Conn, error) { return dialTLS(s, "h2") }
			holds(t, a.conns, "https", dial, func(c net.Conn) {
				_, _ = io.WriteString(c, http2.ClientPreface)
				f := http2.NewFramer(c, nil)
				_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				a.send(c, f)
			})
		})
	}
}
