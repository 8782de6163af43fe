package s3

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// overrides are the response-* parameters of GetObject.
var overrides = map[string]string{
	"response-cache-control": "Cache-Control", "response-content-disposition": "Content-Disposition",
	"response-content-encoding": "Content-Encoding", "response-content-language": "Content-Language",
	"response-content-type": "Content-Type", "response-expires": "Expires",
}

// getObject is GetObject.
func (q *request) getObject() error {
	opts := q.readOptions()
	obj, err := q.fs.GetObject(q.ctx, q.name, opts)
	if err != nil {
		var info *vfs.ObjectInfo
		if obj != nil {
			info = &obj.Info
		}
		return q.readFailed(info, err)
	}
	defer obj.Close()
	span, status, err := q.readHeader(&obj.Info, opts.Checksums)
	if err != nil {
		return err
	}
	err = httpapi.Respond(q.w, status, obj, span.Off, span.Len)
	var sent *httpapi.SendError
	if errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &sent) {
		err = &apiError{code: codeInternal, cause: err} // the store's fault, not the client's
	}
	return err
}

// headObject is HeadObject.
func (q *request) headObject() error {
	opts := q.readOptions()
	info, err := q.fs.HeadObject(q.ctx, q.name, opts)
	if err != nil {
		return q.readFailed(&info, err)
	}
	_, status, err := q.readHeader(&info, opts.Checksums)
	if err != nil {
		return err
	}
	q.w.WriteHeader(status)
	return nil
}

func (q *request) getOptions() vfs.GetOptions {
	return vfs.GetOptions{
		Cond:      httpapi.ParseConditions(q.r.Header, "").VFS(),
		Checksums: strings.EqualFold(httpapi.Field(q.r.Header, "X-Amz-Checksum-Mode"), "ENABLED"),
	}
}

// readOptions are for bytes, or what HEAD says of them: of a range or part, and of what
// is not small, only what is stored has a checksum.
func (q *request) readOptions() vfs.GetOptions {
	o := q.getOptions()
	if o.Checksums {
		o.StoredSums = func(info *vfs.ObjectInfo) bool {
			_, partial, part, err := q.span(info)
			return partial || part != nil || err != nil || info.Size > maxReadSumBytes
		}
	}
	return o
}

var acceptRanges = []string{"bytes"} // never changed

// readFailed answers conditions that do not hold: 304 with what the object would have come
// with, of which writeError keeps what caches need.
func (q *request) readFailed(info *vfs.ObjectInfo, err error) error {
	if info != nil && errors.Is(err, vfs.ErrNotModified) {
		if err := q.describe(info); err != nil {
			return err
		}
	}
	return err
}

// describe sets the headers that are the same whatever is sent of an object.
func (q *request) describe(info *vfs.ObjectInfo) error {
	h := q.w.Header()
	q.setMeta(h, info)
	if err := q.override(h); err != nil {
		return err
	}
	q.setValidators(h, info)
	return nil
}

func (q *request) setValidators(h http.Header, info *vfs.ObjectInfo) {
	h["ETag"] = q.one(quoteETag(info.ETag)) // S3's own spelling
	h["Last-Modified"] = q.one(httpapi.DateText(info.Modified))
}

// readHeader sets the headers of a response and returns what is to be sent.
func (q *request) readHeader(info *vfs.ObjectInfo, checksums bool) (httpapi.Range, int, error) {
	h := q.w.Header()
	span, partial, part, err := q.span(info)
	if err != nil {
		return span, 0, err
	}
	if err := q.describe(info); err != nil {
		return span, 0, err
	}
	h["Accept-Ranges"] = acceptRanges
	h["Content-Length"] = q.one(itoa(span.Len))
	if q.q.Has("partNumber") && len(info.Parts) > 0 {
		h.Set("X-Amz-Mp-Parts-Count", strconv.Itoa(len(info.Parts)))
	}
	if checksums {
		setSpanChecksum(h, info, partial, part)
	}
	if !partial {
		return span, http.StatusOK, nil
	}
	h.Set("Content-Range", span.ContentRange(info.Size))
	return span, http.StatusPartialContent, nil
}

// setSpanChecksum: the whole object's checksum goes with the whole object, a
// part's with the part; clients check what they receive against it.
func setSpanChecksum(h http.Header, info *vfs.ObjectInfo, partial bool, part *vfs.ObjectPart) {
	a, sum, ok := shownChecksum(info.Checksums)
	switch {
	case !ok:
	case !partial && part == nil: // an empty part is not partial: no range is empty
		setChecksum(h, info.Checksums)
	case part != nil && len(part.Checksum) == a.name.Size():
		h.Set(a.header, checksumText(vfs.Checksum{Algorithm: a.name, Value: part.Checksum}))
		h.Set("X-Amz-Checksum-Type", checksumType(sum.Parts > 0))
	}
}

// span finds the bytes to send: a part, a range, or all.
func (q *request) span(info *vfs.ObjectInfo) (httpapi.Range, bool, *vfs.ObjectPart, error) {
	if q.q.Has("partNumber") {
		if q.r.Header.Get("Range") != "" {
			return httpapi.Range{}, false, nil, newError(codeInvalidRequest).withMessage("Cannot specify both Range header and partNumber query parameter")
		}
		return q.partSpan(info)
	}
	header := httpapi.Field(q.r.Header, "Range")
	if header != "" && !httpapi.IfRangeHolds(q.r.Header, string(info.ETag), info.Modified) {
		header = ""
	}
	r, partial, err := httpapi.ParseRange(header, info.Size)
	if err != nil {
		q.w.Header().Set("Content-Range", "bytes */"+itoa(info.Size))
		return r, false, nil, newError(codeInvalidRange).with("RangeRequested", header).with("ActualObjectSize", itoa(info.Size))
	}
	return r, partial, nil, nil
}

// partSpan finds a part of a multipart object; any other object is one part.
func (q *request) partSpan(info *vfs.ObjectInfo) (httpapi.Range, bool, *vfs.ObjectPart, error) {
	n, err := parsePartNumber(q.q.Get("partNumber"))
	if err != nil {
		return httpapi.Range{}, false, nil, err
	}
	if len(info.Parts) == 0 && n == 1 {
		return httpapi.Range{Len: info.Size}, info.Size > 0, nil, nil
	}
	var off int64
	for i := range info.Parts {
		// S3 counts the parts that an object has, whatever their numbers were.
		if i+1 == n {
			return httpapi.Range{Off: off, Len: info.Parts[i].Size}, info.Parts[i].Size > 0, &info.Parts[i], nil
		}
		off += info.Parts[i].Size
	}
	return httpapi.Range{}, false, nil, newError(codeInvalidPartNumber).with("PartNumberRequested", strconv.Itoa(n)).with("ActualPartCount", strconv.Itoa(max(1, len(info.Parts))))
}

// override applies response-*; S3 demands a signature for that, so that a
// public object cannot be dressed up by a link.
func (q *request) override(h http.Header) error {
	if len(q.q) == 0 {
		return nil
	}
	for param, header := range overrides {
		v := q.q.Get(param)
		if v == "" {
			continue
		}
		if q.id.anonymous() {
			return newError(codeInvalidRequest).withMessage("Request specific response headers cannot be used for anonymous GET requests.")
		}
		h.Set(header, v)
	}
	return nil
}
