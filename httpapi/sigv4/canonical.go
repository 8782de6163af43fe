package sigv4

import (
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// canonicalRequest appends what is hashed, with path as the canonical URI.
func (s *Signature) canonicalRequest(b []byte, path string) []byte {
	b = append(b, s.req.Method...)
	b = append(b, '\n')
	b = append(b, path...)
	b = append(b, '\n')
	b = appendQuery(b, s.query)
	b = append(b, '\n')
	for name := range strings.SplitSeq(s.headers, ";") {
		b = append(b, name...)
		b = append(b, ':')
		b = s.appendHeaderValue(b, name)
		b = append(b, '\n')
	}
	b = append(b, '\n')
	b = append(b, s.headers...)
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
	for i, v := range headerValues(r.Header, name) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTrimmed(b, v)
	}
	return b
}

// headerValues is h.Values(name) without a copy of the name, which is in lower case
// where it is signed as clients do.
func headerValues(h http.Header, name string) []string {
	var room [64]byte
	if len(name) > len(room) {
		return h.Values(name)
	}
	upper := true
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z':
			if upper {
				c -= 'a' - 'A'
			}
		case c != '-' && (c < '0' || c > '9'):
			return h.Values(name)
		}
		room[i], upper = c, c == '-'
	}
	return h[string(room[:len(name)])]
}

// appendTrimmed appends the words of v with one space between them. SDKs trim all white
// space at the ends, Unicode's included, but Go's signs what is not ASCII's within as it is.
func appendTrimmed(b []byte, v string) []byte {
	v = strings.TrimSpace(v)
	if strings.IndexByte(v, ' ') < 0 && strings.IndexByte(v, '\t') < 0 {
		return append(b, v...)
	}
	first := true
	for word := range strings.FieldsFuncSeq(v, isSpace) {
		if !first {
			b = append(b, ' ')
		}
		b = append(b, word...)
		first = false
	}
	return b
}

// isSpace reports white space of HTTP (RFC 9110, section 5.6.3).
func isSpace(r rune) bool { return r == ' ' || r == '\t' }

// appendQuery appends the canonical query: all but the signature, sorted by
// encoded name and value.
func appendQuery(b []byte, q url.Values) []byte {
	if len(q) == 0 {
		return b
	}
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
	if isPlain(path) {
		return path
	}
	return string(appendEncoded(make([]byte, 0, len(path)+16), path, true))
}

// isPlain reports whether encodePath has nothing to do.
func isPlain(path string) bool {
	for i := 0; i < len(path); i++ {
		if c := path[i]; !unreserved(c) && c != '/' {
			return false
		}
	}
	return true
}

// unreserved are the characters of RFC 3986, section 2.3.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// appendEncoded is S3's UriEncode: all but unreserved characters (RFC 3986,
// section 2.3) as %XX.
func appendEncoded(b []byte, s string, slash bool) []byte {
	const hexUpper = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		if unreserved(c) || slash && c == '/' {
			b = append(b, c)
		} else {
			b = append(b, '%', hexUpper[c>>4], hexUpper[c&15])
		}
	}
	return b
}
