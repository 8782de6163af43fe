package s3

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// objectAttributes are what GetObjectAttributes returns, where it is asked for.
var objectAttributes = []string{"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"}

// getObjectAttributes is GetObjectAttributes.
func (q *request) getObjectAttributes() error {
	asked, err := askedAttributes(q.r.Header)
	if err != nil {
		return err
	}
	limit, err := headerCount(q.r.Header, "X-Amz-Max-Parts", maxPage)
	if err != nil {
		return err
	}
	marker, err := headerCount(q.r.Header, "X-Amz-Part-Number-Marker", 0)
	if err != nil {
		return err
	}
	if err := q.mayGet(); err != nil {
		return err
	}
	opts := q.getOptions()
	opts.Checksums = slices.Contains(asked, "Checksum") || slices.Contains(asked, "ObjectParts")
	opts.StoredSums = func(info *vfs.ObjectInfo) bool { return info.Size > maxAskedSumBytes }
	info, err := q.fs.HeadObject(q.ctx, q.name, opts)
	if err != nil {
		if errors.Is(err, vfs.ErrNotModified) {
			q.setValidators(q.w.Header(), &info)
		}
		return err
	}
	var x xmlWriter
	x.start("GetObjectAttributesResponse", xmlNamespace)
	for _, name := range objectAttributes {
		if slices.Contains(asked, name) {
			x.attribute(name, &info, marker, min(limit, maxPage))
		}
	}
	x.end("GetObjectAttributesResponse")
	q.w.Header().Set("Last-Modified", httpapi.DateText(info.Modified))
	return q.sendPage(&x)
}

// mayGet asks for the right to GetObject, which GetObjectAttributes demands beside its
// own.
func (q *request) mayGet() error {
	own := q.call.Action
	q.call.Action = ""
	_, err := q.fs.HeadObject(q.ctx, q.name, vfs.GetOptions{})
	q.call.Action = own
	return err
}

func (x *xmlWriter) attribute(name string, info *vfs.ObjectInfo, marker, limit int) {
	switch name {
	case "ETag":
		x.str(name, string(info.ETag))
	case "Checksum":
		if len(info.Checksums) > 0 {
			x.open(name)
			x.checksum(info.Checksums, true)
			x.end(name)
		}
	case "ObjectParts":
		if len(info.Parts) > 0 {
			x.objectParts(info, marker, limit)
		}
	case "StorageClass":
		x.str(name, storageClass(&info.Meta))
	case "ObjectSize":
		x.int(name, info.Size)
	}
}

// objectParts writes a page of the parts behind marker. S3 shows them where they
// have checksums of their own.
func (x *xmlWriter) objectParts(info *vfs.ObjectInfo, marker, limit int) {
	parts := info.Parts
	for len(parts) > 0 && parts[0].Number <= marker {
		parts = parts[1:]
	}
	page := parts[:min(limit, len(parts))]
	x.open("ObjectParts")
	x.bool("IsTruncated", len(page) < len(parts))
	x.int("MaxParts", int64(limit))
	next := marker
	if len(page) > 0 {
		next = page[len(page)-1].Number
	}
	x.int("NextPartNumberMarker", int64(next))
	x.int("PartNumberMarker", int64(marker))
	a, _, ok := shownChecksum(info.Checksums)
	for i := range page {
		if p := &page[i]; ok && len(p.Checksum) == a.name.Size() {
			x.open("Part")
			x.str(a.xml, checksumText(vfs.Checksum{Algorithm: a.name, Value: p.Checksum}))
			x.int("PartNumber", int64(p.Number))
			x.int("Size", p.Size)
			x.end("Part")
		}
	}
	x.int("PartsCount", int64(len(info.Parts)))
	x.end("ObjectParts")
}

func askedAttributes(h http.Header) ([]string, error) {
	const header = "X-Amz-Object-Attributes"
	v := strings.Join(h.Values(header), ",")
	if strings.TrimSpace(v) == "" {
		return nil, newError(codeInvalidRequest).withMessage("The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty")
	}
	var asked []string
	for name := range strings.SplitSeq(v, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(objectAttributes, name) {
			return nil, invalidArgument(strings.ToLower(header), name, "Invalid attribute name specified.")
		}
		asked = append(asked, name)
	}
	return asked, nil
}

// headerCount reads a header that counts something.
func headerCount(h http.Header, name string, otherwise int) (int, error) {
	v := h.Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v)
	switch {
	case err != nil || n > math.MaxInt32:
		return 0, invalidArgument(strings.ToLower(name), v, "Provided "+strings.ToLower(name)+" not an integer or within integer range")
	case n < 0:
		return 0, invalidArgument(strings.ToLower(name), v, "Argument "+strings.ToLower(name)+" must be an integer between 0 and 2147483647")
	}
	return n, nil
}
