package s3

import "time"

const (
	// maxDeleteBytes bounds the XML of DeleteObjects: 1000 keys of 1024
	// bytes, escaped at up to six characters each, and their elements.
	maxDeleteBytes = 8 << 20
	// maxCompleteBytes bounds the XML of CompleteMultipartUpload: 10,000
	// parts at about 400 bytes with all checksums.
	maxCompleteBytes = 4 << 20
	// maxConfigBytes bounds every other XML body; the longest is an ACL of
	// 100 grants.
	maxConfigBytes = 64 << 10
	// maxLargeXML bounds the bodies over maxConfigBytes that are held at a
	// time (256 MiB at the worst); others get 503 SlowDown.
	maxLargeXML = 32
	// maxDeleteKeys is S3's limit of one DeleteObjects.
	maxDeleteKeys = 1000
	// maxUserMetaBytes bounds user metadata, names and values together (S3).
	maxUserMetaBytes = 2 << 10
	// maxTags, maxTagKeyRunes and maxTagValueRunes are S3's.
	maxTags          = 10
	maxTagKeyRunes   = 128
	maxTagValueRunes = 256
	// maxFormBytes bounds the fields of a browser form before its file: S3
	// allows 20 KB, policies with many conditions need more.
	maxFormBytes = 64 << 10
	// maxForms bounds the forms whose fields are being read, which nobody is
	// known to have signed: 16 MiB at the most.
	maxForms = 256
	// formFieldsTime bounds how long the fields of a form may take to come: 64
	// KiB on a line of 64 kbit/s.
	formFieldsTime = 10 * time.Second
	// maxPage is the most that any listing returns (S3).
	maxPage = 1000
	// defaultMaxRequests bounds requests in flight unless configured: at
	// SendBufferBytes each they hold 256 MiB at the most.
	defaultMaxRequests = 1024
)
