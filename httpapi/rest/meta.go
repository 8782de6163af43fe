package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

const (
	// metaPrefix begins the headers of user metadata.
	metaPrefix = "X-Meta-"
	// maxMetaBytes bounds names and values of user metadata together, those that are stored
	// and those that are sent. S3 allows 2 KiB; what it stored must fit, and proxies cut
	// headers at 8 KiB.
	maxMetaBytes = 8 << 10
	// defaultContentType is for content of which neither a client nor a name shows the type.
	defaultContentType = "application/octet-stream"
)

// keptHeaders are stored with an object and sent back unchanged.
var keptHeaders = []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires"}

// metaOf reads what a PUT says about its object.
func metaOf(h http.Header) (vfs.ObjectMeta, error) {
	m := vfs.ObjectMeta{ContentType: h.Get("Content-Type"), Headers: map[string]string{}, User: map[string]string{}}
	for _, name := range keptHeaders {
		if v := strings.Join(h.Values(name), ", "); v != "" {
			m.Headers[name] = v
		}
	}
	total := 0
	for name, values := range h {
		user, ok := strings.CutPrefix(name, metaPrefix)
		if !ok {
			continue
		}
		if user == "" {
			return m, fmt.Errorf("%w: header %s names no metadata", apierr.ErrBadRequest, metaPrefix)
		}
		v := strings.Join(values, ",")
		m.User[strings.ToLower(user)] = v
		if total += len(user) + len(v); total > maxMetaBytes {
			return m, fmt.Errorf("%w: more than %d bytes of %s*", apierr.ErrHeadersTooLarge, maxMetaBytes, metaPrefix)
		}
	}
	return m, nil
}

// setObjectHeaders describes an object.
func (s *Server) setObjectHeaders(h http.Header, info *vfs.ObjectInfo) {
	h.Set("Accept-Ranges", "bytes")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Etag", quote(info.ETag))
	h.Set("Last-Modified", info.Modified.UTC().Format(http.TimeFormat))
	if h.Set("Content-Type", info.Meta.ContentType); info.Meta.ContentType == "" {
		h.Set("Content-Type", defaultContentType)
	}
	for _, name := range keptHeaders {
		if v := info.Meta.Headers[name]; v != "" {
			h.Set(name, v)
		}
	}
	if !s.active {
		sandbox(h)
	}
	missing := info.ShowUser(maxMetaBytes, func(name, value string) bool {
		// Attributes that a POSIX program set may be any bytes.
		if !headerName(name) || !headerValue(value) {
			return false
		}
		h.Set(metaPrefix+name, value)
		return true
	})
	if missing > 0 {
		h.Set("X-Missing-Meta", strconv.Itoa(missing))
	}
}

func quote(tag vfs.ETag) string { return `"` + string(tag) + `"` }

// headerName reports whether s is a token (RFC 9110, section 5.6.2).
func headerName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// headerValue reports whether s is a field value (RFC 9110, section 5.5).
func headerValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// dropObjectHeaders takes off what describes an object that is not sent, and that
// no error has.
func dropObjectHeaders(h http.Header) {
	for name := range h {
		switch {
		case name == "Accept-Ranges", name == "Content-Range", name == "X-Missing-Meta", strings.HasPrefix(name, metaPrefix):
			delete(h, name)
		}
	}
}
