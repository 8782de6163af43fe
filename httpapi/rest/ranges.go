package rest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
)

// maxRanges bounds the ranges of one request: enough for the clients that
// use several (document readers), little enough that the heads of the parts
// cost nothing.
const maxRanges = 64

// parseRanges reads a Range header, several ranges included (RFC 9110,
// section 14.2). It returns no ranges when the whole is to be sent: for
// another unit, bad syntax, more than maxRanges, or ranges that overlap so
// much that they are longer than the whole. It returns httpapi.ErrBadRange
// when no range can be satisfied; those that cannot among others are left out.
func parseRanges(header string, size int64) ([]httpapi.Range, error) {
	list, ok := strings.CutPrefix(strings.TrimSpace(header), "bytes=")
	if !ok || strings.Count(list, ",") >= maxRanges {
		return nil, nil
	}
	var (
		out         []httpapi.Range
		total       int64
		unsatisfied bool
	)
	for spec := range strings.SplitSeq(list, ",") {
		if spec = strings.TrimSpace(spec); spec == "" {
			continue // an empty list element, RFC 9110 section 5.6.1.2
		}
		r, partial, err := httpapi.ParseRange("bytes="+spec, size)
		switch {
		case err != nil:
			unsatisfied = true
		case !partial:
			return nil, nil
		default:
			out = append(out, r)
			if total += r.Len; total > size {
				return nil, nil
			}
		}
	}
	if len(out) == 0 && unsatisfied {
		return nil, httpapi.ErrBadRange
	}
	return out, nil
}

// sendMultipart sends several ranges as multipart/byteranges (RFC 9110,
// section 14.6). The object's own headers are set already.
func sendMultipart(w http.ResponseWriter, src io.ReaderAt, size int64, ranges []httpapi.Range) error {
	h := w.Header()
	boundary := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	heads := make([]string, len(ranges))
	var length int64
	for i, r := range ranges {
		heads[i] = "\r\n--" + boundary + "\r\nContent-Type: " + h.Get("Content-Type") +
			"\r\nContent-Range: " + r.ContentRange(size) + "\r\n\r\n"
		length += int64(len(heads[i])) + r.Len
	}
	tail := "\r\n--" + boundary + "--\r\n"
	h.Set("Content-Type", "multipart/byteranges; boundary="+boundary)
	h.Set("Content-Length", strconv.FormatInt(length+int64(len(tail)), 10))
	w.WriteHeader(http.StatusPartialContent)
	for i, r := range ranges {
		if _, err := io.WriteString(w, heads[i]); err != nil {
			return &httpapi.SendError{Err: err}
		}
		if err := httpapi.Send(w, src, r.Off, r.Len); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, tail); err != nil {
		return &httpapi.SendError{Err: err}
	}
	return nil
}
