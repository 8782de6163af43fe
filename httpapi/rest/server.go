package rest

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/httpapi/fair"
	"ogw/httpapi/guess"
	"ogw/vfs"
)

// Config of a Server.
type Config struct {
	FS     *vfs.FS
	Logger *slog.Logger // of requests; never nil
	// Done is told of every request, for metrics. May be nil.
	Done func(*httpapi.Record)
	// Tokens are bearer tokens that may do everything.
	Tokens []string
	// Guesses slows down wrong tokens and passwords; nil does not.
	Guesses *guess.Guard
	// Users admits the users of the store with basic credentials.
	Users bool
	// Owner of what tokens and open access write.
	Owner vfs.Cred
	// Hosts are names, besides loopback ones, by which an open door may be
	// addressed.
	Hosts []string
	// MaxObjectBytes bounds a body; 0 means vfs.MaxObjectBytes.
	MaxObjectBytes int64
	// MaxRequests bounds requests in flight; others get 503. 0 means
	// defaultMaxRequests.
	MaxRequests int
	// Sends is what replies are sent with; nil for the door's own.
	Sends *httpapi.Sends
	// ActiveContent lets browsers show stored pages and run their scripts on
	// the origin of this door (see browser.go).
	ActiveContent bool
}

// defaultMaxRequests bounds requests in flight unless configured: at
// httpapi.SendBufferBytes each they hold 256 MiB at the most.
const defaultMaxRequests = 1024

// maxListingBytes bounds the listings that are being sent: over a hundred
// pages of the longest.
const maxListingBytes = 64 << 20

// Server is the REST door. It is an http.Handler.
type Server struct {
	fs        *vfs.FS
	auth      authenticator
	guard     guard
	maxObject int64
	slots     *fair.Pool // requests in flight
	listings  *fair.Pool // bytes of listings that are being sent
	active    bool
	handler   http.Handler
}

// New returns the door of c.
func New(c Config) *Server {
	s := &Server{
		fs:        c.FS,
		auth:      newAuthenticator(c),
		guard:     newGuard(c),
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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// allowed are the methods, as in Allow.
const allowed = "GET, HEAD, PUT, POST, DELETE, OPTIONS"

// routes are one catch-all per method: the router must not clean, redirect
// or match anything, because every path is a name.
func (s *Server) routes() http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.HandleOPTIONS = false
	router.HandleMethodNotAllowed = true
	for method, h := range map[string]handler{
		http.MethodGet:     s.get,
		http.MethodHead:    s.get,
		http.MethodPut:     s.put,
		http.MethodPost:    s.put,
		http.MethodDelete:  s.delete,
		http.MethodOptions: s.options,
	} {
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

// request is one request on its way through a handler.
type request struct {
	*http.Request
	w   http.ResponseWriter
	key string // the path without its first slash
	who identity
}

// handler serves a request that may proceed, or returns why not; then it
// wrote nothing.
type handler func(*request) error

// enter admits requests.
func (s *Server) enter(h handler) httprouter.Handle {
	return func(w http.ResponseWriter, hr *http.Request, _ httprouter.Params) {
		r := &request{Request: hr, w: w}
		w.Header().Set("X-Request-Id", httpapi.RequestID(hr.Context()))
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
// before it is known who asks and that they may.
func (s *Server) run(h handler, r *request) error {
	k := r.client()
	if !s.slots.Take(k, 1) {
		return apierr.ErrManyRequests
	}
	defer s.slots.Give(k, 1)
	return h(r)
}

// client is by whom slots are counted: the user, else the address.
func (r *request) client() fair.Key {
	if id := r.who.subject.User; id != "" {
		return fair.User(string(id))
	}
	if r.who.user != "" {
		return fair.User(r.who.user) // a local account: "uid:N" is nobody's ID
	}
	return fair.Address(r.RemoteAddr)
}

func (s *Server) admit(r *request) (err error) {
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
	if r.who, err = s.auth.identify(r.Request, s.fs); err != nil {
		return err
	}
	httpapi.NoteUser(r.Context(), r.who.name, string(r.who.subject.User), r.who.subject.UID)
	// From here on vfs decides what may be done.
	r.Request = r.WithContext(vfs.WithSubject(r.Context(), &r.who.subject))
	return nil
}

// options tells what can be done (RFC 9110, section 9.3.7).
func (s *Server) options(r *request) error {
	httpapi.Note(r.Context(), "OPTIONS", "", nil)
	h := r.w.Header()
	h.Set("Allow", allowed)
	h.Set("Accept-Ranges", "bytes")
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}
