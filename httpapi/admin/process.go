package admin

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// errNoProcess answers what only a running process can do.
var errNoProcess = fmt.Errorf("%w: no process serves this data folder", apierr.ErrUnsupported)

func (s *Server) status(r *http.Request, _ httprouter.Params) (any, error) {
	st := Status{
		Version: s.Version, Running: s.Process != nil, PID: s.PID, Started: s.Started,
		Dir: s.Dir, Engine: s.Engine, FSID: fmt.Sprintf("%016x", s.fs.FSID()),
		Gateways: []Gateway{}, Mounts: []Mount{},
	}
	fs, err := s.fs.StatFS(r.Context())
	if errors.Is(err, vfs.ErrUnavailable) && s.Process != nil {
		// Of a store that does not answer, the process can report the rest.
		st.Store, st.StoreError = "unavailable", err.Error()
	} else if err != nil {
		return nil, err
	} else if st.Users, err = s.fs.Gateways(r.Context()); err != nil && !errors.Is(err, vfs.ErrUnavailable) {
		return nil, err
	}
	st.TotalBytes, st.FreeBytes, st.Files = fs.TotalBytes, fs.FreeBytes, fs.Files
	st.DamagedSecrets = s.fs.SealState().Damaged
	st.Scrub = s.fs.Scrub(r.Context())
	if len(st.Scrub.Damaged) > 0 { // with their files, as far as they were found
		list, err := s.fs.Quarantine(r.Context(), false)
		if err != nil {
			return nil, err
		}
		st.Scrub.Damaged = slices.DeleteFunc(list, func(d vfs.DamagedBlob) bool { return d.Aside })
	}
	if s.Process != nil {
		st.Gateways, st.Mounts = s.Process.Gateways(), s.Process.Mounts()
		if state, why := s.Process.Store(); why != nil {
			st.Store, st.StoreError = state, why.Error()
		} else if st.Store == "" {
			st.Store = state
		}
	}
	return st, nil
}

func (s *Server) gateways(*http.Request, httprouter.Params) (any, error) {
	if s.Process == nil {
		return []Gateway{}, nil
	}
	return s.Process.Gateways(), nil
}

func (s *Server) mounts(*http.Request, httprouter.Params) (any, error) {
	if s.Process == nil {
		return []Mount{}, nil
	}
	return s.Process.Mounts(), nil
}

func (s *Server) mount(r *http.Request, _ httprouter.Params) (any, error) {
	var m Mount
	if err := decode(r, &m); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(m.Dir) {
		return nil, fmt.Errorf("%w: %q is not an absolute path", apierr.ErrBadRequest, m.Dir)
	}
	if s.Process == nil {
		return nil, errNoProcess
	}
	return m, s.Process.Mount(r.Context(), m)
}

func (s *Server) umount(r *http.Request, _ httprouter.Params) (any, error) {
	q := r.URL.Query()
	dir := q.Get("dir")
	tell(r, Mount{Dir: dir})
	if s.Process == nil {
		return nil, errNoProcess
	}
	ends, err := s.Process.Umount(r.Context(), dir, q.Get("lazy") == "true")
	return Unmounted{Dir: dir, Ends: ends, PID: s.PID}, err
}

func (s *Server) stop(*http.Request, httprouter.Params) (any, error) {
	if s.Process == nil {
		return nil, errNoProcess
	}
	s.Process.Stop()
	return struct {
		Stopping bool `json:"stopping"`
	}{true}, nil
}

type health struct {
	Status string `json:"status"`
}

func (s *Server) healthz(*http.Request, httprouter.Params) (any, error) {
	return health{"alive"}, nil
}

func (s *Server) readyz(r *http.Request, _ httprouter.Params) (any, error) {
	if s.Process != nil {
		if err := s.Process.Ready(r.Context()); err != nil {
			return nil, err
		}
	}
	if _, err := s.fs.StatFS(r.Context()); err != nil {
		return nil, err
	}
	return health{"ready"}, nil
}
