package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// writesOf counts the writes of connections.
type writesOf struct {
	net.Listener
	mu    sync.Mutex
	sizes []int
}

type countedConn struct {
	net.Conn
	l *writesOf
}

func (l *writesOf) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l}, err
}

func (c countedConn) Write(p []byte) (int, error) {
	c.l.mu.Lock()
	c.l.sizes = append(c.l.sizes, len(p))
	c.l.mu.Unlock()
	return c.Conn.Write(p)
}

func (l *writesOf) take() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := l.sizes
	l.sizes = nil
	return got
}

// gathering serves bodies of the length and in the way that the path asks for.
func gathering(t *testing.T) (*writesOf, net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &writesOf{Listener: inner}
	log := slog.New(slog.DiscardHandler)
	h := Frame(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Header().Set("Padding", string(bytes.Repeat([]byte("x"), 300)))
		src := bytes.NewReader(pattern(n))
		if r.URL.Path == "/breaks" {
			gather(w, 200, int64(n))
			_, _ = w.Write(pattern(n)[:n/2])
			panic(http.ErrAbortHandler)
		}
		_ = Respond(w, http.StatusOK, src, 0, int64(n))
	}), FrameConfig{Door: "test", Logger: log})
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	srv.Listener, srv.Config.ConnContext = LazyDeadlines(l, &Sends{}), ConnContext
	srv.Start()
	t.Cleanup(srv.Close)
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return l, c
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// A small answer leaves in one write, and every answer arrives as it is, also those
// of requests that came together.
func TestSmallAnswerIsOneWrite(t *testing.T) {
	l, c := gathering(t)
	r := bufio.NewReader(c)
	for _, v := range []struct {
		method string
		n      int
		one    bool
	}{
		{"GET", 4 << 10, true}, {"GET", 0, true}, {"GET", 1, true}, {"GET", 3000, true}, {"GET", 7 << 10, true},
		{"HEAD", 4 << 10, true}, {"GET", 4 << 10, true}, {"GET", gatherBytes, false}, {"GET", 64 << 10, false}, {"GET", 4 << 10, true},
	} {
		request := fmt.Sprintf("%s /?n=%d HTTP/1.1\r\nHost: h\r\n\r\n", v.method, v.n)
		if _, err := io.WriteString(c, request+request); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			res, err := http.ReadResponse(r, &http.Request{Method: v.method})
			if err != nil {
				t.Fatal(v, err)
			}
			got, err := io.ReadAll(res.Body)
			if want := pattern(v.n); err != nil || v.method == "GET" && !bytes.Equal(got, want) || res.ContentLength != int64(v.n) {
				t.Errorf("%v: %d bytes, %v", v, len(got), err)
			}
		}
		if got := l.take(); v.one != (len(got) == 2) {
			t.Errorf("%v: writes of %v", v, got)
		}
	}
}

// An answer that breaks off ends the connection, and nothing of it passes for whole.
func TestGatheredAnswerBreaksOff(t *testing.T) {
	_, c := gathering(t)
	if _, err := io.WriteString(c, "GET /breaks?n=5000 HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

// Behind TLS nobody looks for heads.
func TestGatherFindsNoTLS(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	lazy := newLazyConn(a, StallTime)
	if ctx := ConnContext(context.Background(), lazy); ctx.Value(connKey{}) != any(lazy) {
		t.Error("a plain connection is not found")
	}
	if ctx := ConnContext(context.Background(), struct{ net.Conn }{lazy}); ctx.Value(connKey{}) != nil {
		t.Error("a connection below another protocol is found")
	}
}

// FuzzGatherer: whatever the writes, what comes out is what went in, and nothing
// stays behind of a whole answer.
func FuzzGatherer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nbody"), 4, uint8(3))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nbo"), 4, uint8(200))
	f.Fuzz(func(t *testing.T, answer []byte, body int, step uint8) {
		if body <= 0 || step == 0 {
			return
		}
		g, out := gatherer{body: body}, []byte(nil)
		for p := range slices.Chunk(answer, int(step)) {
			if g.body == 0 {
				out = append(out, p...)
				continue
			}
			if b := g.add(p); b != nil {
				out = append(out, b...)
				g.end()
			}
		}
		out = append(out, g.kept...)
		if !bytes.Equal(out, answer) {
			t.Errorf("%q of %q", out, answer)
		}
		head := bytes.Index(answer, headEnd)
		if head >= 0 && head < int(step) && len(answer) >= head+4+body && len(g.kept) > 0 {
			t.Errorf("%q stays of an answer that is whole", g.kept)
		}
	})
}
