package sigv4

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestStatedInQuery: one signed text, and the queries that must and must not
// pass for it.
func TestStatedInQuery(t *testing.T) {
	const lines = "\n\n\n1175139620\n"
	sign := func(text, query string) error {
		mac := url.QueryEscape(base64Of(macV2(docSecret, text)))
		r := request("PUT", "http://h/b/k?AWSAccessKeyId="+docKey+"&Expires=1175139620&Signature="+mac+"&"+query, nil)
		if _, header, ok := strings.Cut(query, "#"); ok { // a header beside the query
			r.URL.RawQuery, _, _ = strings.Cut(r.URL.RawQuery, "#")
			name, value, _ := strings.Cut(header, "=")
			r.Header.Set(name, value)
		}
		r.URL.Fragment = ""
		_, err := check(at(docTime.AddDate(-10, 0, 0)), r, docSecret)
		return err
	}
	acl := "PUT" + lines + "x-amz-acl:private\n/b/k"
	list := "PUT" + lines + "x-amz-meta-a:1,2\n/b/k"
	two := "PUT" + lines + "x-amz-acl:private\nx-amz-copy-source:/b/a\n/b/k"
	kind := "PUT\n\ntext/plain\n1175139620\nx-amz-acl:private\n/b/k"
	sub := "PUT" + lines + "/b/k?partNumber=1&uploadId=2"
	for name, c := range map[string]struct {
		text, query string
		want        error
	}{
		"as signed":              {acl, "x-amz-acl=private", nil},
		"in another case":        {acl, "X-Amz-Acl=private", nil},
		"two cases":              {acl, "x-amz-acl=private&X-Amz-Acl=public-read", ErrMalformedQuery},
		"two cases, one value":   {acl, "x-amz-acl=private&X-Amz-Acl=private", ErrMalformedQuery},
		"a list":                 {list, "x-amz-meta-a=1,2", nil},
		"a list in two":          {list, "x-amz-meta-a=1&x-amz-meta-a=2", ErrMalformedQuery},
		"two lines":              {two, "x-amz-acl=private&x-amz-copy-source=/b/a", nil},
		"two lines in a name":    {two, "x-amz-acl:private%0ax-amz-copy-source=/b/a", ErrMalformedQuery},
		"two lines in a value":   {two, "x-amz-acl=private%0ax-amz-copy-source:/b/a", ErrMalformedQuery},
		"a line in the type":     {kind, "content-type=text/plain%0a1175139620%0ax-amz-acl:private", ErrMalformedQuery},
		"a NUL":                  {acl, "x-amz-acl=private%00", ErrMalformedQuery},
		"a space in the name":    {acl, "x-amz-acl%20=private", ErrMalformedQuery},
		"a header beside it":     {acl, "x-amz-acl=private#X-Amz-Acl=public-read", ErrMalformedQuery},
		"an empty header beside": {acl, "x-amz-acl=private#X-Amz-Acl=", ErrMalformedQuery},
		"the same header beside": {acl, "x-amz-acl=private#X-Amz-Acl=private", nil},
		"sub-resources":          {sub, "partNumber=1&uploadId=2", nil},
		"sub-resources in one":   {sub, "partNumber=1%26uploadId=2", ErrMalformedQuery},
		"an & in a value":        {"PUT" + lines + "/b/k?response-content-type=R&D", "response-content-type=R%26D", nil},
	} {
		if err := sign(c.text, c.query); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// In Version 4 all of the query is signed, yet two cases of a name are one header.
	for _, more := range []string{"&x-amz-acl=private&X-Amz-Acl=public-read", "&x-amz-acl=private&x-amz-acl=public-read", "&x-amz-date=20130524T000000Z", "&x-amz-acl=%0a"} {
		if _, err := check(at(docTime), request("GET", docPresigned+more, nil), docSecret); !errors.Is(err, ErrMalformedQuery) {
			t.Errorf("%s: %v", more, err)
		}
	}
}

// TestHeaderV2Resource: the signature of a header is for the sub-resources that it was
// made for, however others are written.
func TestHeaderV2Resource(t *testing.T) {
	cfg := at(docTime)
	cfg.V2 = V2All
	date := docTime.Format(http.TimeFormat)
	for name, c := range map[string]struct {
		signed, query string
		want          error
	}{
		"none":                  {"", "", nil},
		"others":                {"", "?prefix=a%26acl&max-keys=1&max-keys=2", nil},
		"as signed":             {"?partNumber=1&uploadId=2", "?partNumber=1&uploadId=2", nil},
		"without a value":       {"?acl", "?acl=", nil},
		"another one":           {"", "?acl", ErrMismatch},
		"in one value":          {"?partNumber=1&uploadId=2", "?partNumber=1%26uploadId=2", ErrMalformedQuery},
		"in one escaped value":  {"?partNumber=1&uploadId=2", "?partNumber=1%26uploadId%3D2", ErrMalformedQuery},
		"without one":           {"?acl&versionId=null", "?acl=%26versionId=null", ErrMalformedQuery},
		"twice":                 {"?uploadId=1&uploadId=2", "?uploadId=1&uploadId=2", ErrMalformedQuery},
		"an & in a value":       {"?response-content-type=R&D", "?response-content-type=R%26D", nil},
		"an & before no others": {"?response-content-type=R&acls", "?response-content-type=R%26acls", nil},
	} {
		r := request("PUT", "http://h/b/k"+c.query, map[string]string{"Date": date})
		r.Header.Set("Authorization", "AWS "+docKey+":"+base64Of(macV2(docSecret, "PUT\n\n\n"+date+"\n/b/k"+c.signed)))
		if _, err := check(cfg, r, docSecret); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
