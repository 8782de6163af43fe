package record

// ObjectMeta is what an object carries besides its bytes.
type ObjectMeta struct {
	ContentType string // as sent; derived from the name for POSIX files if ""
	// Headers are further system metadata under canonical HTTP names:
	// Cache-Control, Content-Disposition, Content-Encoding,
	// Content-Language, Expires, X-Amz-Website-Redirect-Location,
	// X-Amz-Storage-Class, X-Amz-Tagging …; the store does not look inside.
	Headers map[string]string
	// User is user metadata, NAME to value; NAME is lower case. It is the
	// extended attribute user.NAME.
	User map[string]string
	// Grants are what the owner gave to others. A copy never takes its
	// source's.
	Grants Grants
}

// ObjectPart is one part of a completed multipart object.
type ObjectPart struct {
	Number   int
	Size     int64
	Checksum []byte // in the object's checksum algorithm, if any
}
