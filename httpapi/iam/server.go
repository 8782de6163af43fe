package iam

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/internal/guess"
	"ogw/vfs"
	"ogw/vfs/users"
)

const (
	// maxBody bounds a request: the longest text of a policy that IAM takes, 128
	// KiB, each byte as three.
	maxBody = 512 << 10
	// maxBodies bounds the bodies that are read or worked on at a time: 32 MiB.
	maxBodies = 64
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
	fs      *vfs.FS
	cfg     Config
	verify  map[string]*sigv4.Verifier // by service
	bodies  *fair.Pool
	handler http.Handler
	// operations are those of each service.
	operations map[string]map[string]handler
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if serviceOf(r) == "" {
		s.cfg.Next.ServeHTTP(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// serviceOf is the service that a request is signed for, "" for one of another door.
func serviceOf(r *http.Request) string {
	if r.Method != http.MethodPost || r.URL.Path != "/" {
		return ""
	}
	auth := r.Header.Get("Authorization")
	for service := range namespaces {
		if strings.Contains(auth, "/"+service+"/aws4_request") {
			return service
		}
	}
	return ""
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
	user    users.User // who asks
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q := &request{Server: s, r: r, ctx: r.Context(), service: serviceOf(r)}
	// Nobody is asked for after this but who asks; so far that is nobody.
	q.ctx = vfs.WithSubject(q.ctx, vfs.Nobody)
	body, err := q.answer()
	if err != nil {
		httpapi.Note(q.ctx, "", "", err)
		writeError(w, r, q.service, err)
		return
	}
	send(w, http.StatusOK, body)
}

// answer runs the request and returns the document that answers it.
func (q *request) answer() ([]byte, error) {
	key := fair.Address(q.r.RemoteAddr)
	if !q.bodies.Take(key, 1) {
		return nil, errThrottling
	}
	defer q.bodies.Give(key, 1)
	if err := q.authenticate(); err != nil {
		return nil, err
	}
	action := q.form.Get("Action")
	op, ok := q.operations[q.service][action]
	if !ok {
		return nil, newError("InvalidAction", http.StatusBadRequest, "Could not find operation %.64s for version %.16s", action, q.form.Get("Version"))
	}
	httpapi.Note(q.ctx, action, "", nil)
	httpapi.NoteTarget(q.ctx, q.target(), "")
	result, err := op(q)
	if err != nil {
		return nil, err
	}
	return document(q.ctx, q.service, action, result)
}

// target is what an operation acts on, for the audit.
func (q *request) target() string {
	for _, name := range []string{"UserName", "GroupName", "PolicyArn", "PolicyName"} {
		if v := q.form.Get(name); v != "" {
			return v
		}
	}
	return ""
}
