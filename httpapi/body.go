package httpapi

import (
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// IdleTimeout is how long a transfer may stand still before its
	// connection is dropped. Clients that back up to slow media pause for
	// tens of seconds; a dead peer must not hold a request for ever.
	IdleTimeout = 2 * time.Minute
	// deadlineStep is how stale a deadline may get before it is set anew:
	// setting one for every read costs a timer operation each.
	deadlineStep = time.Second
	// SendBufferBytes is the size of a response buffer: large enough that
	// system calls do not matter, small enough for thousands of clients.
	SendBufferBytes = 256 << 10
	// largeSendBytes is the size of the buffers that the first maxLargeSends
	// large responses use (64 MiB in all): the store reads fastest so.
	largeSendBytes = 1 << 20
	maxLargeSends  = 64
)

// Body is a request body that fails after IdleTimeout without a byte.
type Body struct {
	src  io.ReadCloser
	ctl  *http.ResponseController
	idle time.Duration
	next time.Time
	last time.Time // no read may wait longer than this; zero: none is set
	done bool
}

// Until sets a time after which no read waits any more; the zero time takes
// it away.
func (b *Body) Until(t time.Time) { b.last, b.next = t, time.Time{} }

// NewBody returns the body of r. w is the response of the same request.
func NewBody(w http.ResponseWriter, r *http.Request) *Body {
	return &Body{src: r.Body, ctl: http.NewResponseController(w), idle: IdleTimeout}
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if now := time.Now(); !b.done && now.After(b.next) {
		end := now.Add(b.idle)
		if !b.last.IsZero() && b.last.Before(end) {
			end = b.last
		}
		_ = b.ctl.SetReadDeadline(end) // without deadlines (tests) there is no limit
		b.next = now.Add(min(deadlineStep, b.idle/4))
	}
	n, err := b.src.Read(p)
	if err != nil && !b.done {
		// The server goes on reading to notice a client that leaves; a
		// deadline left behind would cancel a request that takes its time.
		b.done = true
		_ = b.ctl.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Close implements io.Closer.
func (b *Body) Close() error { return b.src.Close() }

// sendPool lends the buffers of responses.
var sendPool = struct {
	small, large sync.Pool
	slots        chan struct{} // one for each large buffer in use
}{
	small: sync.Pool{New: func() any { return newBuffer(SendBufferBytes) }},
	large: sync.Pool{New: func() any { return newBuffer(largeSendBytes) }},
	slots: make(chan struct{}, maxLargeSends),
}

func newBuffer(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// borrow returns a buffer for a response of n bytes, and its return.
func borrow(n int64) (buf []byte, giveBack func()) {
	if n > SendBufferBytes {
		select {
		case sendPool.slots <- struct{}{}:
			b := sendPool.large.Get().(*[]byte)
			return *b, func() {
				sendPool.large.Put(b)
				<-sendPool.slots
			}
		default:
		}
	}
	b := sendPool.small.Get().(*[]byte)
	return *b, func() { sendPool.small.Put(b) }
}

// Send copies n bytes at off from src to w through one pooled buffer. It
// fails when the client takes nothing for IdleTimeout, always with a
// SendError.
func Send(w http.ResponseWriter, src io.ReaderAt, off, n int64) error {
	s := sender{w: w, src: src, idle: IdleTimeout}
	return s.run(off, n)
}

// Respond writes the header with status, and then as Send does. The first
// bytes are read before: an error that is no SendError is theirs, nothing was
// sent, and the caller can still answer with it.
func Respond(w http.ResponseWriter, status int, src io.ReaderAt, off, n int64) error {
	s := sender{w: w, src: src, idle: IdleTimeout, status: status}
	return s.run(off, n)
}

type sender struct {
	w      http.ResponseWriter
	src    io.ReaderAt
	idle   time.Duration
	status int // to be written before the first byte; 0: was written
}

func (s *sender) run(off, n int64) error {
	buf, giveBack := borrow(n)
	defer giveBack()
	ctl := http.NewResponseController(s.w)
	var next time.Time
	for n > 0 {
		p := buf[:min(n, int64(len(buf)))]
		got, err := s.src.ReadAt(p, off)
		if got < len(p) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if s.status != 0 {
				return err
			}
			return &SendError{Read: true, Err: err}
		}
		s.header()
		if now := time.Now(); now.After(next) {
			_ = ctl.SetWriteDeadline(now.Add(s.idle))
			next = now.Add(min(deadlineStep, s.idle/4))
		}
		if _, err := s.w.Write(p); err != nil {
			return &SendError{Err: err}
		}
		off += int64(got)
		n -= int64(got)
	}
	s.header()
	return nil
}

func (s *sender) header() {
	if s.status != 0 {
		s.w.WriteHeader(s.status)
		s.status = 0
	}
}

// SendError is a response that broke off after its header was sent. The
// connection must be dropped (panic with http.ErrAbortHandler), so that the
// client does not take the part for the whole.
type SendError struct {
	Read bool // the store failed, not the client
	Err  error
}

// Error implements error.
func (e *SendError) Error() string {
	if e.Read {
		return "read content: " + e.Err.Error()
	}
	return "send response: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
