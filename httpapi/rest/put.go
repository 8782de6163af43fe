package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// put serves PUT and POST: the body becomes the object. It answers 201 for a
// new object and 204 for a replaced one.
func (s *Server) put(r *request) error {
	if r.key == "" {
		return fmt.Errorf("%w: the root cannot be written", vfs.ErrIsDir)
	}
	if err := s.checkBody(r); err != nil {
		return err
	}
	sums, err := parseDigests(r.Header)
	if err != nil {
		return err
	}
	meta, err := metaOf(r.Header)
	if err != nil {
		return err
	}
	// Early, so that a client which waits for 100-continue need not send the
	// body. The store decides again when it publishes.
	cond := writeConditions(r.Header)
	existed, bucket, err := s.fs.MayPut(r.Context(), vfs.ObjectName{Key: r.key}, cond)
	if err != nil {
		return conditional(r, err)
	}
	o := vfs.PutOptions{
		Meta:    meta,
		Size:    r.ContentLength,
		MaxSize: s.maxObject,
		Cond:    cond,
		MD5:     sums.md5,
		Bucket:  bucket,
	}
	if len(sums.sum) > 0 {
		o.Finish = sums.finish
	}
	info, err := s.fs.PutObject(r.Context(), vfs.ObjectName{Key: r.key}, sums.reader(&body{r.Body}), o)
	if err != nil {
		return conditional(r, err)
	}
	if bucket == 0 && strings.Contains(r.key, "/") {
		httpapi.NoteRights(r.Context(), "bucket=made")
	}
	h := r.w.Header()
	h.Set("Etag", quote(info.ETag))
	h.Set("Last-Modified", info.Modified.UTC().Format(http.TimeFormat))
	if existed {
		r.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.Set("Location", pathOf(r.key))
	h.Set("Content-Length", "0")
	r.w.WriteHeader(http.StatusCreated)
	return nil
}

// body distinguishes the client's failures from those of the store.
type body struct {
	src io.Reader
}

// Read implements io.Reader. An unexpected end is left to the store, which
// knows how much was stated.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: %w", apierr.ErrSlowBody, err)
	default:
		err = fmt.Errorf("%w: body: %w", apierr.ErrBadRequest, err)
	}
	return n, err
}

// checkBody refuses bodies whose length is missing, too large, or that are
// only a part.
func (s *Server) checkBody(r *request) error {
	if r.Header.Get("Content-Range") != "" {
		// RFC 9110, section 14.5: storing a part as the whole would corrupt.
		return fmt.Errorf("%w: a PUT with Content-Range is not supported", apierr.ErrBadRequest)
	}
	if r.ContentLength == 0 && r.ProtoMajor == 1 && r.Header.Get("Content-Length") == "" && !isDir(r.key) {
		return fmt.Errorf("%w: send Content-Length (0 for an empty object) or a chunked body", apierr.ErrLengthRequired)
	}
	if r.ContentLength > s.maxObject {
		return fmt.Errorf("%w: %d bytes, at most %d", vfs.ErrObjectTooLarge, r.ContentLength, s.maxObject)
	}
	return nil
}

// absent reports whether err means that there is no object.
func absent(err error) bool {
	return errors.Is(err, vfs.ErrNoSuchKey) || errors.Is(err, vfs.ErrNoSuchBucket) || errors.Is(err, vfs.ErrNotExist)
}

// writeConditions are the conditions that the store decides.
func writeConditions(h http.Header) vfs.Preconditions {
	c := httpapi.ParseConditions(h, "").VFS()
	c.IfModifiedSince = time.Time{} // of GET and HEAD alone, RFC 9110 section 13.1.3
	return c
}

// conditional turns "there is no such object" into 412 where the request
// asked for one.
func conditional(r *request, err error) error {
	if absent(err) && r.Header.Get("If-Match") != "" {
		return fmt.Errorf("%w: %w", vfs.ErrPrecondition, err)
	}
	return err
}
