package s3

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"ogw/cluster"
)

// TestCompleteFailsLate: an endpoint that completes an upload answers 200 before it knows how
// that ends. What it says then is tried again, and where it stays in doubt, what is there
// shows how it ended.
func TestCompleteFailsLate(t *testing.T) {
	const forEver = 1000
	for _, test := range []struct {
		code     string
		failures int
		made     bool // in spite of the answer
	}{{"ServiceUnavailable", 1, false}, {"InternalError", maxTries, false}, {"ServiceUnavailable", 1, true}, {"InternalError", forEver, true}} {
		all, completes, number := &careless{objects: make(map[string]carelessObject)}, 0, ""
		opened := false
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			all.mu.Lock()
			_, made := all.objects[r.URL.Path]
			all.mu.Unlock()
			switch query := r.URL.Query(); {
			case query.Has("uploads"):
				number = r.Header.Get("X-Amz-Meta-" + numberKey)
				all.ServeHTTP(w, r)
			case r.Method != http.MethodPost || !opened:
				all.ServeHTTP(w, r)
			case completes < test.failures:
				completes++
				if test.made {
					all.mu.Lock()
					all.objects[r.URL.Path] = carelessObject{number, "x"}
					all.mu.Unlock()
				}
				fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", test.code)
			case made:
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, "<Error><Code>NoSuchUpload</Code></Error>")
			default:
				all.ServeHTTP(w, r)
			}
		}))
		b, err := Open(t.Context(), Options{Endpoint: srv.URL, Bucket: "store", Region: "r", AccessKey: "k", SecretKey: "s"})
		if err != nil {
			t.Fatal(err)
		}
		opened = true
		w, err := b.Create(t.Context(), cluster.BlobID{Content: 1}, -1)
		if err == nil {
			_, err = w.Write(make([]byte, 8<<20+1))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Commit(t.Context()); err != nil {
			t.Errorf("%d times %s, made: %v: %v", test.failures, test.code, test.made, err)
		}
		b.Close()
		srv.Close()
	}
}
