package s3

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestClaimOvertaken: a count that another claim had, and removed before this one looks
// for it, is as taken as one that is there.
func TestClaimOvertaken(t *testing.T) {
	all := &careless{objects: make(map[string]carelessObject)}
	refused := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch claim := strings.Contains(r.URL.Path, "/claim/"); {
		case claim && r.Method == http.MethodPut && refused == 0:
			refused++
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, "<Error><Code>PreconditionFailed</Code></Error>")
		default:
			all.ServeHTTP(w, r)
		}
	})
	b, err := openOn(t, handler)
	if err != nil {
		t.Fatal(err)
	}
	all.objects["/store/"+b.storeKey()] = carelessObject{"n", fmt.Sprintf("%016x", 7)}
	if _, now, err := b.Claim(t.Context(), 7, 3); err != nil || now != 4 || refused != 1 {
		t.Errorf("claim %d, %v, after %d refusals", now, err, refused)
	}
}
