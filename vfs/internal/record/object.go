package record

// ObjectMeta is what an object carries besides its bytes.
type ObjectMeta struct {
	ContentType string // as sent; derived from the name for POSIX files if ""
	// Headers are further system metadata under canonical HTTP names:
	// Cache-Control, Content-Disposition, Content-Encoding,
	// Content-Language, Expires, X-Amz-Website-Redirect-Location,
	// X-Amz-Storage-Class …; the store does not look inside.
	Headers map[string]string
	// User is user metadata, NAME to value; NAME is lower case. It is the
	// extended attribute user.NAME.
	User map[string]string
	// Grants are what the owner gave to others. A copy never takes its
	// source's.
	Grants Grants
}

// tagsHeader is the one of the Headers under which tags are stored: a name of the
// stored form, which doors do not see (Tags).
const tagsHeader = "X-Amz-Tagging"

// Tags returns the tags in the form of a URL's query, "" if there are none.
func (m *ObjectMeta) Tags() string { return m.Headers[tagsHeader] }

// SetTags replaces the tags.
func (m *ObjectMeta) SetTags(query string) { m.Headers = withTags(m.Headers, query) }

// Tags returns the tags in the form of a URL's query, "" if there are none.
func (o *Object) Tags() string { return o.Headers[tagsHeader] }

// SetTags replaces the tags.
func (o *Object) SetTags(query string) { o.Headers = withTags(o.Headers, query) }

// withTags returns headers, which it changes, with other tags.
func withTags(headers map[string]string, query string) map[string]string {
	if query == "" {
		delete(headers, tagsHeader)
		return headers
	}
	if headers == nil {
		headers = make(map[string]string)
	}
	headers[tagsHeader] = query
	return headers
}

// ObjectPart is one part of a completed multipart object.
type ObjectPart struct {
	Number   int
	Size     int64
	Checksum []byte // in the object's checksum algorithm, if any
}
