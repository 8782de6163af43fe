package s3

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// declared returns the messages of the sentinels that a file declares.
func declared(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Err") {
			return true
		}
		if call, ok := spec.Values[0].(*ast.CallExpr); ok && len(call.Args) == 1 {
			if lit, ok := call.Args[0].(*ast.BasicLit); ok {
				out[spec.Names[0].Name], _ = strconv.Unquote(lit.Value)
			}
		}
		return true
	})
	return out
}

func TestEverySentinelHasACode(t *testing.T) {
	inTable := map[string]code{}
	for _, m := range errorCodes {
		inTable[m.err.Error()] = m.code
		wrapped := toAPI(fmt.Errorf("somewhere: %w", m.err))
		if wrapped.name != m.code.name || wrapped.status != m.code.status {
			t.Errorf("%v becomes %s, not %s", m.err, wrapped.name, m.code.name)
		}
		if m.code.status < 300 || m.code.status > 599 || m.code.message == "" {
			t.Errorf("%v: incomplete code %+v", m.err, m.code)
		}
	}
	known := 0
	for _, file := range []string{"../../vfs/internal/fserr/fserr.go", "../sigv4/errors.go"} {
		for name, message := range declared(t, file) {
			known++
			if _, ok := inTable[message]; !ok {
				t.Errorf("%s of %s has no S3 code", name, file)
			}
		}
	}
	if known < 60 {
		t.Errorf("only %d sentinels found", known)
	}
	if e := toAPI(errors.New("unheard of")); e.name != "InternalError" || e.status != 500 || strings.Contains(e.message, "unheard") {
		t.Errorf("unknown error: %+v", e)
	}
}

func TestErrorXML(t *testing.T) {
	r := httptest.NewRequest("GET", "/b/k%3C", nil)
	r = r.WithContext(httpapi.WithRequestID(r.Context(), "ID"))
	w := httptest.NewRecorder()
	writeError(w, r, "b", "k<", vfs.ErrNoSuchKey)
	want := `<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Key>k&lt;</Key><Resource>/b/k&lt;</Resource><RequestId>ID</RequestId><HostId>ogw</HostId></Error>`
	if got := strings.TrimPrefix(w.Body.String(), xml.Header); got != want || w.Code != 404 {
		t.Errorf("%d %s", w.Code, got)
	}
	r.Method = "HEAD"
	w = httptest.NewRecorder()
	writeError(w, r, "b", "k", vfs.ErrNoSuchKey)
	if w.Body.Len() != 0 || w.Code != 404 {
		t.Errorf("HEAD: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	writeError(w, r, "b", "k", vfs.ErrNotModified)
	if w.Body.Len() != 0 || w.Code != 304 || w.Header().Get("Content-Type") != "" {
		t.Errorf("304: %d %v", w.Code, w.Header())
	}
}

func TestEscaping(t *testing.T) {
	for in, want := range map[string]string{
		"plain":         "plain",
		`a<b>&"c"`:      "a&lt;b&gt;&amp;&quot;c&quot;",
		"tab\tnl\ncr\r": "tab&#x9;nl&#xa;cr&#xd;",
		"\x01":          "&#x1;",
		"ä€😀":           "ä€😀",
		"bad\xffutf8":   "bad\ufffdutf8",
	} {
		if got := string(appendEscaped(nil, in)); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
	for in, want := range map[string]string{
		"a/b c+d": "a/b%20c%2Bd", "ä": "%C3%A4", "~": "%7E", "a*-_.b": "a*-_.b", "\xff\n": "%FF%0A",
	} {
		if got := urlEncode(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
		if back, err := url.PathUnescape(urlEncode(in)); err != nil || back != in {
			t.Errorf("%q does not come back: %q", in, back)
		}
	}
}

func TestParseXML(t *testing.T) {
	for in, ok := range map[string]bool{
		`<Delete><Object><Key>k</Key></Object></Delete>`:                        true,
		xml.Header + `<Delete xmlns="x"><Object><Key>k</Key></Object></Delete>`: true,
		`<Delete></Delete> <!-- c --> `:                                         true,
		``:                                                                      false,
		`   `:                                                                   false,
		`<Delete>`:                                                              false,
		`<Other/>`:                                                              false,
		`<Delete/><Delete/>`:                                                    false,
		`<Delete/>x`:                                                            false,
		`<!DOCTYPE d [<!ENTITY x "y">]><Delete><Quiet>&x;</Quiet></Delete>`: false,
	} {
		var doc deleteXML
		if err := parseXML(strings.NewReader(in), xmlBounds{elements: 100}, 0, nil, &doc); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// What exceeds a bound is not decoded to its end.
func TestXMLBounds(t *testing.T) {
	object := "<Object><Key>k</Key></Object>"
	for _, c := range []struct {
		name, in string
		most     int // bytes that may be read of it
		ok       bool
	}{
		{"as many as S3 allows", "<Delete>" + strings.Repeat(object, maxDeleteKeys) + "</Delete>", 1 << 20, true},
		{"one more", "<Delete>" + strings.Repeat(object, maxDeleteKeys+1) + "</Delete>", 1 << 20, false},
		{"a flood of objects", "<Delete>" + strings.Repeat(object, 200_000), 64 << 10, false},
		{"a flood of empty ones", "<Delete>" + strings.Repeat("<Object/>", 900_000), 64 << 10, false},
		{"a flood of others", "<Delete>" + strings.Repeat("<X/>", 900_000), 64 << 10, false},
		{"depth", "<Delete>" + strings.Repeat("<X>", 900_000), 64 << 10, false},
		{"a long text", "<Delete><Object><Key>" + strings.Repeat("k", 4<<20), 64 << 10, false},
		{"a long name", "<Delete><" + strings.Repeat("k", 4<<20), 64 << 10, false},
		{"a long comment", "<Delete><!--" + strings.Repeat("k", 4<<20), 64 << 10, false},
		{"the longest key", "<Delete><Object><Key>" + strings.Repeat("&quot;", 1024) + "</Key></Object></Delete>", 64 << 10, true},
	} {
		var doc deleteXML
		src := strings.NewReader(c.in)
		err := parseXML(src, deleteBounds, 0, nil, &doc)
		if read := len(c.in) - src.Len(); (err == nil) != c.ok || read > c.most {
			t.Errorf("%s: %v after %d bytes", c.name, err, read)
		}
	}
}

func FuzzParseXML(f *testing.F) {
	f.Add([]byte(`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;e&quot;</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var c completeXML
		if parseXML(bytes.NewReader(in), xmlBounds{elements: 100}, 0, nil, &c) == nil {
			for i := range c.Parts {
				_, _ = c.Parts[i].part()
			}
		}
		var d deleteXML
		_ = parseXML(bytes.NewReader(in), xmlBounds{elements: 100}, 0, nil, &d)
		var a aclXML
		_ = parseXML(bytes.NewReader(in), xmlBounds{elements: 100}, 0, nil, &a)
	})
}

func TestTokens(t *testing.T) {
	for _, k := range []string{"a", "a/b\xff", "\x00", strings.Repeat("k", 1024)} {
		if back, err := decodeToken(encodeToken(k)); err != nil || back != k {
			t.Errorf("%q: %q %v", k, back, err)
		}
	}
	for _, bad := range []string{"0abc", "1***", "x"} {
		if _, err := decodeToken(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestTagging(t *testing.T) {
	tags, err := parseTagging("b=2&a=x+y&c=")
	if err != nil || encodeTags(tags) != "a=x+y&b=2&c=" {
		t.Errorf("%v %v", tags, err)
	}
	many := strings.Repeat("k%d=v&", 11)
	for _, bad := range []string{
		"a=1&a=2", "=x", "a=%zz", strings.Repeat("k", 129) + "=v", "k=" + strings.Repeat("v", 257),
		fmt.Sprintf(many, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
	} {
		if _, err := parseTagging(strings.TrimSuffix(bad, "&")); err == nil {
			t.Errorf("%.40q was taken", bad)
		}
	}
}

func TestContentEncoding(t *testing.T) {
	for in, want := range map[string]string{
		"aws-chunked": "", "gzip": "gzip", "gzip,aws-chunked": "gzip", "aws-chunked, gzip": "gzip", "AWS-Chunked": "", "": "", "a, b": "a,b",
	} {
		if got := withoutChunked(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestPolicy(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const good = `{"expiration": "2026-01-01T01:00:00.000Z", "conditions": [{"bucket": "b"}, ["starts-with", "$key", "user/"],
		["eq", "$Content-Type", "text/plain"], ["content-length-range", 1, 10], ["starts-with", "$x-amz-meta-tag", ""]]}`
	p, err := parsePolicy(encode(good), now)
	if err != nil || p.minBytes != 1 || p.maxBytes != 10 {
		t.Fatal(p, err)
	}
	with := func(kv ...string) map[string]string {
		m := map[string]string{"bucket": "b", "key": "user/k", "content-type": "text/plain", "policy": "p", "x-amz-signature": "s", "x-ignore-me": "1"}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		fields map[string]string
		ok     bool
	}{
		"good":        {with(), true},
		"meta":        {with("x-amz-meta-tag", "any"), true},
		"key":         {with("key", "other/k"), false},
		"bucket":      {with("bucket", "c"), false},
		"type":        {with("content-type", "text/html"), false},
		"extra field": {with("acl", "public-read"), false},
	} {
		if err := p.check(c.fields); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for conditions, ok := range map[string]bool{
		`["starts-with", "$key", ""]`:                                  false,
		`["starts-with", "$key", ""], ["starts-with", "$bucket", ""]`:  false,
		`["starts-with", "$key", ""], ["starts-with", "$bucket", "b"]`: true,
		`["starts-with", "$key", ""], ["eq", "$bucket", "b"]`:          true,
	} {
		p, err := parsePolicy(encode(`{"expiration": "2026-01-01T01:00:00.000Z", "conditions": [`+conditions+`]}`), now)
		if err != nil {
			t.Fatal(err)
		}
		err = p.check(map[string]string{"bucket": "b", "key": "k", "policy": "p"})
		if (err == nil) != ok || !ok && toAPI(err).status != 403 {
			t.Errorf("%s: %v", conditions, err)
		}
	}
	for _, bad := range []string{
		"", "{}", `{"expiration": "soon", "conditions": []}`, `{"expiration": "2025-01-01T00:00:00Z", "conditions": []}`,
		`{"expiration": "2026-01-01T01:00:00Z", "conditions": [["like", "$key", "x"]]}`,
		`{"expiration": "2026-01-01T01:00:00Z", "conditions": [["content-length-range", 10, 1]]}`,
		`{"expiration": "2026-01-01T01:00:00Z", "conditions": [["content-length-range", "a", "b"]]}`,
		`{"expiration": "2026-01-01T01:00:00Z", "conditions": [7]}`,
	} {
		if _, err := parsePolicy(encode(bad), now); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if _, err := parsePolicy("***", now); err == nil {
		t.Error("bad base64 was taken")
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add(`{"expiration": "2026-01-01T01:00:00.000Z", "conditions": [{"bucket": "b"}, ["starts-with", "$key", "user/"]]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		p, err := parsePolicy(base64.StdEncoding.EncodeToString([]byte(doc)), time.Unix(0, 0))
		if err == nil && p.check(map[string]string{"unheard-of": "x"}) == nil && len(p.conditions) == 0 {
			t.Fatal("an uncovered field was taken")
		}
	})
}

// anonymously runs a request through the whole door.
func anonymously(s *Server, method, target, host string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	if host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestRefusedByName(t *testing.T) {
	s := New(new(vfs.FS), Config{})
	for request, name := range map[string]string{
		"GET /b?analytics": "GetBucketAnalyticsConfiguration", "DELETE /b?metrics=": "DeleteBucketMetricsConfiguration",
		"PUT /b?lifecycle": "PutBucketLifecycleConfiguration", "DELETE /b?inventory": "DeleteBucketInventoryConfiguration",
		"PUT /b?versions": "ListObjectVersions", "PUT /b?versioning": "PutBucketVersioning",
		"PUT /b?encryption": "PutBucketEncryption", "PUT /b?website": "PutBucketWebsite", "GET /b?session": "CreateSession",
		"DELETE /b?acl": "DeleteBucketAcl", "DELETE /b?uploads": "ListMultipartUploads", "PUT /b?location": "PutBucketLocation",
		"PUT /b/k?retention": "PutObjectRetention", "PUT /b/k?legal-hold": "PutObjectLegalHold",
		"POST /b/k?restore": "RestoreObject", "POST /b/k?select&select-type=2": "SelectObjectContent", "GET /b/k?torrent": "GetObjectTorrent",
		"DELETE /b/k?acl": "DeleteObjectAcl", "PUT /b/k?uploads": "CreateMultipartUpload", "DELETE /b/k?partNumber=1": "UploadPart",
		"HEAD /b/k?acl": "GetObjectAcl", "DELETE /b/k?future": "DELETE ?future",
		"PUT /b/k?future=": "PUT ?future", "PUT /b?future": "PUT ?future", "DELETE /b?future": "DELETE ?future", "POST /b/k?future": "POST ?future",
		// Of the other level, alone and beside what nobody knows.
		"GET /b/k?policy": "GET ?policy", "GET /b?torrent&123": "GET ?torrent", "HEAD /b/k?lifecycle": "", "GET /b/k?123&torrent": "GetObjectTorrent",
	} {
		method, target, _ := strings.Cut(request, " ")
		w := anonymously(s, method, target, "localhost", nil)
		if w.Code != 501 || method != "HEAD" && !strings.Contains(w.Body.String(), "<Message>"+name+" is not implemented.") {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
	for _, request := range []string{"PATCH /b/k", "POST /", "PUT /", "DELETE /", "TRACE /b", "HEAD /", "POST /b/k"} {
		method, target, _ := strings.Cut(request, " ")
		if w := anonymously(s, method, target, "localhost", nil); w.Code != 405 && w.Code != 403 {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
	for request, want := range map[string]string{
		"GET //k": "InvalidBucketName", "GET /b?a=%zz": "InvalidURI", "GET /b/k?versionId=x": "NoSuchVersion", "OPTIONS /b/k": "BadRequest",
		"GET /": "AccessDenied", "GET /b/k?X-Amz-Signature=x": "AuthorizationQueryParametersError",
	} {
		method, target, _ := strings.Cut(request, " ")
		if w := anonymously(s, method, target, "localhost", nil); !strings.Contains(w.Body.String(), "<Code>"+want+"<") {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

// TestSubResourcesAreSigned: what a Version 2 URL is good for, no sub-resource that is
// added to it turns into something else.
func TestSubResourcesAreSigned(t *testing.T) {
	// It asks for the same list, in another form.
	harmless := map[string]bool{"list-type": true}
	v := sigv4.New(sigv4.Config{Now: time.Now})
	expires := fmt.Sprint(time.Now().Add(time.Minute).Unix())
	verify := func(method, signed, query string) error {
		path, _, _ := strings.Cut(signed, "?")
		mac := url.QueryEscape(macOfV2("alice", method+"\n\n\n"+expires+"\n"+signed))
		r := httptest.NewRequest(method, path+"?AWSAccessKeyId=KEYalice&Expires="+expires+"&Signature="+mac+"&"+query, nil)
		sig, err := v.Parse(r, r.URL.Query(), "")
		if err != nil {
			return err
		}
		return v.Verify(sig, secretOf("alice"))
	}
	for _, route := range Routes() {
		path := map[string]string{"SERVICE": "/", "BUCKET": "/bucket", "OBJECT": "/bucket/key"}[route.Level]
		switch {
		case harmless[route.Query]:
		case route.Query == "":
			if err := verify(route.Method, path, ""); err != nil {
				t.Errorf("%s: %v", route.Name, err)
			}
		default:
			if err := verify(route.Method, path+"?"+route.Query, route.Query); err != nil {
				t.Errorf("%s: %v", route.Name, err)
			}
			for _, value := range []string{"", "=", "=1"} {
				if err := verify(route.Method, path, route.Query+value); !errors.Is(err, sigv4.ErrMismatch) {
					t.Errorf("%s with the signature of %s %s: %v", route.Name, route.Method, path, err)
				}
			}
		}
	}
}

func TestRequestLimit(t *testing.T) {
	s := New(new(vfs.FS), Config{MaxRequests: 1})
	other := fair.User("other")
	s.slots.Take(other, 1)
	if w := anonymously(s, "OPTIONS", "/b/k", "", nil); w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("X-Amz-Request-Id") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := anonymously(s, "GET", "/", "", nil); w.Code != 403 {
		t.Errorf("a request that may do nothing waits for a slot: %d", w.Code)
	}
	s.slots.Give(other, 1)
	if w := anonymously(s, "OPTIONS", "/b/k", "localhost", nil); w.Code != 400 || s.slots.InUse() != 0 {
		t.Errorf("%d, %d slots in use", w.Code, s.slots.InUse())
	}
}

func TestHostName(t *testing.T) {
	for in, want := range map[string]string{"a:80": "a", "a": "a", "[::1]:9000": "::1", "[::1]": "::1", "1.2.3.4:5": "1.2.3.4"} {
		if got := hostName(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	s := New(nil, Config{Domains: []string{"s3.example.com", ".Other.Example."}})
	for host, want := range map[string]string{
		"s3.example.com": "", "S3.Example.Com:9000": "", "b.s3.example.com": "b", "a.b.s3.example.com:9000": "a.b", "x.other.example": "x",
		"www.customer.org": "www.customer.org", "localhost:9000": "", "gateway": "", "127.0.0.1:9000": "", "[::1]:9000": "", "s3.example.com.": "",
	} {
		q := &request{Server: s, r: httptest.NewRequest("GET", "/", nil)}
		q.r.Host = host
		if got := q.bucketOfHost(); got != want {
			t.Errorf("%s: %q", host, got)
		}
	}
	for _, domains := range [][]string{{"corp.example", "o.corp.example", "s3.o.corp.example"}, {"s3.o.corp.example", "o.corp.example", "corp.example"}} {
		s := New(nil, Config{Domains: domains})
		for host, want := range map[string]string{
			"corp.example": "", "o.corp.example": "", "O.Corp.Example.:9000": "", "s3.o.corp.example": "",
			"b.corp.example": "b", "b.o.corp.example": "b", "b.s3.o.corp.example": "b", "b.c.o.corp.example": "b.c",
		} {
			q := &request{Server: s, r: httptest.NewRequest("GET", "/", nil)}
			if q.r.Host = host; q.bucketOfHost() != want {
				t.Errorf("%v: %s: %q, want %q", domains, host, q.bucketOfHost(), want)
			}
		}
	}
	for _, c := range []struct {
		bare bool
		want string
	}{{false, ""}, {true, "objects.corp.example"}} {
		q := &request{Server: New(nil, Config{BareHosts: c.bare}), r: httptest.NewRequest("GET", "/", nil)}
		if q.r.Host = "objects.corp.example:9000"; q.bucketOfHost() != c.want {
			t.Errorf("bare hosts %v: %q", c.bare, q.bucketOfHost())
		}
	}
}

func TestUploadChecksum(t *testing.T) {
	for _, c := range []struct {
		alg, kind string
		composite bool
		ok        bool
	}{
		{"", "", false, true}, {"", "COMPOSITE", false, false}, {"CRC32", "", true, true}, {"crc32", "FULL_OBJECT", false, true},
		{"CRC32C", "COMPOSITE", true, true}, {"CRC64NVME", "", false, true}, {"CRC64NVME", "COMPOSITE", false, false},
		{"SHA256", "", true, true}, {"SHA1", "FULL_OBJECT", false, false}, {"MD5", "", true, true}, {"XXHASH3", "FULL_OBJECT", false, false}, {"CRC16", "", false, false}, {"CRC32", "HALF", false, false},
	} {
		h := http.Header{}
		h.Set("X-Amz-Checksum-Algorithm", c.alg)
		h.Set("X-Amz-Checksum-Type", c.kind)
		if _, composite, err := uploadChecksum(h); (err == nil) != c.ok || c.ok && composite != c.composite {
			t.Errorf("%+v: %v %v", c, composite, err)
		}
	}
}

func encode64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func TestAppendTime(t *testing.T) {
	when := time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("x", -3600))
	for i := range 3000 {
		if got, want := string(appendTime(nil, when)), when.UTC().Format(xmlTime); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		when = when.Add(time.Duration(i) * 61 * time.Second * 60).Add(123456789)
	}
	for _, year := range []int{1, 9999, 20000} {
		when := time.Date(year, 1, 2, 3, 4, 5, 6e6, time.UTC)
		if got, want := string(appendTime(nil, when)), when.Format(xmlTime); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
