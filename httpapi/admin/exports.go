package admin

import (
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi/apierr"
)

// errNoExports answers where nobody keeps exports.
var errNoExports = fmt.Errorf("%w: there are no exports here", apierr.ErrUnsupported)

func (s *Server) listExports(r *http.Request, _ httprouter.Params) (any, error) {
	if s.Exports == nil {
		return []Export{}, nil
	}
	return s.Exports.List(r.Context())
}

func (s *Server) addExport(r *http.Request, _ httprouter.Params) (any, error) {
	var q AddExport
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if s.Exports == nil {
		return nil, errNoExports
	}
	return s.Exports.Add(r.Context(), q)
}

func (s *Server) revokeExport(r *http.Request, p httprouter.Params) (any, error) {
	id := p.ByName("id")
	if s.Exports == nil {
		return nil, errNoExports
	}
	return Export{ID: id}, s.Exports.Revoke(r.Context(), id)
}
