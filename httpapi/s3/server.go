package s3

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/guess"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// Config of a Server. The zero value of each field means its default.
type Config struct {
	// Region that signatures must name; "" takes any and answers as us-east-1.
	Region string
	// Domains are the service domains: bucket.DOMAIN is a bucket, DOMAIN
	// itself is path style.
	Domains []string
	// BareHosts takes every other host name with a dot for a bucket; with
	// Domains, that is so in any case.
	BareHosts bool
	// V2 says where Signature Version 2 is accepted.
	V2 sigv4.V2
	// MaxRequests bounds requests in flight; others get 503 SlowDown.
	MaxRequests int
	// MaxObjectBytes bounds a single PUT or POST; default vfs.MaxPutBytes.
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
	fs     *vfs.FS
	cfg    Config
	verify *sigv4.Verifier
	router *router
	slots  *fair.Pool // requests in flight
	forms  *fair.Pool // forms whose fields are being read
	// documents is memory, in bytes, for large XML bodies and listings.
	documents *fair.Pool
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

// request is one request on its way through an operation.
type request struct {
	*Server
	w      http.ResponseWriter
	r      *http.Request
	asks   vfs.SubjectContext
	ctx    context.Context // is asks
	q      url.Values
	op     *operation
	bucket string
	key    string
	// hostBucket is the bucket that the Host header named, "" in path style.
	hostBucket string
	sig        *sigv4.Signature // nil: anonymous, or a form not yet read
	user       vfs.User         // of id
	id         identity
	info       vfs.BucketInfo // of bucket, if the right to it was asked for
	values     []string       // backs header values
	slotOf     fair.Key       // who holds the slot of this request
	slotted    bool
	memory     int64 // taken of documents
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q := &request{Server: s, w: w, r: r, asks: vfs.SubjectContext{Context: r.Context()}}
	q.ctx = &q.asks
	q.become(identity{}) // until it is known who asks
	h := w.Header()
	h["X-Amz-Request-Id"] = q.one(httpapi.RequestID(q.ctx))
	h["X-Amz-Id-2"] = hostIDs
	defer q.leave()
	if err := q.dispatch(); err != nil {
		q.fail(err)
	}
}

// dispatch finds bucket, key and operation, and runs it.
func (q *request) dispatch() error {
	var err error
	if q.q, err = parseQuery(q.r.URL.RawQuery); err != nil {
		return newError(codeInvalidURI)
	}
	q.hostBucket = q.bucketOfHost()
	ops, err := q.route()
	q.share(q)
	if err != nil {
		return err
	}
	return q.execute(ops)
}

// parseQuery spares most requests an empty map.
func parseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	return url.ParseQuery(raw)
}

// one returns a list of one header value. The lists of a response share one
// allocation while it lasts.
func (q *request) one(v string) []string {
	if q.values == nil {
		q.values = make([]string, 0, headerValues)
	}
	n := len(q.values)
	if n == cap(q.values) {
		return []string{v}
	}
	q.values = append(q.values, v)
	return q.values[n : n+1 : n+1]
}

// headerValues is what most responses need.
const headerValues = 8

// hostID stands in x-amz-id-2, which clients print and nobody reads.
const hostID = "ogw"

var hostIDs = []string{hostID} // never changed

// execute finds operation and identity, and runs it.
func (q *request) execute(ops methodOps) error {
	if q.bucket == "" && q.key != "" {
		return newError(codeInvalidBucketName)
	}
	op, err := q.choose(ops)
	q.op = op
	httpapi.Note(q.ctx, op.name, "", nil)
	if q.hostBucket != "" { // else the path is it
		httpapi.NoteTarget(q.ctx, "/"+q.bucket+"/"+q.key, "")
	}
	if err != nil {
		return err
	}
	if op.needs != needPreflight { // which has the query of another request, signed
		if err := q.authenticate(); err != nil {
			return err
		}
		q.noteUser()
	}
	if op.handle == nil {
		return newError(codeNotImplemented).withMessage("%s is not implemented.", op.name)
	}
	if err := q.authorize(); err != nil {
		return err
	}
	if op.needs != needForm { // a form enters when its fields were read
		if err := q.enter(); err != nil {
			return err
		}
	}
	return op.handle(q)
}

// enter takes a slot for the request: nothing is held, and no body is read,
// for one that is not authenticated and may not do what it asks for.
func (q *request) enter() error {
	q.slotOf = q.client()
	if q.slotted = q.slots.Take(q.slotOf, 1); !q.slotted {
		return newError(codeSlowDown)
	}
	return nil
}

// takeMemory counts n bytes that a document takes until the request ends, of
// which nobody may have all.
func (q *request) takeMemory(n int64) error {
	if !q.documents.Take(q.slotOf, n) {
		return newError(codeSlowDown)
	}
	q.memory += n
	return nil
}

// leave gives everything back.
func (q *request) leave() {
	if q.memory > 0 {
		q.documents.Give(q.slotOf, q.memory)
		q.memory = 0
	}
	if q.slotted {
		q.slots.Give(q.slotOf, 1)
		q.slotted = false
	}
}

// client is by whom slots and memory are counted: the user, else the address.
func (q *request) client() fair.Key {
	if q.id.anonymous() {
		return fair.Address(q.r.RemoteAddr)
	}
	return fair.User(string(q.id.id()))
}

// fail answers with an error, once.
func (q *request) fail(err error) {
	var se *httpapi.SendError
	if errors.As(err, &se) {
		// The header is gone: only a broken connection tells the client.
		httpapi.Note(q.ctx, "", "", err)
		panic(http.ErrAbortHandler)
	}
	httpapi.Note(q.ctx, "", "", err)
	writeError(q.w, q.r, q.bucket, q.key, err)
}
