package s3

import (
	"math"
	"time"
)

const (
	// maxToldKeys of each outcome of a DeleteObjects are named in the line of the audit
	// that says how it ended: enough to see what it was about.
	maxToldKeys = 20
	// maxConfigBytes bounds the XML bodies that need no budget: all but
	// those of DeleteObjects and CompleteMultipartUpload.
	maxConfigBytes = 64 << 10
	// maxDocumentBytes bounds the larger ones that are decoded at a time, and
	// the listings that are being sent; others get 503 SlowDown.
	maxDocumentBytes = 48 << 20
	// maxPutBytes bounds what one PUT or POST brings (S3).
	maxPutBytes = 5 << 30
	// maxReadSumBytes bounds the objects of which GET and HEAD compute a checksum that
	// is not stored, for which all is read before the answer begins: one read.
	maxReadSumBytes = 1 << 20
	// maxAskedSumBytes bounds those of which GetObjectAttributes does: clients wait a
	// minute for an answer, in which slow stores read as much.
	maxAskedSumBytes = 1 << 30
	// maxParts and minPartBytes are S3's: every part but the last has 5 MiB.
	maxParts     = 10_000
	minPartBytes = 5 << 20
	// maxDeleteKeys is S3's limit of one DeleteObjects.
	maxDeleteKeys = 1000
	// maxUserMetaBytes bounds user metadata, names and values together (S3).
	maxUserMetaBytes = 2 << 10
	// maxRedirectBytes bounds a website redirect location (S3).
	maxRedirectBytes = 2 << 10
	// maxCORSRules and maxCORSIDBytes are S3's.
	maxCORSRules   = 100
	maxCORSIDBytes = 255
	// maxBucketTags is S3's limit for a bucket.
	maxBucketTags = 50
	// maxTags, maxTagKeyRunes and maxTagValueRunes are S3's.
	maxTags          = 10
	maxTagKeyRunes   = 128
	maxTagValueRunes = 256
	// maxFormBytes bounds the fields of a browser form before its file: S3
	// allows 20 KB, policies with many conditions need more.
	maxFormBytes = 64 << 10
	// maxFormHeadBytes bounds all that stands before the file, with the headers
	// of the fields.
	maxFormHeadBytes = 2 * maxFormBytes
	noFormLimit      = math.MaxInt64
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
