package s3

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/vfs"
)

// postObject is PostObject: an upload from a browser's form. The fields come
// first, then the file; what follows the file is ignored.
func (q *request) postObject() error {
	kind, params, err := mime.ParseMediaType(q.r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		return newError(codePreconditionFailed).with("Condition", "Bucket POST must be of the enclosure-type multipart/form-data")
	}
	if err != nil || params["boundary"] == "" {
		return newError(codeMalformedPOST)
	}
	if !q.id.anonymous() {
		return newError(codeInvalidRequest).withMessage("A form is signed in its fields.")
	}
	fields, file, err := q.readFields(params["boundary"])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	key, given := fields["key"]
	switch {
	case !given:
		return missingField("key")
	case key == "":
		return newError(codeKeyMustBeSpecified)
	}
	q.name.Key, fields["bucket"] = key, q.name.Bucket
	httpapi.NoteObject(q.ctx, "/"+q.name.Bucket+"/"+key)
	pol, err := q.authorizeForm(fields)
	if err != nil {
		return err
	}
	if err := q.enter(); err != nil {
		return err
	}
	return q.storeForm(fields, file, pol)
}

func missingField(name string) error {
	return invalidArgument(name, "", fmt.Sprintf("Bucket POST must contain a field named '%s'.  If it is specified, please check the order of the fields.", name))
}

// readFields reads what comes before the file, within a budget and a time of
// its own: nobody is known to have signed the form yet.
func (q *request) readFields(boundary string) (map[string]string, *multipart.Part, error) {
	k := q.client()
	if !q.forms.Take(k, 1) {
		return nil, nil, newError(codeSlowDown)
	}
	defer q.forms.Give(k, 1)
	httpapi.BodyBy(q.r, time.Now().Add(formFieldsTime))
	head := &formHead{r: q.r.Body, left: maxFormHeadBytes}
	fields, file, err := readForm(multipart.NewReader(head, boundary))
	if head.left < 0 {
		err = errFormTooLong()
	}
	head.left = noFormLimit // the file has one of its own
	httpapi.BodyBy(q.r, time.Time{})
	return fields, file, err
}

func errFormTooLong() error {
	return newError(code{"MaxPostPreDataLengthExceededError", 400, "Your POST request fields preceding the upload file were too large."})
}

// formHead bounds what is read of a form before its file, the headers of its
// parts included.
type formHead struct {
	r    io.Reader
	left int64
}

func (h *formHead) Read(p []byte) (int, error) {
	if h.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.r.Read(p)
	if h.left != noFormLimit {
		h.left -= int64(n)
	}
	return n, err
}

// readForm reads the fields up to the file. Names are case-insensitive.
func readForm(form *multipart.Reader) (map[string]string, *multipart.Part, error) {
	fields := map[string]string{}
	left := int64(maxFormBytes)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil, nil, invalidArgument("file", "0", "POST requires exactly one file upload per request.")
		}
		if err != nil {
			return nil, nil, &apiError{code: codeMalformedPOST, cause: err}
		}
		name := strings.ToLower(part.FormName())
		if name == "file" {
			expandFileName(fields, part)
			return fields, part, nil
		}
		value, err := io.ReadAll(io.LimitReader(part, left+1))
		if err != nil {
			return nil, nil, &apiError{code: codeMalformedPOST, cause: err}
		}
		if left -= int64(len(name) + len(value)); left < 0 {
			return nil, nil, errFormTooLong()
		}
		if _, twice := fields[name]; twice {
			return nil, nil, invalidArgument(name, string(value), "The field is given twice.")
		}
		fields[name] = string(value)
	}
}

// expandFileName puts the file's name, without the folders that some browsers
// tell, where fields ask for it.
func expandFileName(fields map[string]string, file *multipart.Part) {
	_, params, err := mime.ParseMediaType(file.Header.Get("Content-Disposition"))
	if err != nil {
		params = nil
	}
	name := params["filename"]
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	for f, v := range fields {
		if f != "policy" && strings.Contains(v, "${filename}") {
			fields[f] = strings.ReplaceAll(v, "${filename}", name)
		}
	}
}

// authorizeForm checks signature and policy; without a policy the request
// stays anonymous.
func (q *request) authorizeForm(fields map[string]string) (*formPolicy, error) {
	sig, err := q.verify.ParsePost(func(name string) string { return fields[name] })
	if err != nil {
		return nil, err
	}
	pol := &formPolicy{maxBytes: -1}
	if sig != nil {
		if err := q.identify(sig); err != nil {
			return nil, err
		}
		q.noteUser()
		if pol, err = parsePolicy(fields["policy"], q.cfg.Now()); err != nil {
			return nil, err
		}
		if err := pol.check(fields); err != nil {
			return nil, err
		}
	}
	if q.keys.header, err = formHeaders(fields); err != nil {
		return nil, err
	}
	return pol, q.may(needPut)
}

// formHeaders puts the fields that describe the object under their headers.
func formHeaders(fields map[string]string) (http.Header, error) {
	h := http.Header{}
	for name, v := range fields {
		switch {
		case name == "acl":
			h.Set("X-Amz-Acl", v)
		case name == "tagging":
			var doc taggingXML
			if err := parseXML(strings.NewReader(v), configBounds, 0, nil, &doc); err != nil {
				return nil, &apiError{code: codeMalformedXML, cause: err}
			}
			if err := checkTags(doc.Tags, maxTags); err != nil {
				return nil, err
			}
			h.Set(taggingHeader, encodeTags(doc.Tags))
		case strings.HasPrefix(name, "x-amz-"), strings.HasPrefix(name, "content-"), name == "cache-control", name == "expires":
			h.Set(name, v)
		}
	}
	return h, nil
}

// storeForm stores the file and answers as the form asks.
func (q *request) storeForm(fields map[string]string, file io.Reader, pol *formPolicy) error {
	h := q.keys.header
	meta, err := q.requestMeta(h)
	if err != nil {
		return err
	}
	body := &formFile{src: file, minBytes: pol.minBytes}
	if body.alg, body.want, err = headerChecksum(h); err != nil {
		return err
	}
	if body.alg != nil {
		body.sum = body.alg.make()
	}
	limit := q.cfg.MaxObjectBytes
	if pol.maxBytes >= 0 {
		limit = min(limit, max(pol.maxBytes, 1)) // 0 would mean the default
	}
	body.maxBytes = limit
	if pol.maxBytes >= 0 {
		body.maxBytes = pol.maxBytes
	}
	opts := vfs.PutOptions{Meta: meta, Size: -1, MaxSize: limit, Finish: body.finish, Owner: q.id.cred(), Bucket: q.info.Ino}
	if v := h.Get("Content-Md5"); v != "" {
		if opts.MD5, err = base64.StdEncoding.DecodeString(v); err != nil || len(opts.MD5) != 16 {
			return newError(codeInvalidDigest)
		}
	}
	info, err := q.fs.PutObject(q.ctx, q.name, body, opts)
	if errors.Is(err, vfs.ErrObjectTooLarge) {
		err = body.tooLarge()
	}
	if err != nil {
		return err
	}
	q.answerForm(fields, &info)
	return nil
}

func (q *request) answerForm(fields map[string]string, info *vfs.ObjectInfo) {
	h := q.w.Header()
	setETag(h, info.ETag)
	setChecksum(h, info.Checksums)
	location := q.objectURL()
	h.Set("Location", location)
	if to := q.redirectOf(fields, info.ETag); to != "" {
		h.Set("Location", to)
		q.w.WriteHeader(http.StatusSeeOther)
		return
	}
	switch fields["success_action_status"] {
	case "200":
		q.w.WriteHeader(http.StatusOK)
	case "201":
		var x xmlWriter
		x.start("PostResponse", "")
		x.str("Location", location)
		x.str("Bucket", q.name.Bucket)
		x.str("Key", q.name.Key)
		x.etag(info.ETag)
		x.end("PostResponse")
		x.send(q.w, q.r, http.StatusCreated)
	default:
		q.w.WriteHeader(http.StatusNoContent)
	}
}

// objectURL is where the client finds the object. S3 escapes slashes in it, too.
func (q *request) objectURL() string {
	to := "http://"
	if q.r.TLS != nil {
		to = "https://"
	}
	to += q.r.Host + "/"
	if q.hostBucket == "" {
		to += q.name.Bucket + "/"
	}
	return to + url.PathEscape(q.name.Key)
}

// redirectOf returns where the form wants its sender to go, "" if it says nothing
// of use. What was stored follows in S3's order.
func (q *request) redirectOf(fields map[string]string, etag vfs.ETag) string {
	target := cmp.Or(fields["success_action_redirect"], fields["redirect"])
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "bucket=" + url.QueryEscape(q.name.Bucket) + "&key=" + url.QueryEscape(q.name.Key) + "&etag=" + url.QueryEscape(quoteETag(etag))
	return u.String()
}

// postToKey: a form is posted to the bucket.
func (q *request) postToKey() error {
	return newError(codeMethodNotAllowed).with("Method", q.r.Method).with("ResourceType", "OBJECT")
}

// formFile is the file of a form: its length shows at its end.
type formFile struct {
	src                io.Reader
	n                  int64
	minBytes, maxBytes int64
	alg                *algorithm
	sum                hash.Hash
	want               []byte
}

// Read implements io.Reader.
func (f *formFile) Read(p []byte) (int, error) {
	n, err := f.src.Read(p)
	f.n += int64(n)
	if f.sum != nil {
		f.sum.Write(p[:n])
	}
	return n, err
}

func (f *formFile) finish() ([]vfs.Checksum, error) {
	if f.n < f.minBytes {
		return nil, newError(codeEntityTooSmall).with("ProposedSize", itoa(f.n)).with("MinSizeAllowed", itoa(f.minBytes))
	}
	if f.n > f.maxBytes {
		return nil, f.tooLarge()
	}
	if f.alg == nil {
		return nil, nil
	}
	got := f.sum.Sum(nil)
	if !bytes.Equal(got, f.want) {
		return nil, f.alg.mismatch()
	}
	return []vfs.Checksum{{Algorithm: f.alg.name, Value: got}}, nil
}

// tooLarge tells how much of the file was seen.
func (f *formFile) tooLarge() error {
	return newError(codeEntityTooLarge).with("ProposedSize", itoa(f.n)).with("MaxSizeAllowed", itoa(f.maxBytes))
}
