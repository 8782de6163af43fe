package rest

import (
	"fmt"
	"net/http"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// delete serves DELETE: 204, or 404 if there was nothing.
func (s *Server) delete(r *request) error {
	if r.key == "" {
		return fmt.Errorf("%w: the root cannot be removed", vfs.ErrPerm)
	}
	cond := writeConditions(r.Header)
	if len(cond.IfNoneMatch) > 0 {
		// The store knows no such condition for a removal.
		if err := s.checkConditions(r); err != nil {
			return err
		}
		cond.IfNoneMatch = nil
	}
	// Of a directory with entries only the mark would go, which changes nothing
	// that the client can see.
	existed, err := s.fs.DeleteObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.DeleteOptions{Cond: cond, Empty: true})
	if err != nil {
		return conditional(r, err)
	}
	if !existed {
		return fmt.Errorf("%w: %s", vfs.ErrNoSuchKey, r.key)
	}
	if name, isTop := strings.CutSuffix(r.key, "/"); isTop && !strings.Contains(name, "/") {
		httpapi.NoteRights(r.Context(), "bucket=removed")
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}

// checkConditions decides the conditions by what the object is now.
func (s *Server) checkConditions(r *request) error {
	info, err := s.fs.HeadObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.GetOptions{})
	if err != nil && !absent(err) {
		return err
	}
	c := httpapi.ParseConditions(r.Header, "")
	if c.CheckWrite(err == nil, string(info.ETag), info.Modified) != httpapi.Proceed {
		return vfs.ErrPrecondition
	}
	return nil
}
