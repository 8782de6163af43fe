package s3

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// copyAttempts bounds how often a copy that changes part of the metadata runs
// anew because its source was replaced concurrently.
const copyAttempts = 10

const copySourcePrefix = "X-Amz-Copy-Source-"

// copySource reads x-amz-copy-source and checks that the caller may read it.
func (q *request) copySource() (vfs.ObjectName, vfs.ObjectInfo, error) {
	src, err := parseCopySource(q.r.Header.Get(copySourceHeader))
	if err != nil {
		return src, vfs.ObjectInfo{}, err
	}
	httpapi.NoteText(q.ctx, "source", "/"+src.Bucket+"/"+src.Key)
	if want := q.r.Header.Get("X-Amz-Source-Expected-Bucket-Owner"); want != "" {
		if err := q.bucketIsOf(src.Bucket, want); err != nil {
			return src, vfs.ObjectInfo{}, err
		}
	}
	info, err := q.fs.HeadObject(q.ctx, src, vfs.GetOptions{})
	if err != nil {
		e := *toAPI(err)
		if e.code == codeNoSuchKey {
			e.fields = append(e.fields, field{"Key", src.Key}) // the source's, not ours
		}
		return src, info, &e
	}
	return src, info, nil
}

// directive reads COPY or REPLACE.
func directive(h http.Header, name string) (replace bool, err error) {
	switch v := h.Get(name); v {
	case "", "COPY":
		return false, nil
	case "REPLACE":
		return true, nil
	default:
		return false, invalidArgument(strings.ToLower(name), v, "Unknown directive.")
	}
}

// checkNoBody refuses a checksum that a copy's headers state and that is not of its body,
// which is empty: a client would take it for one of the copied bytes, and for verified.
func (q *request) checkNoBody() error {
	a, want, err := headerChecksum(q.r.Header)
	if err == nil && a != nil && !bytes.Equal(a.make().Sum(nil), want) {
		return a.mismatch()
	}
	return err
}

// copyObject is CopyObject.
func (q *request) copyObject() error {
	if err := q.checkNoBody(); err != nil {
		return err
	}
	src, info, err := q.copySource()
	if err != nil {
		return err
	}
	var change metaChange
	if change.replaceMeta, err = directive(q.r.Header, "X-Amz-Metadata-Directive"); err != nil {
		return err
	}
	if change.replaceTags, err = directive(q.r.Header, taggingDirectiveHeader); err != nil {
		return err
	}
	if change.given, err = q.requestMeta(q.r.Header); err != nil {
		return err
	}
	if src == q.name && !change.replaceMeta && !changesOnCopy(q.r.Header) {
		return newError(codeInvalidRequest).withMessage("This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.")
	}
	opts := vfs.CopyOptions{
		SourceCond: httpapi.ParseConditions(q.r.Header, copySourcePrefix).VFS(),
		Cond:       httpapi.ParseConditions(q.r.Header, "").VFS(),
		Owner:      q.id.cred(),
		Bucket:     q.info.Ino,
	}
	if v := q.r.Header.Get("X-Amz-Checksum-Algorithm"); v != "" {
		a, err := findAlgorithm(v)
		if err != nil {
			return err
		}
		opts.ChecksumAlgorithm = a.name
	}
	out, err := q.copyWith(src, info, &change, opts)
	if err != nil {
		return sourceError(err)
	}
	var x xmlWriter
	x.start("CopyObjectResult", xmlNamespace)
	x.time("LastModified", out.Modified)
	x.etag(out.ETag)
	x.checksum(out.Checksums, true)
	x.end("CopyObjectResult")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// changesOnCopy reports whether headers beside the directive make a copy onto itself legal:
// that they are there counts, not that they differ from what the object has.
func changesOnCopy(h http.Header) bool {
	return h.Get(storageClassHeader) != "" || h.Get(redirectHeader) != ""
}

// metaChange is what a copy shall have in place of the metadata of its source.
type metaChange struct {
	given                    vfs.ObjectMeta // in the request
	replaceMeta, replaceTags bool
}

// copyWith merges the metadata of source and request and copies. S3 does not
// copy ACL, storage class and redirect. If metadata must be merged here, the
// copy runs only while the source is the one that was merged from, and with the
// source's tags only while they are those that policies see.
func (q *request) copyWith(src vfs.ObjectName, info vfs.ObjectInfo, change *metaChange, o vfs.CopyOptions) (vfs.ObjectInfo, error) {
	for attempt := 1; ; attempt++ {
		opts := o
		opts.Meta, opts.ReplaceMeta = change.merge(&info.Meta)
		opts.KeepUser = !change.replaceMeta // info need not have all
		if !change.replaceTags {
			tags := info.Meta.Tags()
			opts.SourceTags = &tags
			q.keys.tags, _ = url.ParseQuery(tags) // which the store wrote
		}
		// Beside the client's conditions: If-Match would switch others off.
		if opts.ReplaceMeta && !(change.replaceMeta && change.replaceTags) {
			opts.SourceETag = info.ETag
		}
		out, err := q.fs.CopyObject(q.ctx, src, q.name, opts)
		if opts.SourceETag == "" && opts.SourceTags == nil || !errors.Is(err, vfs.ErrConflict) || attempt == copyAttempts {
			return out, err
		}
		if info, err = q.fs.HeadObject(q.ctx, src, vfs.GetOptions{}); err != nil {
			return out, err
		}
	}
}

// merge returns the metadata of the copy, but for user metadata that it takes along, and
// whether it differs from the source's.
func (c *metaChange) merge(source *vfs.ObjectMeta) (vfs.ObjectMeta, bool) {
	given := &c.given
	own := []string{storageClassHeader, redirectHeader}
	differs := c.replaceMeta || c.replaceTags
	for _, name := range own {
		differs = differs || source.Headers[name] != given.Headers[name]
	}
	if !differs {
		return vfs.ObjectMeta{Grants: given.Grants}, false
	}
	out := vfs.ObjectMeta{ContentType: source.ContentType, Headers: map[string]string{}, Grants: given.Grants}
	from := source.Headers
	if c.replaceMeta {
		out.ContentType, out.User, from = given.ContentType, given.User, given.Headers
	}
	for name, v := range from {
		out.Headers[name] = v
	}
	for _, name := range own {
		setOrDelete(out.Headers, name, given.Headers[name])
	}
	if c.replaceTags {
		out.SetTags(given.Tags())
	} else {
		out.SetTags(source.Tags())
	}
	return out, true
}

func setOrDelete(m map[string]string, k, v string) {
	if v == "" {
		delete(m, k)
	} else {
		m[k] = v
	}
}

// sourceError: a copy has no 304.
func sourceError(err error) error {
	if errors.Is(err, vfs.ErrNotModified) {
		return vfs.ErrPrecondition
	}
	return err
}

// uploadPartCopy is UploadPartCopy.
func (q *request) uploadPartCopy(upload string, number int) error {
	if err := q.checkNoBody(); err != nil {
		return err
	}
	src, info, err := q.copySource()
	if err != nil {
		return err
	}
	from := vfs.PartSource{ObjectName: src, Length: -1, Cond: httpapi.ParseConditions(q.r.Header, copySourcePrefix).VFS()}
	if v := q.r.Header.Get("X-Amz-Copy-Source-Range"); v != "" {
		if from.Off, from.Length, err = copyRange(v, info.Size); err != nil {
			return err
		}
	}
	part, err := q.fs.CopyPart(q.ctx, q.name.Upload(upload), number, from)
	if err != nil {
		return sourceError(err)
	}
	var x xmlWriter
	x.start("CopyPartResult", xmlNamespace)
	x.time("LastModified", part.Modified)
	x.etag(part.ETag)
	x.checksum(part.Checksums, false)
	x.end("CopyPartResult")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// copyRange takes only bytes=first-last within the source.
func copyRange(v string, size int64) (off, length int64, err error) {
	bad := invalidArgument("x-amz-copy-source-range", v, "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy")
	first, last, ok := strings.Cut(strings.TrimPrefix(v, "bytes="), "-")
	if !ok || first == "" || last == "" || !strings.HasPrefix(v, "bytes=") {
		return 0, 0, bad
	}
	r, partial, err := httpapi.ParseRange(v, size)
	if err != nil || !partial {
		return 0, 0, bad
	}
	if last != itoa(r.Off+r.Len-1) {
		return 0, 0, newError(codeInvalidRange).withMessage("The specified copy range is invalid for the source object size: %d", size)
	}
	return r.Off, r.Len, nil
}
