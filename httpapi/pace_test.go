package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// testStall takes the place of StallTime. A busy machine may stop anybody for
// a second.
const testStall = 3 * time.Second

// paced returns a server whose handler runs behind the pacing of Frame.
func paced(t *testing.T, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(pacedHandler(h))
	t.Cleanup(srv.Close)
	return srv
}

func pacedHandler(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctl, stream := http.NewResponseController(w), r.ProtoMajor >= 2
		body := &trackedBody{ReadCloser: r.Body, pace: pace{ctl: ctl, limit: testStall, stream: stream}}
		r.Body = body
		h(&response{ResponseWriter: w, rec: &Record{}, body: body, pace: pace{ctl: ctl, write: true, limit: testStall, stream: stream}}, r)
	})
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
