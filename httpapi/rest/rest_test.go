package rest

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/users"
)

func md5hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestLife(t *testing.T) {
	g := newGateway(t, Config{})
	a := g.put("/photos/2024/a.jpg", "hello", "Content-Type: image/jpeg", "Cache-Control: max-age=60",
		"Content-Disposition: attachment", "Content-Encoding: gzip", "Content-Language: de",
		"X-Meta-Camera: M6", "Expires: Thu, 01 Dec 2044 16:00:00 GMT")
	if a.StatusCode != 201 || a.Header.Get("Etag") != `"`+md5hex("hello")+`"` || a.Header.Get("Location") != "/photos/2024/a.jpg" {
		t.Errorf("PUT: %s %v", a.Status, a.Header)
	}
	for _, method := range []string{"GET", "HEAD"} {
		a = g.do(method, "/photos/2024/a.jpg", nil, "Accept-Encoding: gzip")
		want := map[string]string{"Content-Type": "image/jpeg", "Cache-Control": "max-age=60", "Content-Disposition": "attachment",
			"Content-Encoding": "gzip", "Content-Language": "de", "X-Meta-Camera": "M6", "Expires": "Thu, 01 Dec 2044 16:00:00 GMT",
			"Etag": `"` + md5hex("hello") + `"`, "Accept-Ranges": "bytes", "Content-Length": "5"}
		for name, value := range want {
			if got := a.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", method, name, got, value)
			}
		}
		if body := map[string]string{"GET": "hello"}[method]; a.StatusCode != 200 || a.body != body {
			t.Errorf("%s: %s %q", method, a.Status, a.body)
		}
		if modified, err := http.ParseTime(a.Header.Get("Last-Modified")); err != nil || time.Since(modified) > time.Minute {
			t.Errorf("%s: Last-Modified %q", method, a.Header.Get("Last-Modified"))
		}
	}
	a = g.do("POST", "/photos/2024/a.jpg", "again", "Content-Type: text/plain")
	if a.StatusCode != 204 {
		t.Errorf("POST over it: %s", a.Status)
	}
	if a = g.want("/photos/2024/a.jpg", 200, "again"); a.Header.Get("X-Meta-Camera") != "" || a.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("metadata of the old object is left: %v", a.Header)
	}
	if a = g.do("DELETE", "/photos/2024/a.jpg", nil); a.StatusCode != 204 {
		t.Errorf("DELETE: %s", a.Status)
	}
	g.want("/photos/2024/a.jpg", 404, "")
	if a = g.do("DELETE", "/photos/2024/a.jpg", nil); a.StatusCode != 404 {
		t.Errorf("DELETE of nothing: %s", a.Status)
	}
	// The parents were implied and vanished with it.
	g.want("/photos/2024/", 404, "")
}

// Every path is a name, byte for byte.
func TestPaths(t *testing.T) {
	g := newGateway(t, Config{})
	paths := []string{"/x/a", "/x/a/b", "/x/a//b", "//x", "/x/./c", "/x/../c", "/x/%2e%2e", "/x/a%2Fc", "/x/a+b", "/x/a%20b", "/x/%C3%A4",
		"/x/%FF%FE", "/x/a%3Fb", "/x/%25", "/x/a;b", "/top", "/x/" + strings.Repeat("n", 1000), "/x/.ogw~e~", "/x/a%0Ab"}
	for i, p := range paths {
		g.put(p, fmt.Sprint(i))
	}
	for i, p := range paths {
		g.want(p, 200, fmt.Sprint(i))
	}
	g.want("/x/a/c", 200, "7") // %2F is a slash
	for _, p := range paths {
		if a := g.do("DELETE", p, nil); a.StatusCode != 204 {
			t.Errorf("DELETE %s: %s", p, a.Status)
		}
	}
	if a := g.do("GET", "/", nil); a.body != `{"path":"/","entries":[]}`+"\n" {
		t.Errorf("something is left: %s", a.body)
	}
}

func TestPathRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
			if rng.IntN(4) == 0 {
				b[i] = "/.%?#"[rng.IntN(5)]
			}
		}
		u, err := url.ParseRequestURI(pathOf(string(b)))
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if key, err := keyOf(u); err != nil || key != string(b) {
			t.Fatalf("%q became %q, %v", b, key, err)
		}
		if strings.HasPrefix(pathOf(string(b)), "//") {
			t.Fatalf("%q becomes a reference to another host", b)
		}
	}
}

func TestConditions(t *testing.T) {
	g := newGateway(t, Config{})
	etag := g.put("/c/x", "one").Header.Get("Etag")
	old, future := "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
	for _, c := range []struct {
		method, path string
		header       string
		want         int
	}{
		{"GET", "/c/x", "If-Match: " + etag, 200},
		{"GET", "/c/x", "If-Match: *", 200},
		{"GET", "/c/x", `If-Match: "other", ` + etag, 200},
		{"GET", "/c/x", `If-Match: "other"`, 412},
		{"GET", "/c/x", "If-Match: W/" + etag, 412},
		{"GET", "/c/x", "If-None-Match: " + etag, 304},
		{"GET", "/c/x", "If-None-Match: W/" + etag, 304},
		{"GET", "/c/x", "If-None-Match: *", 304},
		{"GET", "/c/x", `If-None-Match: "other"`, 200},
		{"GET", "/c/x", "If-Modified-Since: " + future, 304},
		{"GET", "/c/x", "If-Modified-Since: " + old, 200},
		{"GET", "/c/x", "If-Modified-Since: yesterday", 200},
		{"GET", "/c/x", "If-Unmodified-Since: " + old, 412},
		{"GET", "/c/x", "If-Unmodified-Since: " + future, 200},
		{"HEAD", "/c/x", "If-None-Match: " + etag, 304},
		{"HEAD", "/c/x", `If-Match: "other"`, 412},
		{"GET", "/c/none", "If-None-Match: *", 404},
		{"PUT", "/c/x", "If-None-Match: *", 412},
		{"PUT", "/c/x", "If-None-Match: " + etag, 412},
		{"PUT", "/c/x", `If-Match: "other"`, 412},
		{"PUT", "/c/x", "If-Match: W/" + etag, 412},
		{"PUT", "/c/x", "If-Unmodified-Since: " + old, 412},
		{"PUT", "/c/none", "If-Match: *", 412},
		{"PUT", "/c/none", "If-Match: " + etag, 412},
		{"POST", "/c/x", "If-None-Match: *", 412},
		{"DELETE", "/c/x", `If-Match: "other"`, 412},
		{"DELETE", "/c/x", "If-None-Match: " + etag, 412},
		{"DELETE", "/c/none", "If-Match: *", 412},
		{"PUT", "/c/new", "If-None-Match: *", 201},
		{"PUT", "/c/new", "If-None-Match: " + etag, 204},
		{"PUT", "/c/new", `If-None-Match: "other"`, 412}, // its content is "two" now: see below
		{"DELETE", "/c/new", "If-Match: *", 204},
		{"PUT", "/c/x", "If-Match: " + etag, 204},
		{"PUT", "/c/x", "If-Match: " + etag, 412}, // it was replaced by the line before
	} {
		header := c.header
		if c.path == "/c/new" && header == `If-None-Match: "other"` {
			header = `If-None-Match: "` + md5hex("two") + `"`
		}
		var body any
		if c.method == "PUT" || c.method == "POST" {
			body = "two"
		}
		a := g.do(c.method, c.path, body, header)
		if a.StatusCode != c.want {
			t.Errorf("%s %s with %s: %d %s, want %d", c.method, c.path, header, a.StatusCode, a.body, c.want)
		}
		if a.StatusCode == 304 && (a.Header.Get("Etag") != etag || a.body != "" || a.Header.Get("Content-Type") != "") {
			t.Errorf("%s %s with %s: 304 with %v %q", c.method, c.path, header, a.Header, a.body)
		}
	}
	g.want("/c/x", 200, "two")
	g.want("/c/none", 404, "")
}

func TestRanges(t *testing.T) {
	g := newGateway(t, Config{})
	const text = "0123456789abcdefghij"
	etag := g.put("/r/x", text, "Content-Type: text/plain").Header.Get("Etag")
	g.put("/r/empty", "")
	for _, c := range []struct {
		path, spec, extra string
		status            int
		body, crange      string
	}{
		{"/r/x", "bytes=0-4", "", 206, "01234", "bytes 0-4/20"},
		{"/r/x", "bytes=5-", "", 206, text[5:], "bytes 5-19/20"},
		{"/r/x", "bytes=-3", "", 206, "hij", "bytes 17-19/20"},
		{"/r/x", "bytes=-100", "", 206, text, "bytes 0-19/20"},
		{"/r/x", "bytes=10-1000", "", 206, text[10:], "bytes 10-19/20"},
		{"/r/x", "bytes=19-19", "", 206, "j", "bytes 19-19/20"},
		{"/r/x", "bytes=0-99999999999999999999", "", 206, text, "bytes 0-19/20"},
		{"/r/x", "bytes=20-", "", 416, "", "bytes */20"},
		{"/r/x", "bytes=-0", "", 416, "", "bytes */20"},
		{"/r/x", "bytes=30-40, 50-60", "", 416, "", "bytes */20"},
		{"/r/empty", "bytes=0-0", "", 416, "", "bytes */0"},
		{"/r/x", "bytes=5-4", "", 200, text, ""},
		{"/r/x", "bytes=a-b", "", 200, text, ""},
		{"/r/x", "bytes=", "", 200, text, ""},
		{"/r/x", "lines=1-2", "", 200, text, ""},
		{"/r/x", "bytes=0-18,1-19", "", 200, text, ""},            // longer than the whole
		{"/r/x", "bytes=0-0,40-50", "", 206, "0", "bytes 0-0/20"}, // one of two is left
		{"/r/x", "bytes=0-4", "If-Range: " + etag, 206, "01234", "bytes 0-4/20"},
		{"/r/x", "bytes=0-4", `If-Range: "other"`, 200, text, ""},
		{"/r/x", "bytes=0-4", "If-Range: Mon, 01 Jan 2001 00:00:00 GMT", 200, text, ""},
		{"/r/x", "bytes=0-4", "If-None-Match: " + etag, 304, "", ""},
		{"/r/x", "bytes=" + strings.Repeat("0-0,", maxRanges) + "1-1", "", 200, text, ""},
	} {
		headers := []string{"Range: " + c.spec}
		if c.extra != "" {
			headers = append(headers, c.extra)
		}
		a := g.do("GET", c.path, nil, headers...)
		if a.StatusCode != c.status || a.Header.Get("Content-Range") != c.crange || c.status < 300 && a.body != c.body {
			t.Errorf("%s %v: %d %q %q, want %d %q %q", c.path, headers, a.StatusCode, a.Header.Get("Content-Range"), a.body,
				c.status, c.crange, c.body)
		}
	}
	if a := g.do("HEAD", "/r/x", nil, "Range: bytes=0-4"); a.StatusCode != 200 || a.ContentLength != 20 {
		t.Errorf("HEAD with a range: %s %d", a.Status, a.ContentLength)
	}
}

func TestMultipleRanges(t *testing.T) {
	g := newGateway(t, Config{})
	const text = "0123456789abcdefghij"
	g.put("/r/x", text, "Content-Type: text/plain")
	a := g.do("GET", "/r/x", nil, "Range: bytes=0-1, 5-6 ,-2")
	kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/byteranges" || a.StatusCode != 206 || int(a.ContentLength) != len(a.body) {
		t.Fatalf("%s %v %d", a.Status, a.Header, len(a.body))
	}
	r := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
	for _, want := range []struct{ crange, body string }{{"bytes 0-1/20", "01"}, {"bytes 5-6/20", "56"}, {"bytes 18-19/20", "ij"}} {
		p, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(p)
		if p.Header.Get("Content-Range") != want.crange || p.Header.Get("Content-Type") != "text/plain" || string(b) != want.body {
			t.Errorf("part %v %q, want %v", p.Header, b, want)
		}
	}
	if _, err := r.NextPart(); err != io.EOF {
		t.Errorf("behind the last part: %v", err)
	}
}

func TestDigests(t *testing.T) {
	g := newGateway(t, Config{})
	b64 := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	m, s2, s5 := md5.Sum([]byte("body")), sha256.Sum256([]byte("body")), sha512.Sum512([]byte("body"))
	wrong := sha256.Sum256([]byte("bodY"))
	for _, c := range []struct {
		header string
		want   int
	}{
		{"Content-MD5: " + b64(m[:]), 201},
		{"Content-MD5: " + b64(wrong[:16]), 400},
		{"Content-MD5: short", 400},
		{"Content-MD5: " + b64(wrong[:]), 400},
		{"Content-Digest: sha-256=:" + b64(s2[:]) + ":", 201},
		{"Repr-Digest: sha-512=:" + b64(s5[:]) + ":, sha-256=:" + b64(s2[:]) + ":", 201},
		{"Content-Digest: sha-256=:" + b64(s2[:]) + ":, sha-512=:" + b64(s2[:]) + ":", 400},
		{"Content-Digest: sha-256=:" + b64(wrong[:]) + ":", 400},
		{"Content-Digest: sha-256=" + b64(s2[:]), 400},
		{"Content-Digest: md5=:" + b64(wrong[:16]) + ":", 400},
		{"Content-Digest: unixsum=:AAAA:", 201},
		{"Digest: SHA-256=" + b64(s2[:]) + ",unixsum=1", 201},
		{"Digest: SHA-256=" + b64(wrong[:]), 400},
		{"Digest: SHA=" + b64(wrong[:20]), 400},
		{"Digest: nonsense", 400},
		{"Repr-Digest: sha-256=:" + b64(s2[:]) + ":, sha-256=:" + b64(s2[:]) + ":", 201},
		{"Repr-Digest: sha-256=:" + b64(s2[:]) + ":, sha-256=:" + b64(wrong[:]) + ":", 400},
	} {
		a := g.do("PUT", "/d/x", "body", c.header)
		if a.StatusCode != c.want {
			t.Errorf("%s: %d %s, want %d", c.header, a.StatusCode, a.body, c.want)
		}
		if c.want == 201 {
			g.want("/d/x", 200, "body")
			g.do("DELETE", "/d/x", nil)
			continue
		}
		g.want("/d/x", 404, "") // nothing half-written
	}
}

func TestBadInput(t *testing.T) {
	g := newGateway(t, Config{MaxObjectBytes: 1000})
	g.put("/b/x", "kept")
	for _, c := range []struct {
		name, method, request string
		want                  int
	}{
		{"no length", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 411},
		{"two lengths", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		{"negative length", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
		{"length and chunks", "PUT", "PUT /b/y HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		{"short body", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nshort", 400},
		{"chunked body that ends early", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 400},
		{"long by its length", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n", 413},
		{"long by its chunks", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", 1001) + "\r\n0\r\n\r\n", 413},
		{"part of an object", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Range: bytes 0-0/5\r\nContent-Length: 1\r\n\r\na", 400},
		{"long path", "PUT", "PUT /" + strings.Repeat("x", 1025) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na", 414},
		{"long path to read", "GET", "GET /" + strings.Repeat("x", 1025) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414},
		{"large metadata", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nX-Meta-A: " + strings.Repeat("x", maxMetaBytes) + "\r\n\r\na", 431},
		{"large headers", "GET", "GET /b/x HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431},
		{"metadata without a name", "PUT", "PUT /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nX-Meta-: v\r\n\r\na", 400},
		{"bad escape", "GET", "GET /b/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
		{"the root", "PUT", "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na", 409},
		{"the root removed", "DELETE", "DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 403},
		{"method", "PATCH", "PATCH /b/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405},
		{"invented method", "FROB", "FROB /b/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
		{"no host", "GET", "GET /b/x HTTP/1.1\r\n\r\n", 400},
		{"rebound host", "GET", "GET /b/x HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
		{"cross-origin write", "POST", "POST /b/x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 1\r\n\r\na", 403},
		{"cross-site write", "POST", "POST /b/x HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 1\r\n\r\na", 403},
		{"bad limit", "GET", "GET /b/?limit=x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
		{"large limit", "GET", "GET /b/?limit=1001 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := g.raw(c.method, c.request)
			if err != nil || a.StatusCode != c.want {
				t.Errorf("%v %v %q, want %d", err, a.Response, a.body, c.want)
			}
			g.want("/b/x", 200, "kept")
			g.want("/b/y", 404, "")
		})
	}
	if a := g.do("PATCH", "/b/x", nil); a.Header.Get("Allow") != allowed {
		t.Errorf("405 without Allow: %v", a.Header)
	}
	var body struct {
		Error struct{ Code, Message, Request string }
	}
	a := g.do("GET", "/b/none", nil)
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error.Code != "not_found" || body.Error.Request == "" ||
		body.Error.Request != a.Header.Get("X-Request-Id") {
		t.Errorf("error body: %v %s", err, a.body)
	}
	if a := g.do("GET", "/b/none", nil, "Accept: text/plain"); strings.HasPrefix(a.body, "{") || !strings.Contains(a.body, "no such key") {
		t.Errorf("error as text: %s", a.body)
	}
}

// A write that fails its condition is refused before its body is asked for.
func TestExpectContinue(t *testing.T) {
	g := newGateway(t, Config{})
	g.put("/e/x", "one")
	a, err := g.raw("PUT", "PUT /e/x HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
	if err != nil || a.StatusCode != 412 {
		t.Errorf("%v %v", err, a.Response)
	}
	// A body that is wanted is asked for.
	pr, pw := io.Pipe()
	go func() {
		_, _ = io.WriteString(pw, "two")
		_ = pw.Close()
	}()
	if a := g.do("PUT", "/e/x", pr, "Expect: 100-continue"); a.StatusCode != 204 {
		t.Errorf("%s %s", a.Status, a.body)
	}
	g.want("/e/x", 200, "two")
	if a := g.do("PUT", "/e/empty", "", "Expect: 100-continue"); a.StatusCode != 201 {
		t.Errorf("empty: %s %s", a.Status, a.body)
	}
}

func TestDirectories(t *testing.T) {
	g := newGateway(t, Config{})
	for _, p := range []string{"/d/b", "/d/a/1", "/d/a.txt", "/d/%22%3Cx%3E", "//x/y"} {
		g.put(p, "1")
	}
	if a := g.do("PUT", "/d/empty/", nil); a.StatusCode != 201 {
		t.Errorf("make a directory: %s %s", a.Status, a.body)
	}
	names := func(a answer) (names []string, list Listing) {
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.StatusCode != 200 {
			t.Fatalf("%s %v %s", a.Status, err, a.body)
		}
		for _, e := range list.Entries {
			names = append(names, e.Name+":"+e.Type)
		}
		return names, list
	}
	got, _ := names(g.do("GET", "/d/", nil))
	want := []string{`"<x>:file`, "a.txt:file", "a:directory", "b:file", "empty:directory"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listing: %v, want %v", got, want)
	}
	// Pages hold every entry once.
	var all []string
	path := "/d/?limit=2"
	for range 10 {
		page, list := names(g.do("GET", path, nil))
		if len(page) > 2 {
			t.Errorf("page of %d", len(page))
		}
		all = append(all, page...)
		if list.Next == "" {
			break
		}
		path = "/d/" + list.Next
	}
	if fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("in pages: %v, want %v", all, want)
	}
	if got, _ := names(g.do("GET", "/d/empty/", nil)); len(got) != 0 {
		t.Errorf("empty directory: %v", got)
	}
	g.want("/d/none/", 404, "")
	html := g.do("GET", "/d/", nil, "Accept: text/html,*/*")
	if !strings.HasPrefix(html.Header.Get("Content-Type"), "text/html") || !strings.Contains(html.body, "&lt;x&gt;") ||
		!strings.Contains(html.body, `href="/d/a/"`) || strings.Contains(html.body, "<x>") {
		t.Errorf("HTML: %v %s", html.Header, html.body)
	}
	html = g.do("GET", "/", nil, "Accept: text/html")
	if strings.Contains(html.body, `href="//`) {
		t.Errorf("a name becomes a host: %s", html.body)
	}
	if a := g.do("HEAD", "/d/", nil); a.StatusCode != 200 || a.body != "" {
		t.Errorf("HEAD: %s %q", a.Status, a.body)
	}
	if a := g.do("GET", "/d/a", nil, "Accept: text/html"); a.StatusCode != 307 || a.Header.Get("Location") != "/d/a/" {
		t.Errorf("a browser at a directory without its slash: %s %v", a.Status, a.Header)
	}
	g.want("/d/a", 404, "")
	for _, c := range []struct {
		path string
		want int
	}{{"/d/a/", 409}, {"/d/empty/", 204}, {"/d/empty/", 404}, {"/d/none/", 404}} {
		if a := g.do("DELETE", c.path, nil); a.StatusCode != c.want {
			t.Errorf("DELETE %s: %d %s, want %d", c.path, a.StatusCode, a.body, c.want)
		}
	}
	// A directory's own content shows, unless the list is asked for.
	g.put("/d/own/", "page")
	g.put("/d/own/x", "1")
	g.want("/d/own/", 200, "page")
	if got, _ := names(g.do("GET", "/d/own/?list", nil)); fmt.Sprint(got) != "[x:file]" {
		t.Errorf("list of a directory with content: %v", got)
	}
}

// A directory is there though its first page has nothing but entries that are no objects.
func TestListingOfLinks(t *testing.T) {
	g := newGateway(t, Config{})
	ctx := context.Background()
	g.put("/b/dir/z", "1")
	dir, err := g.fs.Resolve(ctx, vfs.Root, "b/dir", true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 { // as many as a page passes over
		if _, err := g.fs.Symlink(ctx, vfs.Root, dir.Ino, fmt.Sprintf("link%05d", i), "nowhere"); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for query := "?list"; query != ""; {
		a := g.do("GET", "/b/dir/"+query, nil)
		var list Listing
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.StatusCode != 200 {
			t.Fatalf("%s: %s %v %s", query, a.Status, err, a.body)
		}
		for _, e := range list.Entries {
			found = append(found, e.Name)
		}
		query = list.Next
	}
	if fmt.Sprint(found) != "[z]" {
		t.Errorf("%q", found)
	}
}

func TestLarge(t *testing.T) {
	g := newGateway(t, Config{})
	data := make([]byte, 5<<20+123)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	pr, pw := io.Pipe() // no length known: chunked
	go func() {
		_, err := pw.Write(data)
		_ = pw.CloseWithError(err)
	}()
	if a := g.do("PUT", "/l/x", pr); a.StatusCode != 201 {
		t.Fatalf("%s %s", a.Status, a.body)
	}
	if a := g.do("GET", "/l/x", nil); !bytes.Equal([]byte(a.body), data) {
		t.Errorf("%d bytes came back", len(a.body))
	}
	for range 20 {
		off := rand.IntN(len(data))
		n := 1 + rand.IntN(len(data)-off)
		a := g.do("GET", "/l/x", nil, fmt.Sprintf("Range: bytes=%d-%d", off, off+n-1))
		if a.StatusCode != 206 || !bytes.Equal([]byte(a.body), data[off:off+n]) {
			t.Errorf("range %d+%d: %s, %d bytes", off, n, a.Status, len(a.body))
		}
	}
}

// A download that began keeps the bytes that it began with.
func TestReplaceWhileReading(t *testing.T) {
	g := newGateway(t, Config{})
	old := strings.Repeat("old!", 4<<20)
	g.put("/w/x", old)
	resp, err := http.Get(g.url + "/w/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 10)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		t.Fatal(err)
	}
	g.put("/w/x", "new")
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(head)+string(rest) != old {
		t.Errorf("%v, %d bytes", err, len(head)+len(rest))
	}
	g.want("/w/x", 200, "new")
}

func TestTokens(t *testing.T) {
	g := newGateway(t, Config{Tokens: []string{"first-token-of-two", "other-token-of-two"}, Owner: vfs.NewCred(7, 8)})
	for _, c := range []struct {
		header string
		want   int
	}{
		{"", 401}, {"Authorization: Bearer wrong", 401}, {"Authorization: Bearer", 401},
		{"Authorization: Basic Zmlyc3QtdG9rZW4tb2YtdHdvOg==", 401}, {"Authorization: Digest x", 401},
		{"Authorization: Bearer other-token-of-two", 201}, {"Authorization: bearer first-token-of-two", 204},
	} {
		var headers []string
		if c.header != "" {
			headers = append(headers, c.header)
		}
		a := g.do("PUT", "/t/x", "x", headers...)
		if a.StatusCode != c.want {
			t.Errorf("%q: %d, want %d", c.header, a.StatusCode, c.want)
		}
		if c.want == 401 && !strings.HasPrefix(a.Header.Get("Www-Authenticate"), "Bearer") {
			t.Errorf("%q: challenge %q", c.header, a.Header.Get("Www-Authenticate"))
		}
	}
	info, err := g.fs.HeadObject(context.Background(), vfs.ObjectName{Key: "t/x"}, vfs.GetOptions{})
	if err != nil || info.UID != 7 {
		t.Errorf("owner %d, %v", info.UID, err)
	}
	if a := g.do("GET", "/t/x", nil, "Host: any.example", "Authorization: Bearer first-token-of-two"); a.StatusCode != 200 {
		t.Errorf("any host with a token: %s", a.Status)
	}
	if a := g.do("OPTIONS", "/t/x", nil); a.StatusCode != 204 || a.Header.Get("Allow") != allowed {
		t.Errorf("OPTIONS: %s %v", a.Status, a.Header)
	}
	for _, r := range g.records {
		if strings.Contains(r.Identity, "token-of-two") {
			t.Errorf("the log gives a token away: %q", r.Identity)
		}
	}
}

func TestUsers(t *testing.T) {
	g := newGateway(t, Config{Users: true})
	ctx := context.Background()
	for _, u := range []users.User{
		{Name: "admin", Admin: true, Keys: []users.AccessKey{{ID: "AKADMIN", Secret: "secret-of-admin"}}},
		{Name: "ann", UID: 1001, GID: 1001, Keys: []users.AccessKey{{ID: "AKANN", Secret: "secret-of-ann"}}},
		{Name: "bob", UID: 1002, GID: 1002, Keys: []users.AccessKey{{ID: "AKBOB", Secret: "secret-of-bob"}}},
	} {
		if err := g.fs.Users().Add(ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	basic := func(user, secret string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
	}
	ann, bob, admin := basic("AKANN", "secret-of-ann"), basic("bob", "secret-of-bob"), basic("admin", "secret-of-admin")
	for _, c := range []struct {
		who, method, path string
		want              int
	}{
		{ann, "PUT", "/ann-bucket/x", 201},
		{ann, "GET", "/ann-bucket/x", 200},
		{ann, "GET", "/ann-bucket/", 200},
		{bob, "GET", "/ann-bucket/x", 403},
		{bob, "PUT", "/ann-bucket/y", 403},
		{bob, "DELETE", "/ann-bucket/x", 403},
		{bob, "GET", "/ann-bucket/", 403},
		{bob, "GET", "/", 403},
		{bob, "PUT", "/TOP/x", 403},
		{bob, "PUT", "/file", 403},
		{bob, "GET", "/bob-bucket/x", 404},
		{admin, "GET", "/ann-bucket/x", 200},
		{admin, "GET", "/", 200},
		{basic("AKANN", "secret-of-bob"), "GET", "/ann-bucket/x", 401},
		{basic("nobody", "secret-of-bob"), "GET", "/ann-bucket/x", 401},
		{basic("ann", ""), "GET", "/ann-bucket/x", 401},
		{"Accept: x", "GET", "/ann-bucket/x", 401},
		{"Authorization: Bearer x", "GET", "/ann-bucket/x", 401},
	} {
		var body any
		if c.method == "PUT" {
			body = "x"
		}
		a := g.do(c.method, c.path, body, c.who)
		if a.StatusCode != c.want {
			t.Errorf("%s %s %s: %d %s, want %d", c.who, c.method, c.path, a.StatusCode, a.body, c.want)
		}
		if c.want == 401 && !strings.HasPrefix(a.Header.Get("Www-Authenticate"), "Basic") {
			t.Errorf("challenge %q", a.Header.Get("Www-Authenticate"))
		}
	}
	// To remove takes WRITE alone, of a directory as of an object.
	for _, key := range []string{"d/", "full/", "full/x"} {
		g.put("/ann-bucket/"+key, "", ann)
	}
	user, err := g.fs.Users().ByName(ctx, "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.fs.SetBucketGrants(ctx, "ann-bucket", vfs.Grants{{Grantee: vfs.GranteeUser, User: user.ID, Permission: vfs.PermWrite}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want int
	}{{"/ann-bucket/full/", 409}, {"/ann-bucket/full/x", 204}, {"/ann-bucket/full/", 204}, {"/ann-bucket/d/", 204}} {
		if a := g.do("DELETE", c.path, nil, bob); a.StatusCode != c.want {
			t.Errorf("DELETE %s by who may write: %d %s, want %d", c.path, a.StatusCode, a.body, c.want)
		}
	}
	if a := g.do("POST", "/ann-bucket/x", "x", ann, "Origin: http://evil.example"); a.StatusCode != 403 {
		t.Errorf("a browser's kept credentials from another site: %s", a.Status)
	}
}

func TestMetadataOfPosix(t *testing.T) {
	g := newGateway(t, Config{})
	ctx := context.Background()
	g.put("/m/x", "1")
	a, err := g.fs.Resolve(ctx, vfs.Root, "m/x", true)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"user.good": "v", "user.bad value": "v", "user.lines": "a\nb"} {
		if err := g.fs.SetXattr(ctx, vfs.Root, a.Ino, vfs.Xattr{Name: name, Value: []byte(value)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	got := g.do("GET", "/m/x", nil)
	if got.Header.Get("X-Meta-Good") != "v" || got.Header.Get("X-Missing-Meta") != "2" {
		t.Errorf("%v", got.Header)
	}
}

// TestEmptiedFile: what described the old bytes of a file does not come with new ones.
func TestEmptiedFile(t *testing.T) {
	g := newGateway(t, Config{})
	ctx := context.Background()
	for _, size := range []string{"old bytes", ""} {
		g.put("/m/x.txt", size, "Content-Type: text/css", "Content-Encoding: gzip", "Cache-Control: no-store")
		a, err := g.fs.Resolve(ctx, vfs.Root, "m/x.txt", true)
		if err != nil {
			t.Fatal(err)
		}
		shows := func(kind, encoding string) {
			t.Helper()
			h := g.do("HEAD", "/m/x.txt", nil).Header
			if h.Get("Content-Type") != kind || h.Get("Content-Encoding") != encoding || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%q: %v", size, h)
			}
		}
		write := func(flags vfs.OpenFlags) {
			t.Helper()
			f, err := g.fs.Open(ctx, vfs.Root, a.Ino, vfs.OpenWrite|flags)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(ctx, []byte("new"), 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
		write(0)
		shows("text/css", "gzip")
		write(vfs.OpenTrunc)
		shows("text/plain; charset=utf-8", "")
	}
}

// However much a mount stored, an answer stays short, and is the same each time.
func TestMuchMetadataOfPosix(t *testing.T) {
	g := newGateway(t, Config{})
	ctx := context.Background()
	g.put("/m/x", "1")
	a, err := g.fs.Resolve(ctx, vfs.Root, "m/x", true)
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, size int) {
		t.Helper()
		value := bytes.Repeat([]byte("v"), size)
		if err := g.fs.SetXattr(ctx, vfs.Root, a.Ino, vfs.Xattr{Name: name, Value: value}, 0); err != nil {
			t.Fatal(err)
		}
	}
	set("user.a", vfs.MaxXattrValueBytes)
	for i := range 20 {
		set(fmt.Sprintf("user.b%02d", i), 1000)
	}
	for i := range 13 {
		set(fmt.Sprintf("user.c%02d", i), vfs.MaxXattrValueBytes)
	}
	got := g.do("HEAD", "/m/x", nil)
	size := 0
	for name, values := range got.Header {
		size += len(name) + len(strings.Join(values, ""))
	}
	if got.StatusCode != 200 || size > 16<<10 || got.Header.Get("X-Missing-Meta") != "26" || got.Header.Get("X-Meta-B07") == "" {
		t.Errorf("%d: headers of %d bytes, %s metadata are missing", got.StatusCode, size, got.Header.Get("X-Missing-Meta"))
	}
}

func FuzzRanges(f *testing.F) {
	for _, s := range []string{"bytes=0-1", "bytes=-5,3-", "bytes=,,1-1", "x", "bytes=9223372036854775807-"} {
		f.Add(s, int64(20))
	}
	f.Fuzz(func(t *testing.T, header string, size int64) {
		if size < 0 {
			return
		}
		ranges, err := parseRanges(header, size)
		total := int64(0)
		for _, r := range ranges {
			if r.Off < 0 || r.Len <= 0 || r.Off+r.Len > size {
				t.Fatalf("%q of %d: %v", header, size, r)
			}
			total += r.Len
		}
		if total > size || len(ranges) > maxRanges || err != nil && ranges != nil {
			t.Fatalf("%q of %d: %v %v", header, size, ranges, err)
		}
	})
}

// TestDigestsRepeated: a digest is computed once, however often a client repeats it in
// whatever headers; two that differ are refused before the body.
func TestDigestsRepeated(t *testing.T) {
	b64 := func(b byte, n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, n)) }
	same := http.Header{"Digest": {"SHA-256=" + b64(1, 32), "sha=" + b64(1, 20)}}
	for range 100 {
		same.Add("Content-Digest", "sha-256=:"+b64(1, 32)+":, sha-512=:"+b64(1, 64)+":")
		same.Add("Repr-Digest", "sha-512=:"+b64(1, 64)+":")
	}
	if d, err := parseDigests(same); err != nil || len(d.sum) != 3 {
		t.Errorf("%d are computed: %v", len(d.sum), err)
	}
	for _, h := range []http.Header{
		{"Content-Digest": {"sha-256=:" + b64(1, 32) + ":, sha-256=:" + b64(2, 32) + ":"}},
		{"Content-Digest": {"sha-512=:" + b64(1, 64) + ":"}, "Repr-Digest": {"sha-512=:" + b64(2, 64) + ":"}},
		{"Digest": {"SHA=" + b64(1, 20), "SHA=" + b64(2, 20)}},
	} {
		if _, err := parseDigests(h); !errors.Is(err, vfs.ErrBadDigest) {
			t.Errorf("%v: %v", h, err)
		}
	}
}

func FuzzDigests(f *testing.F) {
	f.Add("sha-256=:AAAA:", true)
	f.Add("MD5=AAAA,SHA=BBBB", false)
	f.Fuzz(func(t *testing.T, header string, structured bool) {
		var d digests
		if err := d.addList(header, structured); err == nil {
			for _, s := range d.sum {
				if len(s.want) != s.hash.Size() {
					t.Fatalf("%q: %d bytes for %s", header, len(s.want), s.algorithm)
				}
			}
		}
	})
}

// TestReadFaults: what the store cannot read is an error while nothing is sent,
// without what describes the object; later only the connection can break.
func TestReadFaults(t *testing.T) {
	g := newGateway(t, Config{})
	body := strings.Repeat("0123456789abcdef", 8<<20/16)
	g.put("/b/k", body, "X-Meta-Colour: red", "Content-Type: image/png")
	defer g.faults.Clear()
	for _, ranges := range []string{"bytes=0-", "bytes=5-"} {
		g.faults.FailFrom(1, cluster.ErrCorrupt, mem.OpBlobRead)
		a := g.do("GET", "/b/k", nil, "Range: "+ranges)
		if a.StatusCode != 500 || !strings.Contains(a.body, `"corrupt"`) || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %q", ranges, a.Status, a.body)
		}
		for _, name := range []string{"Etag", "X-Meta-Colour", "Content-Range", "Accept-Ranges", "Last-Modified"} {
			if v := a.Header.Get(name); v != "" {
				t.Errorf("%s: the error has the object's %s: %s", ranges, name, v)
			}
		}
	}
	g.faults.FailFrom(3, cluster.ErrCorrupt, mem.OpBlobRead)
	resp, err := http.Get(g.url + "/b/k")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err == nil || len(got) >= len(body) || !strings.HasPrefix(body, string(got)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// GET moves the access time of a file, HEAD and 304 do not.
func TestAccessTime(t *testing.T) {
	g := newGateway(t, Config{})
	g.put("/bucket/f", "text")
	atime := func() vfs.Time {
		t.Helper()
		info, err := g.fs.HeadObject(t.Context(), vfs.ObjectName{Key: "bucket/f"}, vfs.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := g.fs.GetAttr(t.Context(), info.Ino)
		if err != nil {
			t.Fatal(err)
		}
		return a.Atime
	}
	made := atime()
	etag := g.do("HEAD", "/bucket/f", nil).Header.Get("ETag")
	g.do("GET", "/bucket/f", nil, "If-None-Match: "+etag)
	if atime() != made {
		t.Error("HEAD or 304 moved it")
	}
	g.want("/bucket/f", 200, "text")
	if atime() == made {
		t.Error("GET did not move it")
	}
}
