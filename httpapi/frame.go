package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"ogw/httpapi/peer"
)

// Limits on what a client may send before a handler sees it.
const (
	// MaxHeaderBytes bounds the request line and headers: S3's 8 KiB of
	// headers, its 2 KiB of user metadata, and a key of 1024 bytes at three
	// characters each fit with room.
	MaxHeaderBytes = 64 << 10
	// HeaderTimeout bounds the wait for the headers of a request.
	HeaderTimeout = 30 * time.Second
	// MaxStreams bounds the requests at a time on one HTTP/2 connection: the
	// least that RFC 9113 recommends.
	MaxStreams = 100
	// KeepAliveTimeout is how long an idle connection is kept. Clients keep
	// theirs for 60 to 90 s; the server should not be the one to close.
	KeepAliveTimeout = 3 * time.Minute
)

// Record is what is known of a request when it ended.
type Record struct {
	RequestID string
	Method    string
	Path      string
	Remote    string
	Operation string // set by the door: GetObject, PUT, ...
	Identity  string // set by the door; "" is anonymous
	Subject   Subject
	Status    int
	BytesOut  int64
	Duration  time.Duration
	Err       error // what the door reported, if any
}

// FrameConfig of Frame.
type FrameConfig struct {
	Door   string       // in the log: "s3", "rest", "admin"
	Logger *slog.Logger // never nil
	// Sends is what replies are sent with; nil for the door's own.
	Sends *Sends
	// Done is called after each request, for metrics. May be nil.
	Done func(*Record)
	// Panic answers a request whose handler panicked before it wrote
	// anything. May be nil: a bare 500.
	Panic func(http.ResponseWriter, *http.Request)

	stall time.Duration // StallTime, except in tests
}

type recordKey struct{}

// Note informs Frame what the request turned out to be. Empty strings and a
// nil error leave what was noted before.
func Note(ctx context.Context, operation, identity string, err error) {
	rec, ok := ctx.Value(recordKey{}).(*Record)
	if !ok {
		return
	}
	if operation != "" {
		rec.Operation = operation
	}
	if identity != "" {
		rec.Identity = identity
	}
	if err != nil {
		rec.Err = err
	}
}

// framed is all that Frame keeps of one request, allocated at once. It is the
// request's context.
type framed struct {
	context.Context
	config *FrameConfig
	rec    Record
	start  time.Time
	w      response
	body   trackedBody
	r      *http.Request
}

// Value implements context.Context.
func (f *framed) Value(key any) any {
	if key == (recordKey{}) {
		return &f.rec
	}
	return f.Context.Value(key)
}

// Frame gives each request its ID, ends it when it stands still, contains
// panics, mends `Expect: 100-continue` with an empty body, and logs once.
func Frame(next http.Handler, c FrameConfig) http.Handler {
	if c.Sends == nil {
		c.Sends = NewSends(1)
	}
	c.stall = cmp.Or(c.stall, StallTime)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := &framed{Context: r.Context(), config: &c, start: time.Now()}
		p := pace{w: w, limit: c.stall, stream: r.ProtoMajor >= 2}
		f.w = response{ResponseWriter: w, rec: &f.rec, body: &f.body, sends: c.Sends, conn: f.Context, pace: p}
		f.w.pace.write = true
		f.body = trackedBody{ReadCloser: r.Body, ended: r.ContentLength == 0, pace: p}
		f.rec = Record{RequestID: NewRequestID(), Method: r.Method, Path: r.URL.Path, Remote: r.RemoteAddr,
			Subject: Subject{UID: NoUID, Agent: r.UserAgent()}}
		f.r = r.WithContext(f)
		f.r.Body = &f.body
		if r.ContentLength == 0 && strings.EqualFold(Field(r.Header, "Expect"), "100-continue") {
			// net/http answers 100 when the body is first read, and an empty
			// body never is. botocore waits for it and then takes the final
			// answer of this request for that of the next.
			w.WriteHeader(http.StatusContinue)
		}
		defer f.end()
		next.ServeHTTP(&f.w, f.r)
		if f.w.status >= 400 {
			f.body.drain()
		}
	})
}

// end contains a panic of the handler, and logs. It is deferred.
func (f *framed) end() {
	fault := recover()
	if fault != nil && fault != any(http.ErrAbortHandler) {
		f.rec.Err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		if f.w.status == 0 {
			answerPanic(&f.w, f.r, *f.config)
			fault = nil
		} else {
			fault = http.ErrAbortHandler
		}
	}
	f.rec.Status, f.rec.BytesOut, f.rec.Duration = f.w.status, f.w.bytes, time.Since(f.start)
	logRecord(f, f.config, &f.rec)
	if f.config.Done != nil {
		f.config.Done(&f.rec)
	}
	if fault != nil {
		panic(fault) // drops the connection
	}
	f.w.end()
}

func answerPanic(w http.ResponseWriter, r *http.Request, c FrameConfig) {
	w.Header().Set("Connection", "close")
	if c.Panic != nil {
		c.Panic(w, r)
		return
	}
	http.Error(w, "internal error", http.StatusInternalServerError)
}

// logRecord logs faults of ours as errors, refusals and what clients broke
// off as information, and all else for debugging: with it the answers that
// are part of normal work, such as to a client that asks what exists.
func logRecord(ctx context.Context, c *FrameConfig, rec *Record) {
	level := slog.LevelDebug
	switch {
	case rec.Status >= 500 && rec.Status != http.StatusNotImplemented:
		level = slog.LevelError
	case rec.Err != nil && isSendRead(rec.Err):
		level = slog.LevelError
	case rec.Status == http.StatusNotFound, rec.Status == http.StatusPreconditionFailed, rec.Status < 400 && rec.Status >= 300:
	case rec.Err != nil:
		level = slog.LevelInfo
	}
	if !c.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("door", c.Door), slog.String("request", rec.RequestID),
		slog.String("op", rec.Operation), slog.String("method", rec.Method), slog.String("path", rec.Path),
		slog.String("identity", rec.Identity), slog.String("remote", rec.Remote),
		slog.Int("status", rec.Status), slog.Int64("bytes", rec.BytesOut), slog.Duration("took", rec.Duration),
	}
	if rec.Err != nil {
		attrs = append(attrs, slog.String("error", rec.Err.Error()))
	}
	c.Logger.LogAttrs(ctx, level, "request", attrs...)
}

func isSendRead(err error) bool {
	var e *SendError
	return errors.As(err, &e) && e.Read
}

// response counts what goes out, and paces it.
type response struct {
	http.ResponseWriter
	rec    *Record
	body   *trackedBody // of the same request
	sends  *Sends
	conn   context.Context // of the connection, and of the request
	pace   pace
	status int
	bytes  int64
	failed bool // a write
}

func (w *response) WriteHeader(code int) {
	if w.status == 0 && code >= 200 {
		w.began(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

// began notes the status. What is written from here on, by net/http too when
// the handler is done, has a deadline; and so has what net/http reads of a
// body that nobody read, before it sends the answer. A handler that goes on
// reading puts that off.
func (w *response) began(code int) {
	w.status = code
	w.pace.begin()
	w.body.expire()
}

func (w *response) Write(p []byte) (written int, err error) {
	if w.status == 0 {
		w.began(http.StatusOK)
	}
	most := paceSliceBytes
	if w.pace.stream {
		most = streamSliceBytes
	}
	for {
		slice := p[:min(len(p), most)]
		w.pace.begin()
		n, err := w.ResponseWriter.Write(slice)
		w.pace.end(n)
		w.bytes += int64(n)
		written += n
		if p = p[len(slice):]; err != nil || len(p) == 0 {
			w.failed = w.failed || err != nil
			return written, err
		}
	}
}

// end is called when nothing more is written. What net/http still holds of an
// HTTP/2 answer, which is all of a small one, waits for the client after that; the
// deadline goes when the stream closes.
func (w *response) end() {
	if w.pace.stream && w.status != 0 && !w.failed {
		w.pace.begin()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// NewServer returns a server for h with the limits of this package. Requests
// as a whole have no time limit, on purpose: Frame ends those that stand still.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h,
		// net/http's own answer to `OPTIONS *` would pass by Frame and h, and wait
		// without a limit for the body.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: HeaderTimeout,
		IdleTimeout:       KeepAliveTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: MaxStreams},
		ConnContext:       peer.ConnContext,
		ConnState:         boundBody,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
