package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"ogw/httpapi"
	"ogw/vfs"
)

// get serves GET and HEAD.
func (s *Server) get(r *request) error {
	if isDir(r.key) {
		return s.getDirectory(r)
	}
	if r.Method == http.MethodHead {
		info, err := s.fs.HeadObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.GetOptions{})
		if err != nil {
			return err
		}
		return s.head(r, &info)
	}
	obj, err := s.fs.GetObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.GetOptions{})
	if err != nil {
		if errors.Is(err, vfs.ErrNoSuchKey) && wantsHTML(r.Header.Get("Accept")) {
			return s.redirectToDirectory(r, err)
		}
		return err
	}
	defer obj.Close() //nolint:errcheck // releases memory; nothing can be lost
	return s.serve(r, obj)
}

// head answers without the bytes. Range is not looked at: it is defined for
// GET alone (RFC 9110, section 14.2).
func (s *Server) head(r *request, info *vfs.ObjectInfo) error {
	s.setObjectHeaders(r.w.Header(), info)
	if done, err := s.conditions(r, info); done || err != nil {
		return err
	}
	r.w.Header().Set("Content-Length", strconv.FormatInt(info.Size, 10))
	r.w.WriteHeader(http.StatusOK)
	return nil
}

// conditions answers 304, or returns the error for 412.
func (s *Server) conditions(r *request, info *vfs.ObjectInfo) (done bool, err error) {
	switch httpapi.ParseConditions(r.Header, "").CheckRead(string(info.ETag), info.Modified) {
	case httpapi.NotModified:
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"} {
			r.w.Header().Del(name)
		}
		r.w.WriteHeader(http.StatusNotModified)
		return true, nil
	case httpapi.PreconditionFailed:
		return false, vfs.ErrPrecondition
	}
	return false, nil
}

// serve sends an object, or the ranges of it that were asked for.
func (s *Server) serve(r *request, obj *vfs.Object) error {
	info := &obj.Info
	h := r.w.Header()
	s.setObjectHeaders(h, info)
	if done, err := s.conditions(r, info); done || err != nil {
		return err
	}
	var ranges []httpapi.Range
	if spec := r.Header.Get("Range"); spec != "" && httpapi.IfRangeHolds(r.Header, string(info.ETag), info.Modified) {
		var err error
		if ranges, err = parseRanges(spec, info.Size); err != nil {
			h.Set("Content-Range", "bytes */"+strconv.FormatInt(info.Size, 10))
			return fmt.Errorf("%w: %s of %d bytes", vfs.ErrBadRange, spec, info.Size)
		}
	}
	s.fs.Accessed(r.Context(), info.Ino)
	var err error
	switch len(ranges) {
	case 0:
		h.Set("Content-Length", strconv.FormatInt(info.Size, 10))
		err = httpapi.Respond(r.w, http.StatusOK, obj, 0, info.Size)
	case 1:
		h.Set("Content-Range", ranges[0].ContentRange(info.Size))
		h.Set("Content-Length", strconv.FormatInt(ranges[0].Len, 10))
		err = httpapi.Respond(r.w, http.StatusPartialContent, obj, ranges[0].Off, ranges[0].Len)
	default:
		err = sendMultipart(r.w, obj, info.Size, ranges)
	}
	var sent *httpapi.SendError
	switch {
	case errors.As(err, &sent):
		// The header is out: only breaking the connection notifies the client.
		httpapi.Note(r.Context(), "", "", err)
		panic(http.ErrAbortHandler)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%w: %w", vfs.ErrIO, err) // the store's fault, not the client's
	}
	if err != nil {
		dropObjectHeaders(h)
	}
	return err
}

// redirectToDirectory sends a browser from /a to /a/ where only the
// directory exists; notFound is the answer otherwise.
func (s *Server) redirectToDirectory(r *request, notFound error) error {
	page, err := s.fs.ListObjects(r.Context(), "", vfs.ListOptions{Prefix: r.key + "/", MaxKeys: 1, NamesOnly: true})
	if err != nil || len(page.Objects) == 0 {
		return notFound
	}
	r.w.Header().Set("Location", pathOf(r.key+"/"))
	r.w.WriteHeader(http.StatusTemporaryRedirect) // a file of that name may come
	return nil
}
