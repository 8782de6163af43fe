package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"ogw/httpapi/fair"
	"ogw/vfs/clients/unsent"
)

// testStall takes the place of StallTime. A busy machine may stop anybody for
// a second.
const testStall = 3 * time.Second

// paced returns a server whose handler runs behind the pacing of Frame.
func paced(t *testing.T, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewUnstartedServer(pacedHandler(h))
	srv.Listener = &lazyListener{Listener: srv.Listener, stall: testStall}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

func pacedHandler(h http.HandlerFunc) http.Handler {
	return Frame(h, FrameConfig{Logger: quiet(), Sends: plainSends, stall: testStall})
}

// The time in which the store works is not the client's, over HTTP/2 neither.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	srv := httptest.NewUnstartedServer(pacedHandler(func(w http.ResponseWriter, r *http.Request) {
		head := make([]byte, 1000)
		n, err := io.ReadFull(r.Body, head)
		time.Sleep(testStall * 5 / 4)
		rest, err2 := io.Copy(io.Discard, r.Body)
		if err := errors.Join(err, err2); err != nil || int64(n)+rest != size {
			http.Error(w, fmt.Sprint(int64(n)+rest, err), http.StatusTeapot)
			return
		}
		_, _ = w.Write(head)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(testStall * 5 / 4)
		_, _ = w.Write(head)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader(strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK || len(b) != 2000 {
		t.Errorf("%s %s: %d bytes %.100q, %v", resp.Proto, resp.Status, len(b), b, err)
	}
}

// TestPacedStreams: an HTTP/2 stream whose client gives no window ends, however little
// is sent on it; one that ended by itself is not reset, and the connection stays.
func TestPacedStreams(t *testing.T) {
	t.Parallel()
	answers := map[string]http.HandlerFunc{
		"/small":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100)) },
		"/large":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 300<<10)) },
		"/refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"/panic":   func(http.ResponseWriter, *http.Request) { panic("boom") },
	}
	srv := httptest.NewUnstartedServer(pacedHandler(func(w http.ResponseWriter, r *http.Request) { answers[r.URL.Path](w, r) }))
	srv.TLS = &tls.Config{NextProtos: []string{http2.NextProtoTLS}}
	if err := fair.HTTP2(srv.Config, fair.NewPool(fair.HeadBytes), HeaderTimeout); err != nil {
		t.Fatal(err)
	}
	srv.StartTLS()
	defer srv.Close()
	c, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: srv.TLS.NextProtos})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(6 * testStall))
	f := http2.NewFramer(c, c)
	_, err = io.WriteString(c, http2.ClientPreface)
	if err := errors.Join(err, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize})); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	get := func(id uint32, path string) {
		head.Reset()
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", path}, {":authority", "h"}} {
			_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
	}
	// wait returns the first of its streams that ends, and whether by a reset.
	wait := func(ids map[uint32]string) (id uint32, reset bool) {
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("nothing ends %v: %v", ids, err)
			}
			_, reset := frame.(*http2.RSTStreamFrame)
			data, isData := frame.(*http2.DataFrame)
			if !reset && (!isData || !data.StreamEnded()) {
				continue
			}
			if id := frame.Header().StreamID; ids[id] != "" {
				return id, reset
			}
			t.Errorf("stream %d ended twice", frame.Header().StreamID)
		}
	}
	taken := func(id uint32) {
		get(id, "/small")
		if err := f.WriteWindowUpdate(id, 100); err != nil {
			t.Fatal(err)
		}
		if _, reset := wait(map[uint32]string{id: "/small"}); reset {
			t.Errorf("stream %d was reset", id)
		}
	}
	taken(1) // its deadline would come before those of the others
	// After a panic the connection takes no more requests.
	for i, paths := range [][]string{{"/small", "/large", "/refused"}, {"/panic"}} {
		still := map[uint32]string{}
		for _, path := range paths {
			id := uint32(3 + 10*i + 2*len(still))
			still[id] = path
			get(id, path)
		}
		for len(still) > 0 {
			id, reset := wait(still)
			if !reset {
				t.Errorf("%s was sent without a window", still[id])
			}
			delete(still, id)
		}
		if i == 0 {
			taken(11)
		}
	}
}

// A body may take any time as long as bytes come at the least rate; when they
// stop or only trickle, it fails.
func TestPacedBody(t *testing.T) {
	t.Parallel()
	type outcome struct {
		n    int
		err  error
		took time.Duration
	}
	done := make(chan outcome, 1)
	srv := paced(t, func(_ http.ResponseWriter, r *http.Request) {
		start := time.Now()
		p, err := io.ReadAll(r.Body)
		done <- outcome{len(p), err, time.Since(start)}
	})
	const chunks, pause = 24, testStall / 16
	for _, c := range []struct {
		name  string
		chunk int // bytes at a time
		sent  int // chunks before the client falls silent
		whole bool
	}{{"at the rate", MinRate, chunks, true}, {"trickle", 1, chunks, false}, {"stall", MinRate, 4, false}} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", chunks*c.chunk)
		for range c.sent {
			time.Sleep(pause)
			if _, err := io.WriteString(conn, strings.Repeat("x", c.chunk)); err != nil {
				break
			}
		}
		o := <-done
		var timeout net.Error
		if whole := o.n == chunks*c.chunk && o.err == nil; whole != c.whole || !whole && (!errors.As(o.err, &timeout) || !timeout.Timeout()) {
			t.Errorf("%s: %d bytes in %v, %v", c.name, o.n, o.took, o.err)
		}
	}
}

// A client that takes nothing loses its connection; a slow one does not.
func TestPacedReader(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	done := make(chan error, 1)
	srv := paced(t, func(w http.ResponseWriter, _ *http.Request) { done <- Send(w, zeros{}, 0, size) })
	res, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var se *SendError
	if err := <-done; !errors.As(err, &se) || se.Read {
		t.Errorf("stalled: %v", err)
	}
	slow, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	for range 8 {
		time.Sleep(testStall / 6) // more than that in all
		if _, err := io.CopyN(io.Discard, slow.Body, size/8); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("slow: %v", err)
	}
}

// smallWindows keeps a socket's buffers from hiding how slow its reader is.
func smallWindows(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 32<<10) })
}

// TestPacedLargePieces: within one large piece, too, a client that stands still
// is seen when its time is over, and one that reads on, slower than any piece
// may take, is kept; over TLS as well.
func TestPacedLargePieces(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("tls ", secure), func(t *testing.T) {
			t.Parallel()
			type outcome struct {
				err  error
				took time.Duration
			}
			done := make(chan outcome, 2)
			srv := httptest.NewUnstartedServer(pacedHandler(func(w http.ResponseWriter, _ *http.Request) {
				begin := time.Now()
				done <- outcome{Send(w, zeros{}, 0, size), time.Since(begin)}
			}))
			// Of what the slow client has not read the kernel holds so much that the
			// time until it takes more is longer than that of a stall.
			srv.Listener = &lazyListener{Listener: srv.Listener, stall: testStall, wides: unsent.NewPool(2)}
			if secure {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			get := func() net.Conn {
				d := net.Dialer{Control: smallWindows}
				conn, err := d.Dial("tcp", srv.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if secure {
					conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
				}
				fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				return conn
			}

			still := get()
			defer still.Close()
			// A little is taken first: the rest of the piece gives no time.
			if _, err := io.CopyN(io.Discard, still, 64<<10); err != nil {
				t.Fatal(err)
			}
			o := <-done
			var se *SendError
			// Due after 2*testStall + watchStep. A loaded machine is late; the
			// time of a piece at MinRate, which it must not get, is minutes.
			most := 3*testStall + watchStep
			if secure {
				most += 5 * time.Second // crypto/tls tries to say that it ends
			}
			if !errors.As(o.err, &se) || se.Read || o.took > most {
				t.Errorf("a client that stands still: %v after %v", o.err, o.took)
			}

			slow := get()
			defer slow.Close()
			const rate = 8 // times MinRate: a MiB takes 8 s
			for begin := time.Now(); time.Since(begin) < 3*testStall; time.Sleep(testStall / 30) {
				if _, err := io.CopyN(io.Discard, slow, int64(rate*MinRate*(testStall/30)/time.Second)); err != nil {
					t.Fatalf("a slow client, after %v: %v", time.Since(begin), err)
				}
			}
			if _, err := io.CopyN(io.Discard, slow, size/2); err != nil {
				t.Errorf("the rest for a slow client: %v", err)
			}
		})
	}
}

// A refusal reaches a client that never sends the body that it announced,
// although net/http wants to read that first.
func TestRefusedBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Frame(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}), FrameConfig{Logger: quiet()}))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(maxDrainTime + 10*time.Second))
	answer := make([]byte, len("HTTP/1.1 403"))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 403" {
		t.Errorf("%q %v", answer, err)
	}
}

// What net/http refuses before any handler does not keep its connection for a body that is
// announced and never sent.
func TestExpectationRefused(t *testing.T) {
	t.Parallel()
	srv := NewServer(http.NotFoundHandler(), quiet())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "PUT / HTTP/1.1\r\nHost: h\r\nExpect: x\r\nContent-Length: 10\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(2 * maxDrainTime))
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 417") {
		t.Errorf("%q, %v", got, err)
	}
}

// A body that is announced and never sent does not keep an answer, and with it
// the request, for ever: net/http reads it before the first byte goes out.
func TestBodyNeverSent(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusOK, http.StatusForbidden} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(Frame(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(code)
				_, _ = w.Write(make([]byte, 8<<10))
			}), FrameConfig{Logger: slog.New(slog.DiscardHandler)}))
			defer srv.Close()
			c, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := errors.Join(c.SetDeadline(time.Now().Add(2*maxDrainTime)), func() error {
				_, err := io.WriteString(c, "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
				return err
			}()); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(c); err != nil {
				t.Errorf("the connection stays: %q %v", got, err)
			}
		})
	}
}

// TestOptionsOfServer: `OPTIONS *` is a request as any other, which net/http does not
// answer by itself: one whose body does not come ends, and keeps no server from ending.
func TestOptionsOfServer(t *testing.T) {
	t.Parallel()
	done := make(chan *Record, 1)
	srv := NewServer(Frame(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
	}), FrameConfig{Logger: quiet(), Done: func(r *Record) { done <- r }, stall: testStall}), quiet())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	go func() { _ = srv.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(5 * testStall))
	if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400") {
		t.Errorf("%q %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*testStall)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	select {
	case r := <-done:
		if r.Method != http.MethodOptions || r.Path != "*" || r.Status != http.StatusBadRequest {
			t.Errorf("%+v", r)
		}
	default:
		t.Error("it passed by Frame")
	}
}

// A body that stood still does not keep the answer to that: net/http reads the rest of
// it first, which had no deadline. Neither does one that stands still after the handler
// left it.
func TestAnswerToStalledBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sent string
		handle     http.HandlerFunc
		want       string
	}{
		{"in the handler", "", func(w http.ResponseWriter, r *http.Request) {
			BodyBy(r, time.Now().Add(50*time.Millisecond))
			_, err := io.ReadAll(r.Body)
			BodyBy(r, time.Time{})
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the body: %v", err)
			}
			http.Error(w, "no", http.StatusRequestTimeout)
		}, "HTTP/1.1 408"},
		{"after it", strings.Repeat("x", 20), func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadFull(r.Body, make([]byte, 10)); err != nil {
				t.Error(err)
			}
			http.Error(w, "no", http.StatusBadRequest)
		}, "HTTP/1.1 400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(Frame(c.handle, FrameConfig{Logger: quiet()}))
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"+c.sent)
			_ = conn.SetReadDeadline(time.Now().Add(maxDrainTime + 10*time.Second))
			if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), c.want) {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}
