package s3

import (
	"net/http"
	"strconv"

	"ogw/vfs"
)

// writeOffsetHeader makes a PutObject add to the end of an object.
const writeOffsetHeader = "X-Amz-Write-Offset-Bytes"

// appendObject is PutObject with a write offset.
func (q *request) appendObject(at string, body *payload, o vfs.PutOptions) error {
	off, err := strconv.ParseInt(at, 10, 64)
	switch {
	case err != nil || off < 0:
		return invalidArgument("x-amz-write-offset-bytes", at, "The write offset must be a non-negative integer.")
	case body.size == 0:
		return newError(codeInvalidRequest).withMessage("Request body cannot be empty when 'write offset' is specified.")
	}
	info, err := q.fs.AppendObject(q.ctx, q.name, off, body, o)
	if err != nil {
		return err
	}
	h := q.w.Header()
	setETag(h, info.ETag)
	setChecksum(h, info.Checksums)
	h.Set("X-Amz-Object-Size", itoa(info.Size))
	q.w.WriteHeader(http.StatusOK)
	return nil
}
