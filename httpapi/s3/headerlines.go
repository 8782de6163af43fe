package s3

import (
	"net/http"
	"strings"
)

// amzPrefix begins the names of S3's own headers.
const amzPrefix = "X-Amz-"

// listHeaders are headers of S3's whose values are lists. Whoever reads one reads all of its
// lines.
var listHeaders = map[string]bool{
	"X-Amz-Grant-Read": true, "X-Amz-Grant-Write": true, "X-Amz-Grant-Read-Acp": true,
	"X-Amz-Grant-Write-Acp": true, "X-Amz-Grant-Full-Control": true,
	"X-Amz-Object-Attributes": true, "X-Amz-Optional-Object-Attributes": true, "X-Amz-Trailer": true,
	copySourcePrefix + "If-Match": true, copySourcePrefix + "If-None-Match": true,
	renameSourcePrefix + "If-Match": true, renameSourcePrefix + "If-None-Match": true,
}

// checkHeaderLines refuses a second line of a header of S3's that has one value: policies would
// judge by another than the one that counts. User metadata may have several lines, which
// are one value.
func checkHeaderLines(h http.Header) error {
	for name, lines := range h {
		if len(lines) > 1 && strings.HasPrefix(name, amzPrefix) && !strings.HasPrefix(name, userMetaPrefix) && !listHeaders[name] {
			return invalidArgument(strings.ToLower(name), strings.Join(lines, ","), "The header is given twice.")
		}
	}
	return nil
}
