package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi/apierr"
)

// Export is a directory that NFS clients may mount.
type Export struct {
	// ID names an export that was added at run time; configured ones have none.
	ID       string    `json:"id,omitempty"`
	Gateway  string    `json:"gateway,omitempty"` // of a configured one
	Path     string    `json:"path"`
	Clients  []string  `json:"clients"` // networks; none: every client
	ReadOnly bool      `json:"read_only"`
	Insecure bool      `json:"insecure"` // takes calls from ports of 1024 and above
	Squash   string    `json:"squash"`   // root, all or none
	AnonUID  *uint32   `json:"anon_uid,omitempty"`
	AnonGID  *uint32   `json:"anon_gid,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	// NeedsSecret tells that the mount path must end in @ and a secret.
	NeedsSecret bool `json:"needs_secret"`
	// Secret is there in the answer to its making only.
	Secret string `json:"secret,omitempty"`
}

// AddExport asks for a new export.
type AddExport struct {
	Path     string    `json:"path"`
	Clients  []string  `json:"clients,omitempty"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Insecure bool      `json:"insecure,omitempty"`
	Squash   string    `json:"squash,omitempty"` // default: root
	AnonUID  *uint32   `json:"anon_uid,omitempty"`
	AnonGID  *uint32   `json:"anon_gid,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Secret   bool      `json:"secret,omitempty"` // make one
}

// Exports keeps the exports. Errors are those of vfs and apierr.
type Exports interface {
	List(ctx context.Context) ([]Export, error)
	Add(ctx context.Context, e AddExport) (Export, error)
	Revoke(ctx context.Context, id string) error
}

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
