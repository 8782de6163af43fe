package s3

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"ogw/vfs"
)

const (
	defaultContentType = "binary/octet-stream" // S3's own
	storageClassHeader = "X-Amz-Storage-Class"
	redirectHeader     = "X-Amz-Website-Redirect-Location"
	userMetaPrefix     = "X-Amz-Meta-"
	standardClass      = "STANDARD"
)

// storedHeaders are kept with the object and returned as they came.
var storedHeaders = []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires", redirectHeader, storageClassHeader}

// refusedHeaders ask for what this door does not do; to ignore them would
// store plain what a client wants encrypted, or deletable what it wants kept.
var refusedHeaders = []string{
	"X-Amz-Server-Side-Encryption", "X-Amz-Copy-Source-Server-Side-Encryption", "X-Amz-Object-Lock", "X-Amz-Bucket-Object-Lock-Enabled",
	"X-Amz-Write-Offset-Bytes", "X-Amz-Rename-Source",
}

// asksNothing are values of such headers that ask for what is so anyway.
var asksNothing = map[string]string{
	"X-Amz-Bucket-Object-Lock-Enabled":                "false",
	"X-Amz-Server-Side-Encryption-Bucket-Key-Enabled": "false",
	"X-Amz-Object-Lock-Legal-Hold":                    "OFF",
}

func refuseHeaders(h http.Header) error {
	for name, values := range h {
		for _, p := range refusedHeaders {
			if strings.HasPrefix(name, p) {
				if v := strings.Join(values, ","); v == "" || strings.EqualFold(v, asksNothing[name]) {
					break
				}
				return newError(codeNotImplemented).with("Header", strings.ToLower(name))
			}
		}
	}
	return nil
}

// requestMeta reads the metadata of a new object from headers, tags and ACL
// included.
func (q *request) requestMeta(h http.Header) (vfs.ObjectMeta, error) {
	m := vfs.ObjectMeta{ContentType: h.Get("Content-Type"), Headers: map[string]string{}, User: map[string]string{}}
	if err := refuseHeaders(h); err != nil {
		return m, err
	}
	if m.ContentType == "" {
		m.ContentType = defaultContentType
	}
	for _, name := range storedHeaders {
		if v := strings.Join(h.Values(name), ","); v != "" {
			m.Headers[name] = v
		}
	}
	if v := withoutChunked(m.Headers["Content-Encoding"]); v != "" {
		m.Headers["Content-Encoding"] = v
	} else {
		delete(m.Headers, "Content-Encoding")
	}
	switch class := m.Headers[storageClassHeader]; {
	case class == standardClass:
		delete(m.Headers, storageClassHeader)
	case class != "" && !slices.Contains(storageClasses, class):
		return m, newError(codeInvalidStorageClass).with("StorageClassRequested", class)
	}
	if err := checkRedirect(m.Headers[redirectHeader]); err != nil {
		return m, err
	}
	total := 0
	for name, values := range h {
		if user, ok := strings.CutPrefix(name, userMetaPrefix); ok && user != "" {
			v := strings.Join(values, ",")
			m.User[strings.ToLower(user)] = v
			total += len(user) + len(v)
		}
	}
	if total > maxUserMetaBytes {
		return m, newError(codeMetadataTooLarge).with("Size", strconv.Itoa(total)).with("MaxSizeAllowed", strconv.Itoa(maxUserMetaBytes))
	}
	if err := setTagging(&m, h.Get(taggingHeader)); err != nil {
		return m, err
	}
	var err error
	m.Grants, err = q.headerACL(h, q.objectTarget())
	return m, err
}

// storageClasses are labels here, besides STANDARD, which is that of all others:
// an object is kept, and can be read, in the same way whatever it is called.
var storageClasses = []string{"REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER", "DEEP_ARCHIVE",
	"OUTPOSTS", "GLACIER_IR", "SNOW", "EXPRESS_ONEZONE", "FSX_OPENZFS", "FSX_ONTAP"}

// archived reports whether clients take an object of that class for one that must be
// restored before it can be read, and refuse by themselves to read it. None must, so it
// is shown as STANDARD.
func archived(class string) bool { return class == "GLACIER" || class == "DEEP_ARCHIVE" }

// storageClass is what listings show.
func storageClass(m *vfs.ObjectMeta) string {
	if class := m.Headers[storageClassHeader]; class != "" && !archived(class) {
		return class
	}
	return standardClass
}

// checkRedirect checks a website redirect location.
func checkRedirect(v string) error {
	switch {
	case v == "", strings.HasPrefix(v, "/"), strings.HasPrefix(v, "http://"), strings.HasPrefix(v, "https://"):
	default:
		return newError(codeInvalidRedirect)
	}
	if len(v) > maxRedirectBytes {
		return newError(codeInvalidRedirect).withMessage("The length of website redirect location cannot exceed 2,048 characters.")
	}
	return nil
}

// setTagging checks tags in URL form and keeps them.
func setTagging(m *vfs.ObjectMeta, v string) error {
	if v == "" {
		return nil
	}
	tags, err := parseTagging(v)
	if err != nil {
		return err
	}
	if len(tags) > 0 {
		m.SetTags(encodeTags(tags))
	}
	return nil
}

// withoutChunked drops aws-chunked, which describes the transfer, from a
// Content-Encoding.
func withoutChunked(v string) string {
	var keep []string
	for _, e := range strings.Split(v, ",") {
		if e = strings.TrimSpace(e); e != "" && !strings.EqualFold(e, "aws-chunked") {
			keep = append(keep, e)
		}
	}
	return strings.Join(keep, ",")
}

// setMeta puts an object's metadata in the response headers.
func (q *request) setMeta(h http.Header, info *vfs.ObjectInfo) {
	m := &info.Meta
	contentType := m.ContentType
	if contentType == "" {
		contentType = defaultContentType
	}
	h["Content-Type"] = q.one(contentType)
	if len(m.Headers) > 0 {
		for _, name := range storedHeaders {
			if v, ok := m.Headers[name]; ok && !(name == storageClassHeader && archived(v)) {
				h.Set(name, v)
			}
		}
	}
	if v := m.Tags(); v != "" {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(strings.Count(v, "&")+1))
	}
	missing := info.ShowUser(2*maxUserMetaBytes, func(name, v string) bool {
		// Extended attributes set through a mount may hold what no header can.
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		if !httpguts.ValidHeaderFieldValue(v) || !isASCII(v) {
			if !utf8.ValidString(v) {
				return false
			}
			v = mime.QEncoding.Encode("UTF-8", v)
		}
		// Written in lower case, as S3 does: boto3 keeps the case that it sees.
		h[strings.ToLower(userMetaPrefix)+name] = []string{v}
		return true
	})
	if missing > 0 {
		h.Set("X-Amz-Missing-Meta", strconv.Itoa(missing))
	}
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// setETag writes the header in S3's own spelling, which some clients match.
func setETag(h http.Header, e vfs.ETag) { h["ETag"] = []string{quoteETag(e)} }

func quoteETag(e vfs.ETag) string { return `"` + string(e) + `"` }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
