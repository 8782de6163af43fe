package s3

import (
	"net/http"

	"ogw/httpapi"
	"ogw/vfs"
)

// putObject is PutObject, or CopyObject if there is a copy source.
func (q *request) putObject() error {
	if q.keys.copies() {
		return q.copyObject()
	}
	at := q.r.Header.Get(writeOffsetHeader)
	q.r.Header.Del(writeOffsetHeader)
	meta, err := q.requestMeta(q.r.Header)
	if err != nil {
		return err
	}
	p, err := q.openPayload()
	if err != nil {
		return err
	}
	defer p.close()
	if p.size > q.cfg.MaxObjectBytes {
		return newError(codeEntityTooLarge).with("ProposedSize", itoa(p.size)).with("MaxSizeAllowed", itoa(q.cfg.MaxObjectBytes))
	}
	opts := vfs.PutOptions{
		Meta: meta, Size: p.size, MaxSize: q.cfg.MaxObjectBytes, MD5: p.md5, Finish: p.finish,
		Cond: httpapi.ParseConditions(q.r.Header, "").VFS(), Owner: q.id.cred(), Bucket: q.info.Ino,
	}
	if at != "" {
		return q.appendObject(at, p, opts)
	}
	info, err := q.fs.PutObject(q.ctx, q.name, p, opts)
	if err != nil {
		return err
	}
	h := q.w.Header()
	setETag(h, info.ETag)
	setChecksum(h, info.Checksums)
	q.w.WriteHeader(http.StatusOK)
	return nil
}
