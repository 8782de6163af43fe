package s3

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// TestLostRefusal: an endpoint that has an object refuses another one under its key
// before it has read the body, and the connection ends with the answer on its way.
// What is there shows how the write ended.
func TestLostRefusal(t *testing.T) {
	var number atomic.Value // of the object that is there
	var opened atomic.Bool
	others := &careless{objects: make(map[string]carelessObject)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !opened.Load():
			others.ServeHTTP(w, r)
		case r.Method == http.MethodPut:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		case number.Load() == "":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			w.Header().Set("X-Amz-Meta-"+numberKey, number.Load().(string))
			http.ServeContent(w, r, "", testTime, bytes.NewReader([]byte("x")))
		}
	}))
	defer srv.Close()
	b, err := Open(t.Context(), Options{Endpoint: srv.URL, Bucket: "store", Region: "r", AccessKey: "k", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	opened.Store(true)
	for _, c := range []struct {
		number string
		want   error
	}{{"", cluster.ErrUnavailable}, {"another", cluster.ErrExists}, {"own", nil}} {
		number.Store(c.number)
		_, err := b.put(t.Context(), "k", make([]byte, 1<<20), "own")
		if err == nil {
			t.Fatal("it was answered")
		}
		if err := b.outcome(t.Context(), "k", "own", err); !errors.Is(err, c.want) {
			t.Errorf("with the object of %q: %v", c.number, err)
		}
	}
}
