package httpapi

import (
	"io"
	"net/http"
	"sync"

	"ogw/httpapi/fair"
)

const (
	// SendBufferBytes is the size of a response buffer: large enough that
	// system calls do not matter, small enough for thousands of clients.
	SendBufferBytes = 256 << 10
	// largeSendBytes is the size of the buffers that the first maxLargeSends
	// large responses use (64 MiB in all): the store reads fastest so.
	largeSendBytes = 1 << 20
	maxLargeSends  = 64
	// maxSends bounds the buffers of SendBufferBytes in use (32 MiB in all). Those
	// who come later, and small responses, have one of leastSendBytes, a block of
	// the store: a client who is slow on many connections holds less.
	maxSends       = 128
	leastSendBytes = 64 << 10
)

// sendPool lends the buffers of responses.
var sendPool = struct {
	least, small, large sync.Pool
	smalls, slots       *fair.Pool // small and large buffers in use
}{
	least:  sync.Pool{New: func() any { return newBuffer(leastSendBytes) }},
	small:  sync.Pool{New: func() any { return newBuffer(SendBufferBytes) }},
	large:  sync.Pool{New: func() any { return newBuffer(largeSendBytes) }},
	smalls: fair.NewPool(maxSends), slots: fair.NewPool(maxLargeSends),
}

func newBuffer(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// borrow returns a buffer for a response of n bytes, and its return.
func borrow(w http.ResponseWriter, n int64) (buf []byte, giveBack func()) {
	if n <= leastSendBytes {
		return lend(&sendPool.least, nil, fair.Key{})
	}
	k := clientOf(w)
	switch {
	case n > SendBufferBytes && sendPool.slots.Take(k, 1):
		return lend(&sendPool.large, sendPool.slots, k)
	case sendPool.smalls.Take(k, 1):
		return lend(&sendPool.small, sendPool.smalls, k)
	}
	return lend(&sendPool.least, nil, k)
}

// lend takes a buffer of p, which counts as k's in a place of slots, if any.
func lend(p *sync.Pool, slots *fair.Pool, k fair.Key) (buf []byte, giveBack func()) {
	b := p.Get().(*[]byte)
	return *b, func() {
		p.Put(b)
		if slots != nil {
			slots.Give(k, 1)
		}
	}
}

// clientOf returns by whom the large buffers are counted.
func clientOf(w http.ResponseWriter) fair.Key {
	f, ok := w.(*response)
	switch {
	case !ok:
		return fair.Key{}
	case f.rec.Identity != "":
		return fair.User(f.rec.Identity)
	}
	return fair.Address(f.rec.Remote)
}

// Send copies n bytes at off from src to w through one pooled buffer. It
// fails with a SendError, always.
func Send(w http.ResponseWriter, src io.ReaderAt, off, n int64) error {
	s := sender{w: w, src: src}
	return s.run(off, n)
}

// Respond writes the header with status, and then as Send does. The first
// bytes are read before: an error that is no SendError is theirs, nothing was
// sent, and the caller can still answer with it.
func Respond(w http.ResponseWriter, status int, src io.ReaderAt, off, n int64) error {
	s := sender{w: w, src: src, status: status}
	return s.run(off, n)
}

type sender struct {
	w      http.ResponseWriter
	src    io.ReaderAt
	status int // to be written before the first byte; 0: was written
}

func (s *sender) run(off, n int64) error {
	buf, giveBack := borrow(s.w, n)
	defer giveBack()
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
