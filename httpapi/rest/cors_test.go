package rest

import (
	"encoding/base64"
	"testing"
)

// TestCORS: pages of configured origins read answers and may change things; others see
// nothing that tells a browser to let them.
func TestCORS(t *testing.T) {
	const app, evil, token = "Origin: https://app.example", "Origin: https://evil.example", "Authorization: Bearer 0123456789abcdef"
	g := newGateway(t, Config{Tokens: []string{"0123456789abcdef"}, Users: true, Origins: []string{"https://app.example"}})
	g.put("/b/k", "text", token)
	header := func(a answer, name, want string) {
		t.Helper()
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		method, origin string
		status         int
		allowed        string
	}{
		{"GET", app, 200, "https://app.example"}, {"HEAD", app, 200, "https://app.example"}, {"GET", evil, 200, ""},
		{"PUT", app, 204, "https://app.example"}, {"PUT", evil, 403, ""}, {"DELETE", evil, 403, ""}, {"DELETE", app, 204, "https://app.example"},
		{"GET", app, 404, "https://app.example"}, // errors, too
		{"GET", "Origin: null", 404, ""}, {"GET", "Origin: https://app.example.evil.example", 404, ""}, {"GET", "Origin: http://app.example", 404, ""},
	} {
		body := ""
		if c.method == "PUT" {
			body = "text"
		}
		a := g.do(c.method, "/b/k", body, c.origin, token)
		if a.StatusCode != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.origin, a.StatusCode, a.body)
		}
		header(a, "Access-Control-Allow-Origin", c.allowed)
		header(a, "Vary", originVary)
	}
	a := g.do("GET", "/b/k", nil, app)
	if a.StatusCode != 401 {
		t.Errorf("without credentials: %d", a.StatusCode)
	}
	header(a, "Access-Control-Allow-Credentials", "true")
	a = g.do("OPTIONS", "/b/k", nil, app, "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: authorization, x-amz-meta-a, b\tc")
	if a.StatusCode != 204 {
		t.Errorf("preflight: %d", a.StatusCode)
	}
	header(a, "Access-Control-Allow-Origin", "https://app.example")
	header(a, "Access-Control-Allow-Methods", allowed)
	header(a, "Access-Control-Allow-Headers", "authorization, x-amz-meta-a")
	header(a, "Access-Control-Max-Age", corsMaxAge)
	a = g.do("OPTIONS", "/b/k", nil, evil, "Access-Control-Request-Method: PUT")
	header(a, "Access-Control-Allow-Methods", "")

	// Everybody's pages, where they have to bring a token.
	g = newGateway(t, Config{Tokens: []string{"0123456789abcdef"}, Origins: []string{AnyOrigin}})
	g.put("/b/k", "text", token, evil)
	a = g.do("GET", "/b/k", nil, token, evil)
	header(a, "Access-Control-Allow-Origin", AnyOrigin)
	header(a, "Access-Control-Allow-Credentials", "")
	if a := g.do("GET", "/b/k", nil, evil, "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("a:b"))); a.StatusCode != 401 {
		t.Errorf("%d", a.StatusCode)
	}
	// Nobody's, unless configured.
	g = newGateway(t, Config{Tokens: []string{"0123456789abcdef"}})
	a = g.do("GET", "/b/k", nil, token, app)
	header(a, "Access-Control-Allow-Origin", "")
	header(a, "Vary", "")
}
