package s3

import (
	"encoding/xml"
	"net/http"
	"strings"
	"testing"

	"ogw/httpapi"
)

func corsDoc(rules string) []byte {
	return []byte("<CORSConfiguration>" + rules + "</CORSConfiguration>")
}

// elements writes a rule of name:value pairs.
func elements(pairs ...string) string {
	out := ""
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, ":")
		out += "<" + name + ">" + value + "</" + name + ">"
	}
	return "<CORSRule>" + out + "</CORSRule>"
}

// TestBucketCORS: rules are kept, and refused in S3's words.
func TestBucketCORS(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "cors")
	good := elements("ID:one", "AllowedOrigin:https://*.example.com", "AllowedMethod:PUT", "AllowedMethod:GET", "AllowedHeader:x-amz-*", "ExposeHeader:ETag", "MaxAgeSeconds:3000") +
		elements("AllowedOrigin:*", "AllowedMethod:GET")
	d.wantRaw("alice", "PUT", "/cors?cors", corsDoc(good), nil, 200, "")
	d.wantRaw("alice", "GET", "/cors?cors", nil, nil, 200, `<CORSConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><CORSRule><ID>one</ID><AllowedHeader>x-amz-*</AllowedHeader><AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod><AllowedOrigin>https://*.example.com</AllowedOrigin><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>3000</MaxAgeSeconds></CORSRule><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>`)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d.wantRaw("bob", method, "/cors?cors", corsDoc(good), nil, 403, "AccessDenied")
		d.wantRaw("", method, "/cors?cors", corsDoc(good), nil, 403, "AccessDenied")
	}
	for _, c := range []struct{ rules, says string }{
		{"", "<Code>MalformedXML</Code>"},
		{"<CORSRule>", "<Code>MalformedXML</Code>"},
		{elements("AllowedOrigin:*"), "<Code>MalformedXML</Code>"},
		{elements("AllowedMethod:GET"), "<Code>MalformedXML</Code>"},
		{elements("AllowedOrigin:*", "AllowedMethod:GET", "MaxAgeSeconds:-1"), "<Code>MalformedXML</Code>"},
		{elements("AllowedOrigin:*", "AllowedMethod:GET", "ID:"+strings.Repeat("x", 256)), "<Code>MalformedXML</Code>"},
		{elements("AllowedOrigin:*", "AllowedMethod:PATCH"), "<Code>InvalidRequest</Code><Message>Found unsupported HTTP method in CORS config. Unsupported method is PATCH</Message>"},
		{elements("AllowedOrigin:*", "AllowedMethod:get"), "Unsupported method is get"},
		{elements("AllowedOrigin:http://*.*", "AllowedMethod:GET"), "<Message>AllowedOrigin &quot;http://*.*&quot; can not have more than one wildcard.</Message>"},
		{elements("AllowedOrigin:*", "AllowedMethod:GET", "AllowedHeader:*x*"), "<Message>AllowedHeader &quot;*x*&quot; can not have more than one wildcard.</Message>"},
		{elements("AllowedOrigin:*", "AllowedMethod:GET", "AllowedHeader:x y"), "<Message>AllowedHeader &quot;x y&quot; contains invalid character.</Message>"},
		{elements("AllowedOrigin:*", "AllowedMethod:GET", "ExposeHeader:x-*"), "ExposeHeader &quot;x-*&quot; contains wildcard. We currently do not support wildcard for ExposeHeader."},
		{elements("AllowedOrigin:*", "AllowedMethod:GET", "ExposeHeader:a&#13;&#10;b: c"), "contains invalid character"},
		{strings.Repeat(elements("AllowedOrigin:*", "AllowedMethod:GET"), 101), "<Message>The number of CORS rules should not exceed allowed limit of 100 rules.</Message>"},
		{elements("AllowedOrigin:" + strings.Repeat("x", 70000)), "<Code>MaxMessageLengthExceeded</Code>"},
	} {
		d.wantRaw("alice", "PUT", "/cors?cors", corsDoc(c.rules), nil, 400, c.says)
	}
	d.wantRaw("alice", "PUT", "/cors?cors", corsDoc(strings.Repeat(elements("AllowedOrigin:*", "AllowedMethod:GET", "AllowedHeader:*"), 100)), nil, 200, "")
	d.wantRaw("alice", "DELETE", "/cors?cors", nil, nil, 204, "")
	d.wantRaw("alice", "GET", "/cors?cors", nil, nil, 404, "NoSuchCORSConfiguration")
}

// What pages of other origins are answered, in preflight and on each answer.
func TestCORSAnswers(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "cors")
	d.bucket("alice", "plain")
	d.wantRaw("alice", "PUT", "/cors/k", []byte("v"), map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
	d.wantRaw("alice", "PUT", "/cors?cors", corsDoc(
		elements("AllowedOrigin:https://*.example.com", "AllowedMethod:PUT", "AllowedMethod:GET", "AllowedHeader:x-amz-*", "AllowedHeader:Content-Type", "ExposeHeader:ETag", "ExposeHeader:x-amz-id-2", "MaxAgeSeconds:3000")+
			elements("AllowedOrigin:*", "AllowedMethod:GET")+elements("AllowedOrigin:start*end", "AllowedMethod:DELETE")), nil, 200, "")
	const page, other = "https://a.example.com", "http://other"
	many := strings.Repeat("x-amz-a, ", httpapi.MaxAskedHeaders-1) + "x-amz-a"
	for _, c := range []struct {
		method, target, origin, asks, headers string
		status                                int
		says, allowed, methods                string
	}{
		{"OPTIONS", "/cors/k", page, "PUT", "", 200, "", page, "PUT, GET"},
		{"OPTIONS", "/cors", page, "GET", "", 200, "", page, "PUT, GET"},
		{"OPTIONS", "/cors/new?uploads&X-Amz-Signature=x&X-Amz-Algorithm=y", page, "PUT", "X-Amz-Date, content-type", 200, "", page, "PUT, GET"},
		{"OPTIONS", "/cors/k", page, "PUT", "authorization", 403, "<Code>AccessForbidden</Code><Message>CORSResponse: This CORS request is not allowed.", "", ""},
		{"OPTIONS", "/cors/k", page, "PUT", many, 200, "", page, "PUT, GET"},
		{"OPTIONS", "/cors/k", page, "PUT", many + ", x-amz-a", 400, "names more than 100 headers", "", ""},
		{"OPTIONS", "/cors/k", page, "DELETE", "", 403, "<Method>DELETE</Method><ResourceType>OBJECT</ResourceType>", "", ""},
		{"OPTIONS", "/cors/k", "startend", "DELETE", "", 200, "", "startend", "DELETE"},
		{"OPTIONS", "/cors/k", "starend", "DELETE", "", 403, "AccessForbidden", "", ""},
		{"OPTIONS", "/cors/k", other, "GET", "", 200, "", "*", "GET"},
		{"OPTIONS", "/cors/k", other, "PUT", "", 403, "AccessForbidden", "", ""},
		{"OPTIONS", "/cors/k", page, "PATCH", "", 400, "Invalid Access-Control-Request-Method: PATCH", "", ""},
		{"OPTIONS", "/cors/k", page, "PUT", "x y", 400, "Access-Control-Request-Headers &quot;x y&quot; contains invalid character.", "", ""},
		{"OPTIONS", "/plain/k", page, "PUT", "", 403, "CORSResponse: CORS is not enabled for this bucket.", "", ""},
		{"OPTIONS", "/nowhere/k", page, "PUT", "", 403, "CORSResponse: Bucket not found", "", ""},
		{"GET", "/cors/k", page, "", "", 200, "v", page, "PUT, GET"},
		{"GET", "/cors/k", other, "", "", 200, "v", "*", "GET"},
		{"GET", "/cors/none", page, "", "", 403, "AccessDenied", page, "PUT, GET"},
		{"PUT", "/cors/k", page, "", "", 403, "AccessDenied", page, "PUT, GET"},
		{"PUT", "/cors/k", other, "", "", 403, "AccessDenied", "", ""},
		{"GET", "/cors/k?X-Amz-Signature=x", page, "", "", 400, "AuthorizationQueryParametersError", page, "PUT, GET"},
		{"POST", "/cors/k", page, "", "", 405, "MethodNotAllowed", "", ""},
		{"GET", "/cors/k", "", "", "", 200, "v", "", ""},
		{"GET", "/plain/k", page, "", "", 403, "AccessDenied", "", ""},
	} {
		header := map[string]string{}
		for name, v := range map[string]string{"Origin": c.origin, "Access-Control-Request-Method": c.asks, "Access-Control-Request-Headers": c.headers} {
			if v != "" {
				header[name] = v
			}
		}
		res, _ := d.wantRaw("", c.method, c.target, nil, header, c.status, c.says)
		what := c.method + " " + c.target + " from " + c.origin
		for name, want := range map[string]string{"Access-Control-Allow-Origin": c.allowed, "Access-Control-Allow-Methods": c.methods} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", what, name, got, want)
			}
		}
		if got, want := res.Header.Get("Access-Control-Allow-Credentials") != "", c.allowed != "" && c.allowed != "*"; got != want {
			t.Errorf("%s: credentials %v", what, got)
		}
		if got, want := res.Header.Get("Vary") == corsVary, c.allowed != "" || c.origin != "" && strings.HasPrefix(c.target, "/cors") && c.method != "OPTIONS"; got != want {
			t.Errorf("%s: Vary %q", what, res.Header.Get("Vary"))
		}
		if c.allowed == page && (res.Header.Get("Access-Control-Max-Age") != "3000" || res.Header.Get("Access-Control-Expose-Headers") != "ETag, x-amz-id-2") {
			t.Errorf("%s: %v", what, res.Header)
		}
		if got := res.Header.Get("Access-Control-Allow-Headers"); c.status == 200 && got != strings.ToLower(c.headers) {
			t.Errorf("%s: headers %q", what, got)
		}
	}
	r, err := http.NewRequest("OPTIONS", d.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, _ := d.do(r); res.StatusCode != 405 {
		t.Errorf("OPTIONS /: %d", res.StatusCode)
	}
}

func FuzzCORSMatch(f *testing.F) {
	f.Add("https://*.example.com", "https://a.example.com")
	f.Add("ab*ba", "aba")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if strings.Count(pattern, "*") > 1 {
			return
		}
		before, after, star := strings.Cut(pattern, "*")
		want := pattern == s
		for i := 0; star && i <= len(s); i++ {
			want = want || s[:i] == before && strings.HasSuffix(s[i:], after)
		}
		if got := matchesStar(pattern, s); got != want {
			t.Errorf("%q %q: %v", pattern, s, got)
		}
	})
}

func FuzzCORSRules(f *testing.F) {
	f.Add(string(corsDoc(elements("AllowedOrigin:*", "AllowedMethod:GET", "ExposeHeader:ETag"))))
	f.Fuzz(func(t *testing.T, doc string) {
		var c corsConfig
		if parseXML(strings.NewReader(doc), corsBounds, 0, nil, &c) != nil || c.check() != nil {
			return
		}
		for _, r := range c.Rules {
			for _, v := range append(append(r.Expose, r.Methods...), r.Origins...) {
				if strings.ContainsAny(v, "\r\n") {
					t.Fatalf("a header could be split by %q", v)
				}
			}
		}
		if _, err := xml.Marshal(c); err != nil {
			t.Fatal(err)
		}
	})
}
