package adversary

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// browse asks the REST gateway as p's browser does when p follows a link.
func (p person) browse(t *testing.T, s *testenv.Server, target string) (header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.REST+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(p.key, p.secret)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", target, resp.StatusCode, err)
	}
	return resp.Header, string(text)
}

// TestPagesOfOthers: the origin of the REST gateway is everybody's, and a browser has
// an administrator's password for it. What bob stored there is shown without scripts,
// of no origin, and is no page at all if it could be one.
func TestPagesOfOthers(t *testing.T) {
	s := newServer(t, restUsers)
	bob, admin := newPerson(t, s, "bob"), person{name: "root", key: s.KeyID, secret: s.Secret}
	script := `<script>fetch("/victim", {method: "DELETE"})</script>`
	for name, kind := range map[string]string{
		"page.html": "text/html", "image.svg": "image/svg+xml", "feed.xml": "text/xml", "page": "application/xhtml+xml", "unknown": "",
		"image.png": "image/png",
	} {
		headers := []string{"Content-Disposition", "inline"}
		if kind != "" {
			headers = append(headers, "Content-Type", kind)
		}
		must(t, name)(bob.rest(t, s, "PUT", "/bobs/"+name, script, headers...))
		header, body := admin.browse(t, s, "/bobs/"+name)
		if body != script {
			t.Errorf("%s: %q", name, body)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "sandbox;") || strings.Contains(policy, "allow-") {
			t.Errorf("%s: Content-Security-Policy %q", name, policy)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: its type may be guessed", name)
		}
		active := kind != "image/png"
		if shown := !strings.HasPrefix(header.Get("Content-Disposition"), "attachment"); shown == active {
			t.Errorf("%s: Content-Disposition %q", name, header.Get("Content-Disposition"))
		}
	}
}

// TestNamesOfOthers: a name that is markup is text in the list that an administrator
// looks at.
func TestNamesOfOthers(t *testing.T) {
	s := newServer(t, restUsers)
	bob, admin := newPerson(t, s, "bob"), person{name: "root", key: s.KeyID, secret: s.Secret}
	for _, name := range []string{`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `javascript:alert(1)`} {
		must(t, name)(bob.rest(t, s, "PUT", "/bobs/"+url.PathEscape(name), "x"))
	}
	header, body := admin.browse(t, s, "/bobs/")
	if !strings.Contains(body, "alert(1)") {
		t.Fatalf("the list does not have the names: %s", body)
	}
	if kind := header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
		return // no browser renders it
	}
	for _, markup := range []string{"<img", "<script>alert", `href="javascript:`} {
		if strings.Contains(body, markup) {
			t.Errorf("the list has %s in it:\n%s", markup, body)
		}
	}
}
