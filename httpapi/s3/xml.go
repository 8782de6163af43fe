package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"ogw/vfs"
)

const (
	xmlNamespace = "http://s3.amazonaws.com/doc/2006-03-01/"
	// xmlTime is how S3 writes times.
	xmlTime = "2006-01-02T15:04:05.000Z"
	// quotationMark is how S3 writes one in text.
	quotationMark = "&quot;"
)

// xmlWriter builds a response. Listings are written a thousand entries at a
// time, which reflection would make the slowest part of.
type xmlWriter struct{ b []byte }

// start begins the document with its root element.
func (x *xmlWriter) start(root, namespace string) {
	x.b = append(x.b, xml.Header...)
	x.b = append(x.b, '<')
	x.b = append(x.b, root...)
	if namespace != "" {
		x.b = append(x.b, ` xmlns="`...)
		x.b = append(x.b, namespace...)
		x.b = append(x.b, '"')
	}
	x.b = append(x.b, '>')
}

func (x *xmlWriter) open(name string) {
	x.b = append(x.b, '<')
	x.b = append(x.b, name...)
	x.b = append(x.b, '>')
}

func (x *xmlWriter) end(name string) {
	x.b = append(x.b, '<', '/')
	x.b = append(x.b, name...)
	x.b = append(x.b, '>')
}

// str writes an element with text.
func (x *xmlWriter) str(name, value string) {
	x.open(name)
	x.b = appendEscaped(x.b, value)
	x.end(name)
}

// etag writes the element of an ETag, which is quoted.
func (x *xmlWriter) etag(e vfs.ETag) {
	x.open("ETag")
	x.b = append(x.b, quotationMark...)
	x.b = appendEscaped(x.b, string(e))
	x.b = append(x.b, quotationMark...)
	x.end("ETag")
}

// opt writes an element unless value is empty.
func (x *xmlWriter) opt(name, value string) {
	if value != "" {
		x.str(name, value)
	}
}

func (x *xmlWriter) int(name string, n int64) {
	x.open(name)
	x.b = strconv.AppendInt(x.b, n, 10)
	x.end(name)
}

func (x *xmlWriter) bool(name string, v bool) {
	x.open(name)
	x.b = strconv.AppendBool(x.b, v)
	x.end(name)
}

func (x *xmlWriter) time(name string, t time.Time) {
	x.open(name)
	x.b = appendTime(x.b, t)
	x.end(name)
}

// appendTime appends t in the form xmlTime; a listing has a thousand of them.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, xmlTime)
	}
	hour, minute, second := t.Clock()
	b = appendTwo(appendTwo(b, year/100), year%100)
	b = appendTwo(append(b, '-'), int(month))
	b = appendTwo(append(b, '-'), day)
	b = appendTwo(append(b, 'T'), hour)
	b = appendTwo(append(b, ':'), minute)
	b = appendTwo(append(b, ':'), second)
	ms := t.Nanosecond() / 1e6
	b = append(b, '.', byte('0'+ms/100))
	return append(appendTwo(b, ms%100), 'Z')
}

func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// send writes the document as the response.
func (x *xmlWriter) send(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", "application/xml")
	h.Set("Content-Length", strconv.Itoa(len(x.b)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(x.b) // a client that left has no more use for it
	}
}

// xmlPlain marks the bytes that need no escape.
var xmlPlain = func() (t [256]bool) {
	for c := range utf8.RuneSelf {
		t[c] = c >= ' ' && c != '&' && c != '<' && c != '>' && c != '"'
	}
	return t
}()

// appendEscaped escapes text as S3 does: control characters as references,
// although XML 1.0 forbids most of them (clients ask for encoding-type=url).
func appendEscaped(b []byte, s string) []byte {
	plain := 0 // the beginning that stands for itself: most often all of s
	for plain < len(s) && xmlPlain[s[plain]] {
		plain++
	}
	b, s = append(b, s[:plain]...), s[plain:]
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		switch {
		case c == '&':
			b = append(b, "&amp;"...)
		case c == '<':
			b = append(b, "&lt;"...)
		case c == '>':
			b = append(b, "&gt;"...)
		case c == '"':
			b = append(b, quotationMark...)
		case c < ' ':
			b = append(b, "&#x"...)
			b = strconv.AppendUint(b, uint64(c), 16)
			b = append(b, ';')
		default:
			b = append(b, c)
		}
		i++
	}
	return b
}

// urlEncode encodes a key for encoding-type=url.
func urlEncode(s string) string {
	const hexUpper = "0123456789ABCDEF"
	clean := true
	for i := 0; clean && i < len(s); i++ {
		clean = urlSafe(s[i])
	}
	if clean {
		return s
	}
	b := make([]byte, 0, len(s)+32)
	for i := 0; i < len(s); i++ {
		if c := s[i]; urlSafe(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hexUpper[c>>4], hexUpper[c&15])
		}
	}
	return string(b)
}

func urlSafe(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '/' || c == '*'
}
