package fair

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkRequest is a small request on a connection that stays, with what the door
// counts of it; each client has a connection of its own.
func BenchmarkRequest(b *testing.B) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	pool := NewPool(HeadBytes)
	l := Listen(inner, Limits{Connections: 1024, Heads: pool})
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	srv := &http.Server{Handler: Heads(ok, pool), ConnState: State, ConnContext: ConnContext}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	request := []byte("GET /bucket/key HTTP/1.1\r\nHost: h\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=x\r\n\r\n")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			for line := []byte{'x'}; len(line) > 2; {
				if line, err = r.ReadSlice('\n'); err != nil && err != io.EOF {
					b.Error(err)
					return
				}
			}
		}
	})
}

// BenchmarkHeads is what Heads and the states of a connection cost alone: of a request
// that is complete, runs and ends, with the pool that all connections share.
func BenchmarkHeads(b *testing.B) {
	pool, head := NewPool(HeadBytes), make([]byte, 200)
	h := Heads(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), pool)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		count := &headCount{pool: pool}
		r := httptest.NewRequest("GET", "/bucket/key", nil).WithContext(context.WithValue(context.Background(), headKey{}, count))
		r.Header.Set("X-Amz-Date", "20260101T000000Z")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x")
		w := httptest.NewRecorder()
		for pb.Next() {
			count.came(head)
			count.complete()
			h.ServeHTTP(w, r)
			count.idles()
		}
	})
}
