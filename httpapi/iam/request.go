package iam

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/iam/oidc"
	"ogw/httpapi/sigv4"
	"ogw/vfs/clients/guess"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// Config of a Server. The zero value of each field but Next means its default.
type Config struct {
	// Next is the door of all other requests of the port.
	Next http.Handler
	// Sends is what replies are sent with; nil for the door's own.
	Sends *httpapi.Sends
	// Guesses slows down wrong signatures; nil does not.
	Guesses *guess.Guard
	Logger  *slog.Logger
	// Done is called after every request, for metrics.
	Done func(*httpapi.Record)
	// Now is the clock for signatures.
	Now func() time.Time
}

// Server is the door. It is an http.Handler.
type Server struct {
	fs     namespace
	cfg    Config
	verify map[string]*sigv4.Verifier // by service
	// bodies are those of signed requests; strangers have their own, as nobody knows
	// them before they are read.
	bodies, strangers *fair.Pool
	// unproven divides bodies among the access keys that are named, until the
	// signature is verified.
	unproven     *fair.Pool
	strangerTime time.Duration
	handler      http.Handler
	// operations are those of each service.
	operations map[string]map[string]handler
	issuers    *oidc.Verifier
}

// handler runs an operation and returns its result, nil if it has none.
type handler func(*request) (any, error)

// request is one request on its way through an operation.
type request struct {
	*Server
	r       *http.Request
	ctx     context.Context
	service string
	form    url.Values
	user    users.User   // the caller
	key     string       // by which access key
	session *iam.Session // nil: by one of the user's own
}
