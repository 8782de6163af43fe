package s3

import (
	"strings"

	"ogw/vfs"
)

// listUploads is ListMultipartUploads.
func (q *request) listUploads() error {
	limit, err := q.pageSize(uploadsParameter)
	if err != nil {
		return err
	}
	encode, err := q.urlEncoding()
	if err != nil {
		return err
	}
	enc := (&listing{encode: encode}).key
	prefix, delim := q.q.Get("prefix"), q.q.Get("delimiter")
	afterKey, afterUpload := q.q.Get("key-marker"), q.q.Get("upload-id-marker")
	if afterKey == "" && !strings.HasPrefix(afterUpload, vfs.UploadMarkerPrefix) {
		afterUpload = "" // means nothing without a key (S3)
	}
	var page vfs.UploadPage
	if limit > 0 {
		page, err = q.fs.ListUploads(q.ctx, q.name.Bucket, vfs.ListUploadsOptions{Prefix: prefix, Delimiter: delim, AfterKey: afterKey, AfterUpload: afterUpload,
			MaxUploads: limit, Text: !encode})
	} else {
		_, err = q.fs.HeadBucket(q.ctx, q.name.Bucket)
	}
	if err != nil {
		return err
	}
	var x xmlWriter
	x.start("ListMultipartUploadsResult", xmlNamespace)
	x.str("Bucket", q.name.Bucket)
	x.str("KeyMarker", enc(afterKey))
	x.str("UploadIdMarker", afterUpload)
	nextKey, nextUpload := page.NextKey, page.NextUpload
	if n := len(page.Uploads); n > 0 && !page.Truncated { // S3 names the last one then, too
		nextKey, nextUpload = page.Uploads[n-1].Key, page.Uploads[n-1].ID
	}
	x.str("NextKeyMarker", enc(nextKey))
	x.str("NextUploadIdMarker", nextUpload)
	x.str("Prefix", enc(prefix))
	if delim != "" {
		x.str("Delimiter", enc(delim))
	}
	if encode {
		x.str("EncodingType", "url")
	}
	x.int("MaxUploads", int64(limit))
	x.bool("IsTruncated", page.Truncated)
	for i := range page.Uploads {
		up := &page.Uploads[i]
		x.open("Upload")
		x.str("Key", enc(up.Key))
		x.str("UploadId", up.ID)
		owner := q.ownerOf(up.UID)
		x.owner("Initiator", owner)
		x.owner("Owner", owner)
		x.str("StorageClass", storageClass(&up.Meta))
		x.time("Initiated", up.Initiated)
		x.uploadChecksum(up)
		x.end("Upload")
	}
	x.prefixes(page.CommonPrefixes, enc)
	x.end("ListMultipartUploadsResult")
	return q.sendPage(&x)
}
