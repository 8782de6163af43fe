package rest

import (
	"log/slog"
	"net/http"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
)

// Config of a Server.
type Config struct {
	FS     *vfs.FS
	Logger *slog.Logger // of requests; never nil
	// Done is called after every request, for metrics. May be nil.
	Done func(*httpapi.Record)
	// Tokens are bearer tokens that may do everything.
	Tokens []string
	// Guesses slows down wrong tokens and passwords; nil does not.
	Guesses *guess.Guard
	// Users admits the users of the store with basic credentials.
	Users bool
	// Owner of what tokens and open access write; nil is nobody.
	Owner *vfs.Cred
	// Hosts are names, besides loopback ones, by which an open door may be
	// addressed.
	Hosts []string
	// Origins are those whose pages may use the door, as browsers write them
	// ("https://app.example"). AnyOrigin is for doors that nobody comes into by what
	// browsers send along by themselves: with Tokens and without Users.
	Origins []string
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

// Server is the REST door. It is an http.Handler.
type Server struct {
	fs        objects
	auth      authenticator
	guard     guard
	cors      cors
	maxObject int64
	slots     *fair.Pool // requests in flight
	listings  *fair.Pool // bytes of listings that are being sent
	active    bool
	handler   http.Handler
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// request is one request on its way through a handler.
type request struct {
	*http.Request
	w   http.ResponseWriter
	key string // the path without its first slash
	who identity
	// shared reports whether a page of another origin may read the answer.
	shared bool
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
