package admin

import (
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ogw/cluster"
	"ogw/httpapi/apierr"
)

func (s *Server) listQuarantine(r *http.Request, _ httprouter.Params) (any, error) {
	list, err := s.fs.Quarantine(r.Context(), true)
	return Quarantine{Blobs: list}, err
}

func (s *Server) releaseQuarantine(r *http.Request, _ httprouter.Params) (any, error) {
	var q ReleaseDamaged
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if q.All != (len(q.Blobs) == 0) {
		return nil, fmt.Errorf("%w: name the blobs to be released, or all, not both", apierr.ErrBadRequest)
	}
	ids := make([]cluster.BlobID, len(q.Blobs))
	for i, name := range q.Blobs {
		raw, err := hex.DecodeString(name)
		if err == nil {
			ids[i], err = cluster.ParseBlobID(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %q is no blob: it is named by 32 hexadecimal digits", apierr.ErrBadRequest, name)
		}
	}
	blobs, bytes, err := s.fs.Release(r.Context(), ids...)
	return ReleasedDamaged{blobs, bytes}, err
}
