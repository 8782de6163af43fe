package httpapi

import (
	"errors"
	"strconv"
	"strings"
)

// ErrBadRange: no byte of the representation is in the range; answer 416.
var ErrBadRange = errors.New("range not satisfiable")

// Range is a span of a representation, in bytes.
type Range struct {
	Off int64
	Len int64
}

// ContentRange returns the value of the Content-Range header.
func (r Range) ContentRange(size int64) string {
	b := make([]byte, 0, 64)
	b = append(b, "bytes "...)
	b = strconv.AppendInt(b, r.Off, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, r.Off+r.Len-1, 10)
	b = append(b, '/')
	return string(strconv.AppendInt(b, size, 10))
}

// ParseRange reads a Range header (RFC 9110, section 14.2) against a
// representation of size bytes. partial is false when the whole is to be
// sent: no header, another unit, bad syntax, or several ranges (which
// S3 does not serve either). It returns ErrBadRange.
func ParseRange(header string, size int64) (r Range, partial bool, err error) {
	whole := Range{0, size}
	spec, ok := strings.CutPrefix(strings.TrimSpace(header), "bytes=")
	if !ok || strings.Contains(spec, ",") {
		return whole, false, nil
	}
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	if !ok {
		return whole, false, nil
	}
	if first == "" {
		n, ok := parseOffset(last)
		if !ok {
			return whole, false, nil
		}
		if n == 0 || size == 0 {
			return Range{}, false, ErrBadRange
		}
		n = min(n, size)
		return Range{size - n, n}, true, nil
	}
	off, ok := parseOffset(first)
	if !ok {
		return whole, false, nil
	}
	end := size - 1
	if last != "" {
		n, ok := parseOffset(last)
		if !ok || n < off {
			return whole, false, nil
		}
		end = min(n, end)
	}
	if off >= size {
		return Range{}, false, ErrBadRange
	}
	return Range{off, end - off + 1}, true, nil
}

// parseOffset takes digits only; a number beyond 63 bits saturates, so that
// "bytes=0-99999999999999999999" is served.
func parseOffset(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 1<<63 - 1, true
	}
	return n, true
}
