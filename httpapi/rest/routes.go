package rest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/httpapi/fair"
	"ogw/vfs"
)

// defaultMaxRequests bounds requests in flight unless configured: at
// httpapi.SendBufferBytes each they hold 256 MiB at the most.
const defaultMaxRequests = 1024

// maxListingBytes bounds the listings that are being sent: over a hundred
// pages of the longest.
const maxListingBytes = 64 << 20

// New returns the door of c.
func New(c Config) *Server {
	s := &Server{
		fs:        c.FS,
		auth:      newAuthenticator(c),
		guard:     newGuard(c),
		cors:      cors{c.Origins, c.Users},
		maxObject: c.MaxObjectBytes,
		slots:     fair.NewPool(int64(cmp.Or(c.MaxRequests, defaultMaxRequests))),
		listings:  fair.NewPool(maxListingBytes),
		active:    c.ActiveContent,
	}
	if s.maxObject <= 0 {
		s.maxObject = vfs.MaxObjectBytes
	}
	s.handler = httpapi.Frame(s.routes(), httpapi.FrameConfig{Door: "rest", Logger: c.Logger, Done: c.Done, Sends: c.Sends})
	return s
}

// allowed are the methods, as in Allow.
const allowed = "GET, HEAD, PUT, POST, DELETE, OPTIONS"

func (s *Server) table() map[string]handler {
	return map[string]handler{
		http.MethodGet:     s.get,
		http.MethodHead:    s.get,
		http.MethodPut:     s.put,
		http.MethodPost:    s.put,
		http.MethodDelete:  s.delete,
		http.MethodOptions: s.options,
	}
}

// Methods returns the methods that this door serves, for tests that must miss none.
func Methods() []string { return slices.Sorted(maps.Keys((&Server{}).table())) }

// routes are one catch-all per method: the router must not clean, redirect
// or match anything, because every path is a name.
func (s *Server) routes() http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.HandleOPTIONS = false
	router.HandleMethodNotAllowed = true
	for method, h := range s.table() {
		router.Handle(method, "/*path", s.enter(h))
	}
	router.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		apierr.Write(w, r, apierr.ErrMethod)
	})
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		apierr.Write(w, r, errNoPath)
	})
	return router
}

// handler serves a request that may proceed, or returns why not; then it
// wrote nothing.
type handler func(*request) error

// enter admits requests.
func (s *Server) enter(h handler) httprouter.Handle {
	return func(w http.ResponseWriter, hr *http.Request, _ httprouter.Params) {
		r := &request{Request: hr, w: w}
		w.Header().Set("X-Request-Id", httpapi.RequestID(hr.Context()))
		r.shared = s.cors.share(w, hr)
		err := s.admit(r)
		if err == nil {
			err = s.run(h, r)
		}
		if err != nil {
			s.auth.challenge(w, err)
			apierr.Write(w, hr, err)
		}
	}
}

// run serves r within a slot. It was admitted: nothing is held for a request
// before it is known who the caller is and that they may.
func (s *Server) run(h handler, r *request) error {
	k := r.client()
	if !s.slots.Take(k, 1) {
		return apierr.ErrManyRequests
	}
	defer s.slots.Give(k, 1)
	return h(r)
}

// admit finds out who the caller is; until then, it is nobody.
func (s *Server) admit(r *request) (err error) {
	r.Request = r.WithContext(vfs.WithSubject(r.Context(), &r.who.subject))
	httpapi.Note(r.Context(), r.Method, "", nil)
	if err := s.guard.check(r.Request); err != nil {
		return err
	}
	if r.key, err = keyOf(r.URL); err != nil {
		return err
	}
	if r.Method == http.MethodOptions {
		return nil // browsers ask without credentials
	}
	if r.who, err = s.auth.identify(r.Request); err != nil {
		return err
	}
	httpapi.NoteUser(r.Context(), r.who.name, string(r.who.subject.User), r.who.subject.UID)
	r.who.subject.Call = &vfs.Call{Values: &conditionKeys{r: r.Request}}
	return nil // from here on vfs decides what may be done
}

// options answers what can be done (RFC 9110, section 9.3.7).
func (s *Server) options(r *request) error {
	httpapi.Note(r.Context(), "OPTIONS", "", nil)
	h := r.w.Header()
	h.Set("Allow", allowed)
	h.Set("Accept-Ranges", "bytes")
	if r.shared {
		s.cors.preflight(r.w, r.Request, allowed)
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}
