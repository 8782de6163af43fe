package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi/apierr"
)

func (s *Server) listLocks(r *http.Request, _ httprouter.Params) (any, error) {
	if s.Locks == nil { // locks live as long as their process
		return LockList{Locks: []Lock{}}, nil
	}
	q := r.URL.Query()
	f := LockFilter{Client: q.Get("client")}
	if path := q.Get("path"); path != "" {
		f.Path = strings.TrimSuffix(StoredPath(path, s.Domains), "/")
	}
	return s.Locks.ListLocks(r.Context(), f)
}

func (s *Server) freeLocks(r *http.Request, _ httprouter.Params) (any, error) {
	var q FreeLocks
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if q.Client == "" {
		return nil, fmt.Errorf("%w: name the client whose locks are to be freed", apierr.ErrBadRequest)
	}
	if s.Locks == nil {
		return nil, errNoProcess
	}
	return s.Locks.FreeLocks(r.Context(), q)
}
