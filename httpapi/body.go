package httpapi

import (
	"io"
	"net/http"

	"ogw/httpapi/fair"
)

// plainSends is for who writes to no response of Frame's.
var plainSends = NewSends(1)

// borrow returns a buffer for a response of n bytes, and its return.
func borrow(w http.ResponseWriter, n int64) (buf []byte, giveBack func()) {
	f, framed := w.(*response)
	switch {
	case !framed:
		return plainSends.much(fair.Key{}, n)
	case n <= leastSendBytes:
		return f.sends.little()
	}
	return f.sends.much(clientOf(f.rec), n)
}

// clientOf returns by whom the large buffers are counted.
func clientOf(rec *Record) fair.Key {
	if rec.Identity != "" {
		return fair.User(rec.Identity)
	}
	return fair.Address(rec.Remote)
}

// Send copies n bytes at off from src to w through one pooled buffer, or moves them
// through a pipe where src and the connection can. It fails with a SendError, always.
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
	pages := splicesOf(s.w, s.src, len(buf))
	defer pages.end()
	for n > 0 {
		if got := pages.fill(off, n); got > 0 {
			s.header(n)
			if err := pages.send(); err != nil {
				return &SendError{Err: err}
			}
			off += got
			n -= got
			continue
		}
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
		s.header(n)
		if _, err := s.w.Write(p); err != nil {
			return &SendError{Err: err}
		}
		off += int64(got)
		n -= int64(got)
	}
	s.header(0)
	return nil
}

// header is called before the first byte of n.
func (s *sender) header(n int64) {
	if s.status != 0 {
		gather(s.w, s.status, n)
		s.w.WriteHeader(s.status)
		s.status = 0
	}
}

// gather announces to the connection of a response that a body of n bytes follows its head.
func gather(w http.ResponseWriter, status int, n int64) {
	f, ok := w.(*response)
	if !ok || n > gatherBytes || f.rec.Method != http.MethodGet || status != http.StatusOK && status != http.StatusPartialContent {
		return
	}
	if c := connOf(f.conn); c != nil {
		c.gather.body = int(n)
	}
}
