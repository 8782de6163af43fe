package rest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"ogw/cluster/mem"
	"ogw/httpapi"
	"ogw/httpapi/peer"
	"ogw/vfs"
)

// gateway is a running door over an engine in memory.
type gateway struct {
	t   *testing.T
	fs  *vfs.FS
	url string

	faults mem.Faults

	mu      sync.Mutex
	records []*httpapi.Record
}

func newGateway(t *testing.T, c Config) *gateway {
	t.Helper()
	ctx := context.Background()
	g := &gateway{t: t}
	store := mem.New(mem.Options{Seed: 1, Faults: &g.faults})
	fs, err := vfs.Open(ctx, store, vfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g.fs = fs
	c.FS = fs
	c.Logger = slog.New(slog.DiscardHandler)
	c.Done = func(r *httpapi.Record) {
		g.mu.Lock()
		g.records = append(g.records, r)
		g.mu.Unlock()
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.NewServer(New(c), c.Logger)
	server.Listener = peer.Identify(server.Listener)
	server.Start()
	g.url = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := fs.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

// do sends a request; headers are "Name: value". The path goes out as it is.
func (g *gateway) do(method, path string, body any, headers ...string) answer {
	g.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	case io.Reader:
		reader = b
	}
	r, err := http.NewRequest(method, g.url, reader)
	if err != nil {
		g.t.Fatal(err)
	}
	raw, query, _ := strings.Cut(path, "?")
	decoded, err := url.PathUnescape(raw)
	if err != nil {
		g.t.Fatal(err)
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = decoded, raw, query
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatalf("%s %s: body: %v", method, path, err)
	}
	return answer{resp, string(b)}
}

// put stores an object and fails the test if that fails.
func (g *gateway) put(path, body string, headers ...string) answer {
	g.t.Helper()
	a := g.do("PUT", path, body, headers...)
	if a.StatusCode != 201 && a.StatusCode != 204 {
		g.t.Fatalf("PUT %s: %s %s", path, a.Status, a.body)
	}
	return a
}

// want fails unless an object has a body, or with status does not.
func (g *gateway) want(path string, status int, body string) answer {
	g.t.Helper()
	a := g.do("GET", path, nil)
	if a.StatusCode != status || status == 200 && a.body != body {
		g.t.Errorf("GET %s: %d %.80q, want %d %.80q", path, a.StatusCode, a.body, status, body)
	}
	return a
}

// raw sends bytes and returns the response; what net/http's client would
// refuse to send can be sent so.
func (g *gateway) raw(method, request string) (answer, error) {
	g.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return answer{}, err
	}
	// A body that is short ends here. Behind a request without one, the server
	// would take the end for that of its client, and might give it up.
	if tcp, ok := conn.(*net.TCPConn); ok && method == http.MethodPut {
		_ = tcp.CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp, string(b)}, err
}
