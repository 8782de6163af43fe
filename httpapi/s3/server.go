package s3

import (
	"log/slog"
	"net/http"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/vfs/clients/guess"
)

// Config of a Server. The zero value of each field means its default.
type Config struct {
	// Region that signatures must name; "" takes any and answers as us-east-1.
	Region string
	// Domains are the service domains, in any order: bucket.DOMAIN is a
	// bucket, DOMAIN itself is path style, also where it lies below another.
	Domains []string
	// BareHosts takes every other host name with a dot for a bucket; with
	// Domains, that is so in any case.
	BareHosts bool
	// V2 says where Signature Version 2 is accepted.
	V2 sigv4.V2
	// MaxRequests bounds requests in flight; others get 503 SlowDown.
	MaxRequests int
	// MaxObjectBytes bounds a single PUT or POST; default and limit are S3's 5 GiB.
	MaxObjectBytes int64
	// Sends is what replies are sent with; nil for the door's own.
	Sends *httpapi.Sends
	// Guesses slows down wrong signatures; nil does not.
	Guesses *guess.Guard
	Logger  *slog.Logger
	// Done is called after every request, for metrics.
	Done func(*httpapi.Record)
	// Now is the clock for signatures and policies.
	Now func() time.Time
}

// Server is the S3 door. It is an http.Handler.
type Server struct {
	fs     namespace
	cfg    Config
	verify *sigv4.Verifier
	router *router
	slots  *fair.Pool // requests in flight
	forms  *fair.Pool // forms whose fields are being read
	// documents is memory, in bytes, for large XML bodies and listings.
	documents *fair.Pool
	renames   renameTokens
	rules     corsCache
	handler   http.Handler
	// share lets pages of other origins see an answer.
	share func(*request)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Server) region() string {
	if s.cfg.Region == "" {
		return "us-east-1"
	}
	return s.cfg.Region
}
