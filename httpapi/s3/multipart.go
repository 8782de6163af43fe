package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// parsePartNumber reads 1 to 10,000.
func parsePartNumber(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxParts {
		return 0, invalidArgument("partNumber", v, "Part number must be an integer between 1 and 10000, inclusive")
	}
	return n, nil
}

// createUpload is CreateMultipartUpload.
func (q *request) createUpload() error {
	meta, err := q.requestMeta(q.r.Header)
	if err != nil {
		return err
	}
	alg, composite, err := uploadChecksum(q.r.Header)
	if err != nil {
		return err
	}
	up, err := q.fs.CreateUpload(q.ctx, q.name, vfs.PutOptions{Meta: meta, Size: -1, Owner: q.id.cred(), Bucket: q.info.Ino}, alg, composite)
	if err != nil {
		return err
	}
	if alg != "" {
		q.w.Header().Set("X-Amz-Checksum-Algorithm", string(alg))
		q.w.Header().Set("X-Amz-Checksum-Type", checksumType(composite))
	}
	var x xmlWriter
	x.start("InitiateMultipartUploadResult", xmlNamespace)
	x.str("Bucket", q.name.Bucket)
	x.str("Key", q.name.Key)
	x.str("UploadId", up.ID)
	x.end("InitiateMultipartUploadResult")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// uploadChecksum reads algorithm and type of an upload's checksum. CRC64NVME
// is always of the full object, CRC32 and CRC32C as asked for, the others never.
func uploadChecksum(h http.Header) (vfs.ChecksumAlgorithm, bool, error) {
	v, kind := h.Get("X-Amz-Checksum-Algorithm"), strings.ToUpper(h.Get("X-Amz-Checksum-Type"))
	if v == "" {
		if kind != "" {
			return "", false, newError(codeInvalidRequest).withMessage("The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
		}
		return "", false, nil
	}
	a, err := findAlgorithm(v)
	if err != nil {
		return "", false, err
	}
	full := a.name == vfs.ChecksumCRC64NVME
	never := a.name != vfs.ChecksumCRC64NVME && a.name != vfs.ChecksumCRC32 && a.name != vfs.ChecksumCRC32C
	switch {
	case kind == "":
	case kind != "COMPOSITE" && kind != "FULL_OBJECT":
		return "", false, newError(codeInvalidRequest).withMessage("Value for x-amz-checksum-type header is invalid.")
	case full && kind == "COMPOSITE" || never && kind == "FULL_OBJECT":
		return "", false, newError(codeInvalidRequest).withMessage("The %s checksum type cannot be used with the %s checksum algorithm.", kind, strings.ToLower(string(a.name)))
	default:
		full = kind == "FULL_OBJECT"
	}
	return a.name, !full, nil
}

// uploadPart is UploadPart, or UploadPartCopy if there is a copy source.
func (q *request) uploadPart() error {
	upload := q.q.Get("uploadId")
	if upload == "" || !q.q.Has("partNumber") {
		return newError(codeInvalidRequest).withMessage("An upload of a part needs uploadId and partNumber.")
	}
	number, err := parsePartNumber(q.q.Get("partNumber"))
	if err != nil {
		return err
	}
	if err := refuseHeaders(q.r.Header); err != nil {
		return err
	}
	if q.keys.copies() {
		return q.uploadPartCopy(upload, number)
	}
	p, err := q.openPayload()
	if err != nil {
		return err
	}
	defer p.close()
	if p.size > vfs.MaxPartBytes {
		return newError(codeEntityTooLarge).with("ProposedSize", itoa(p.size)).with("MaxSizeAllowed", itoa(vfs.MaxPartBytes))
	}
	part, err := q.fs.PutPart(q.ctx, q.name.Upload(upload), number, p, vfs.PutOptions{
		Size: p.size, MaxSize: vfs.MaxPartBytes, MD5: p.md5, Finish: p.finish, Stated: p.algorithm(), Owner: q.id.cred(),
	})
	if err != nil {
		return err
	}
	h := q.w.Header()
	setETag(h, part.ETag)
	if a, sum, ok := shownChecksum(part.Checksums); ok {
		h.Set(a.header, checksumText(sum))
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

type completeXML struct {
	XMLName xml.Name     `xml:"CompleteMultipartUpload"`
	Parts   completeList `xml:"Part"`
}

// completeList ends the decoding at the first part over the limit.
type completeList []completeOne

// UnmarshalXML implements xml.Unmarshaler: it is called for each part.
func (l *completeList) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	if len(*l) == maxParts {
		return errXMLBounds
	}
	var one completeOne
	if err := d.DecodeElement(&one, &start); err != nil {
		return err
	}
	*l = append(*l, one)
	return nil
}

type completeOne struct {
	Number    int    `xml:"PartNumber"`
	ETag      string `xml:"ETag"`
	CRC32     string `xml:"ChecksumCRC32"`
	CRC32C    string `xml:"ChecksumCRC32C"`
	CRC64NVME string `xml:"ChecksumCRC64NVME"`
	SHA1      string `xml:"ChecksumSHA1"`
	SHA256    string `xml:"ChecksumSHA256"`
	SHA512    string `xml:"ChecksumSHA512"`
	MD5       string `xml:"ChecksumMD5"`
	XXHASH64  string `xml:"ChecksumXXHASH64"`
	XXHASH3   string `xml:"ChecksumXXHASH3"`
	XXHASH128 string `xml:"ChecksumXXHASH128"`
}

func (c *completeOne) part() (vfs.CompletePart, error) {
	p := vfs.CompletePart{Number: c.Number, ETag: vfs.ETag(strings.Trim(strings.TrimSpace(c.ETag), `"`))}
	for i, v := range []string{c.CRC64NVME, c.CRC32, c.CRC32C, c.SHA1, c.SHA256, c.SHA512, c.MD5, c.XXHASH64, c.XXHASH3, c.XXHASH128} { // in the order of algorithms
		if v == "" {
			continue
		}
		b, err := algorithms[i].decode(v)
		if err != nil {
			return p, err
		}
		p.Checksums = append(p.Checksums, vfs.Checksum{Algorithm: algorithms[i].name, Value: b})
	}
	return p, nil
}

// completeUpload is CompleteMultipartUpload. The store only writes metadata,
// so there is no need to keep the client waiting with spaces, as S3 does.
func (q *request) completeUpload() error {
	objectSum, err := objectChecksum(q.r.Header)
	if err != nil {
		return err
	}
	parts, err := q.completeParts()
	if err != nil {
		return err
	}
	o := vfs.CompleteOptions{Parts: parts, MinPartBytes: minPartBytes, Cond: httpapi.ParseConditions(q.r.Header, "").VFS(), Checksum: objectSum}
	if err := q.completeStated(&o); err != nil {
		return err
	}
	info, err := q.fs.CompleteUpload(q.ctx, q.name.Upload(q.q.Get("uploadId")), o)
	if err != nil {
		return statedError(err, &o)
	}
	var x xmlWriter
	x.start("CompleteMultipartUploadResult", xmlNamespace)
	x.str("Location", q.objectURL())
	x.str("Bucket", q.name.Bucket)
	x.str("Key", q.name.Key)
	x.etag(info.ETag)
	x.checksum(info.Checksums, true)
	x.end("CompleteMultipartUploadResult")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// completeParts reads the list of parts. The checksum headers of this request
// are the object's, not the body's.
func (q *request) completeParts() ([]vfs.CompletePart, error) {
	r := q.r
	plain := *r
	plain.Header = r.Header.Clone()
	for i := range algorithms {
		plain.Header.Del(algorithms[i].header)
	}
	plain.Header.Del("X-Amz-Sdk-Checksum-Algorithm")
	q.r = &plain
	defer func() { q.r = r }()
	var doc completeXML
	if err := q.readXML(completeBounds, &doc); err != nil {
		return nil, err
	}
	if len(doc.Parts) == 0 {
		return nil, newError(codeMalformedXML)
	}
	parts := make([]vfs.CompletePart, len(doc.Parts))
	for i := range doc.Parts {
		if n := doc.Parts[i].Number; n < 1 || n > maxParts {
			return nil, newError(codeInvalidPart).with("PartNumber", strconv.Itoa(n))
		}
		if strings.Trim(doc.Parts[i].ETag, " \t\r\n\"") == "" {
			return nil, newError(codeMalformedXML) // S3's schema wants it
		}
		var err error
		if parts[i], err = doc.Parts[i].part(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// objectChecksum reads what the client says of the whole object; a composite
// ends in -N.
func objectChecksum(h http.Header) (*vfs.Checksum, error) {
	a, v, err := statedChecksum(h)
	if a == nil || err != nil {
		return nil, err
	}
	text, count, composite := strings.Cut(v, "-")
	b, err := a.decode(text)
	if err != nil {
		return nil, err
	}
	sum := &vfs.Checksum{Algorithm: a.name, Value: b}
	if composite {
		if sum.Parts, err = parsePartNumber(count); err != nil {
			return nil, a.invalid()
		}
	}
	return sum, nil
}

// completeStated reads what the request states of the object beside its checksum.
func (q *request) completeStated(o *vfs.CompleteOptions) error {
	if kind := q.r.Header.Get("X-Amz-Checksum-Type"); kind != "" {
		composite := strings.EqualFold(kind, checksumType(true))
		if !composite && !strings.EqualFold(kind, checksumType(false)) {
			return newError(codeInvalidRequest).withMessage("Value for x-amz-checksum-type header is invalid.")
		}
		o.Composite = &composite
	}
	if v := q.r.Header.Get("X-Amz-Mp-Object-Size"); v != "" {
		size, err := strconv.ParseInt(v, 10, 64)
		if err != nil || size < 0 {
			return newError(codeInvalidRequest).withMessage("Value for x-amz-mp-object-size header is invalid.")
		}
		o.Size = &size
	}
	return nil
}

// statedError is the error of S3 for an upload that is not what the request states.
func statedError(err error, o *vfs.CompleteOptions) error {
	mismatch, ok := errors.AsType[*vfs.UploadMismatchError](err)
	switch {
	case !ok:
		return err
	case mismatch.Size:
		return newError(codeInvalidRequest).withMessage("The provided 'x-amz-mp-object-size' header value does not match what was computed.")
	}
	return newError(codeInvalidRequest).withMessage("The upload was created using the %s checksum mode. The complete request must use the same checksum mode.",
		checksumType(!*o.Composite))
}

// abortUpload is AbortMultipartUpload.
func (q *request) abortUpload() error {
	began, given, err := timeHeader(q.r.Header, "X-Amz-If-Match-Initiated-Time")
	if err != nil {
		return err
	}
	if given { // an upload's never changes
		up, err := q.fs.GetUpload(q.ctx, q.name.Upload(q.q.Get("uploadId")))
		if err != nil {
			return err
		}
		if !sameSecond(up.Initiated, began) {
			return newError(codePreconditionFailed).with("Condition", "x-amz-if-match-initiated-time")
		}
	}
	if err := q.fs.AbortUpload(q.ctx, q.name.Upload(q.q.Get("uploadId"))); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// listParts is ListParts.
func (q *request) listParts() error {
	limit, err := q.pageSize("max-parts")
	if err != nil {
		return err
	}
	after := 0
	if v := q.q.Get("part-number-marker"); v != "" {
		if after, err = strconv.Atoi(v); err != nil || after < 0 {
			return invalidArgument("part-number-marker", v, "Argument part-number-marker must be an integer between 0 and 2147483647")
		}
	}
	upload := q.q.Get("uploadId")
	up, err := q.fs.GetUpload(q.ctx, q.name.Upload(upload))
	if err != nil {
		return err
	}
	var parts []vfs.PartInfo
	more := false
	if limit > 0 {
		if parts, more, err = q.fs.ListParts(q.ctx, q.name.Upload(upload), after, limit); err != nil {
			return err
		}
	}
	var x xmlWriter
	x.start("ListPartsResult", xmlNamespace)
	x.str("Bucket", q.name.Bucket)
	x.str("Key", q.name.Key)
	x.str("UploadId", upload)
	owner := q.ownerOf(up.UID)
	x.owner("Initiator", owner)
	x.owner("Owner", owner)
	x.str("StorageClass", storageClass(&up.Meta))
	x.int("PartNumberMarker", int64(after))
	if len(parts) > 0 {
		x.int("NextPartNumberMarker", int64(parts[len(parts)-1].Number))
	}
	x.int("MaxParts", int64(limit))
	x.bool("IsTruncated", more)
	x.uploadChecksum(&up)
	for i := range parts {
		p := &parts[i]
		x.open("Part")
		x.int("PartNumber", int64(p.Number))
		x.time("LastModified", p.Modified)
		x.etag(p.ETag)
		x.int("Size", p.Size)
		x.checksum(p.Checksums, false)
		x.end("Part")
	}
	x.end("ListPartsResult")
	return q.sendPage(&x)
}

func (x *xmlWriter) uploadChecksum(up *vfs.UploadInfo) {
	if up.ChecksumAlgorithm != "" {
		x.str("ChecksumAlgorithm", string(up.ChecksumAlgorithm))
		x.str("ChecksumType", checksumType(up.ChecksumComposite))
	}
}
