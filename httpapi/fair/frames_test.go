package fair

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framedServer serves HTTP/2 with a pool for what is kept, and returns a client.
func framedServer(t *testing.T, pool *Pool, h http.Handler) (*tls.Conn, *http2.Framer) {
	t.Helper()
	ts := httptest.NewUnstartedServer(h) // for its certificate
	inner := Listen(ts.Listener, Limits{Connections: 1024, Heads: pool})
	ts.Listener = inner
	ts.Config.ConnState, ts.Config.ConnContext = State, ConnContext
	ts.TLS = &tls.Config{GetConfigForClient: Greeted, NextProtos: []string{"h2"}}
	if err := HTTP2(ts.Config, pool, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	ts.StartTLS()
	t.Cleanup(ts.Close)
	c, err := tls.Dial("tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, http2.ClientPreface)
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c, f
}

func block(target string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", target}, {":authority", "h"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	return b.Bytes()
}

// empty waits until nothing of a pool is held.
func empty(t *testing.T, pool *Pool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); pool.InUse() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d held by nobody", pool.InUse())
		}
	}
}

// TestFramesBalance: uploads and downloads go through, more at a time than one
// connection takes, and all that they cost is given back.
func TestFramesBalance(t *testing.T) {
	pool := NewPool(HeadBytes)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	c, _ := framedServer(t, pool, Heads(echo, pool))
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	body := bytes.Repeat([]byte("0123456789abcdef"), 20<<10)
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			path := []string{"/", "/refused"}[i%2]
			resp, err := (&http.Client{Transport: tr}).Post("https://"+c.RemoteAddr().String()+path, "", bytes.NewReader(body))
			if err != nil {
				if i%2 == 0 {
					t.Error(i, err)
				}
				return // refused before all was sent
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); i%2 == 0 && (err != nil || len(got) != len(body)) {
				t.Errorf("%d: %d bytes of %d, %v, %v", i, len(got), len(body), err, resp.Proto)
			}
		})
	}
	wg.Wait()
	empty(t, pool)
	tr.CloseIdleConnections()
	c.Close()
	empty(t, pool)
}

// TestHeadInFrames: a head in several frames holds until its last, and without a
// share ends the connection.
func TestHeadInFrames(t *testing.T) {
	for _, size := range []int64{HeadBytes, blockBytes} { // of the smaller, half is the most
		pool := NewPool(size)
		c, f := framedServer(t, pool, http.NotFoundHandler())
		b := block("/")
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:4], EndStream: true}); err != nil {
			t.Fatal(err)
		}
		if size == HeadBytes {
			for pool.InUse() < blockBytes {
				time.Sleep(time.Millisecond)
			}
			if err := f.WriteContinuation(1, true, b[4:]); err != nil {
				t.Fatal(err)
			}
		}
		answered := false
		for !answered {
			frame, err := f.ReadFrame()
			if err != nil {
				break
			}
			answered = frame.Header().StreamID == 1
		}
		if answered != (size == HeadBytes) {
			t.Errorf("with %d bytes: answered is %v", size, answered)
		}
		c.Close()
		empty(t, pool)
	}
}

// TestPings: what a client does not take, the server does not answer.
func TestPings(t *testing.T) {
	c, _ := framedServer(t, NewPool(HeadBytes), http.NotFoundHandler())
	var pings bytes.Buffer
	f := http2.NewFramer(&pings, nil)
	for range 9000 {
		_ = f.WritePing(false, [8]byte{})
	}
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	for i := range 1000 {
		if _, err := c.Write(pings.Bytes()); err != nil {
			if n, ok := err.(net.Error); !ok || !n.Timeout() {
				t.Error(i, err)
			}
			return
		}
	}
	t.Error("all were taken")
}
