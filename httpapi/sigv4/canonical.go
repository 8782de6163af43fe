package sigv4

import (
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// canonicalRequest builds what is hashed, with path as the canonical URI.
func (s *Signature) canonicalRequest(path string) []byte {
	b := make([]byte, 0, 1024)
	b = append(b, s.req.Method...)
	b = append(b, '\n')
	b = append(b, path...)
	b = append(b, '\n')
	b = appendQuery(b, s.query)
	b = append(b, '\n')
	for _, name := range s.headers {
		b = append(b, name...)
		b = append(b, ':')
		b = s.appendHeaderValue(b, name)
		b = append(b, '\n')
	}
	b = append(b, '\n')
	b = append(b, strings.Join(s.headers, ";")...)
	b = append(b, '\n')
	return append(b, s.Payload.canonical...)
}

// appendHeaderValue appends all values of a header, trimmed, runs of spaces
// as one. net/http keeps some headers elsewhere than in the map.
func (s *Signature) appendHeaderValue(b []byte, name string) []byte {
	r := s.req
	switch name {
	case "host":
		return append(b, r.Host...)
	case "content-length":
		if r.ContentLength < 0 {
			return b
		}
		return strconv.AppendInt(b, r.ContentLength, 10)
	case "transfer-encoding":
		return append(b, strings.Join(r.TransferEncoding, ",")...)
	}
	for i, v := range r.Header.Values(name) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, strings.Join(strings.Fields(v), " ")...)
	}
	return b
}

// appendQuery appends the canonical query: all but the signature, sorted by
// encoded name and value.
func appendQuery(b []byte, q url.Values) []byte {
	pairs := make([]string, 0, len(q))
	for name, values := range q {
		if name == "X-Amz-Signature" {
			continue
		}
		n := string(appendEncoded(nil, name, false))
		for _, v := range values {
			pairs = append(pairs, string(appendEncoded([]byte(n+"="), v, false)))
		}
	}
	sort.Slice(pairs, func(i, j int) bool { return lessPair(pairs[i], pairs[j]) })
	for i, p := range pairs {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(b, p...)
	}
	return b
}

// lessPair compares by name, then by value: "a-b=" sorts after "a=", though
// '-' is less than '='.
func lessPair(x, y string) bool {
	xn, xv, _ := strings.Cut(x, "=")
	yn, yv, _ := strings.Cut(y, "=")
	if xn != yn {
		return xn < yn
	}
	return xv < yv
}

// encodePath encodes a decoded path as S3 does: once, slashes kept.
func encodePath(path string) string {
	if path == "" {
		return "/"
	}
	return string(appendEncoded(make([]byte, 0, len(path)+16), path, true))
}

// appendEncoded is S3's UriEncode: all but unreserved characters (RFC 3986,
// section 2.3) as %XX.
func appendEncoded(b []byte, s string, slash bool) []byte {
	const hexUpper = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', slash && c == '/':
			b = append(b, c)
		default:
			b = append(b, '%', hexUpper[c>>4], hexUpper[c&15])
		}
	}
	return b
}
