package s3

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Rules are kept within a bound, and are those of their text.
func TestCORSCache(t *testing.T) {
	var c corsCache
	text := func(i int) []byte {
		rule := corsRule{ID: fmt.Sprint(i), Origins: []string{"*"}, Methods: []string{"GET"}, Headers: []string{"X-" + strings.Repeat("y", 60_000)}}
		b, err := json.Marshal(&corsConfig{Rules: []corsRule{rule}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for i := range 200 {
		for range 2 {
			rules, err := c.get(text(i))
			if err != nil || rules.Rules[0].ID != fmt.Sprint(i) || !strings.HasPrefix(rules.Rules[0].patterns[0], "x-yyy") {
				t.Fatalf("%d: %v", i, err)
			}
		}
		if c.bytes > corsCacheBytes || len(c.entries) > corsCacheBytes/60_000 {
			t.Fatalf("%d bytes in %d entries", c.bytes, len(c.entries))
		}
	}
	if _, err := c.get([]byte("{")); err == nil {
		t.Error("read what is no JSON")
	}
}

// BenchmarkCORS is a GET that anybody sends from a page, of a bucket with 1,400
// patterns, and from elsewhere.
func BenchmarkCORS(b *testing.B) {
	d := openDoor(b, Config{})
	d.bucket("alice", "cors")
	var rules strings.Builder
	for i := range 100 {
		rules.WriteString("<CORSRule><AllowedMethod>GET</AllowedMethod>")
		for j := range 14 {
			fmt.Fprintf(&rules, "<AllowedOrigin>*.n%d-%d</AllowedOrigin>", i, j)
		}
		rules.WriteString("</CORSRule>")
	}
	if res, body := d.raw("alice", "PUT", "/cors?cors", []byte("<CORSConfiguration>"+rules.String()+"</CORSConfiguration>"), nil); res.StatusCode != 200 {
		b.Fatal(body)
	}
	for _, origin := range []string{"", "https://a.elsewhere.com"} {
		b.Run("origin="+origin, func(b *testing.B) {
			for b.Loop() {
				r := d.request("GET", "/cors/none", nil, nil)
				if origin != "" {
					r.Header.Set("Origin", origin)
				}
				if w := anonymouslyDo(d.srv, r); w != 403 {
					b.Fatal(w)
				}
			}
		})
	}
}

func anonymouslyDo(s *Server, r *http.Request) int {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}
