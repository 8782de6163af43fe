package httpapi

import (
	"io"
	"net/http"

	"ogw/vfs/clients/pipe"
)

// splicesDeclined is how often a source declines before all of a response is
// read: each may cost a pipe.
const splicesDeclined = 4

// splicer is a source that puts bytes into a pipe, as vfs.Object.Splice does.
type splicer interface {
	Splice(w int, off, n int64) (int64, error)
}

// splices is the part of a sender that copies nothing. The zero splices does nothing.
type splices struct {
	src      splicer
	w        *response
	pipe     *pipe.Pipe
	declined int
}

// splicesOf returns what sends src to w, which has a buffer of bufBytes. Small
// responses are not worth a pipe, and of large ones there are no more than buffers.
func splicesOf(rw http.ResponseWriter, src io.ReaderAt, bufBytes int) (sp splices) {
	from, able := src.(splicer)
	w, framed := rw.(*response)
	if able && framed && bufBytes == largeSendBytes && takesPages(w) {
		sp.src, sp.w = from, w
	}
	return sp
}

// takesPages reports whether the connection does: no TLS, and no frames of HTTP/2.
func takesPages(w *response) bool {
	if c := connOf(w.conn); c == nil || c.unsent.Socket() == nil || w.pace.stream {
		return false
	}
	_, ok := w.ResponseWriter.(io.ReaderFrom)
	return ok
}

// fill puts some of n bytes at off into the pipe, and returns how many: 0 if they
// are to be read.
func (sp *splices) fill(off, n int64) int64 {
	if sp.src == nil || sp.declined == splicesDeclined {
		return 0
	}
	if sp.pipe == nil {
		if sp.pipe = sp.w.sends.pipes.Get(); sp.pipe == nil {
			sp.declined = splicesDeclined
			return 0
		}
	}
	got, err := sp.pipe.Fill(func(w int) (int64, error) { return sp.src.Splice(w, off, min(n, pipe.Bytes)) })
	if err != nil || got == 0 {
		sp.declined++
		sp.end()
		return 0
	}
	return int64(got)
}

// send sends what fill took.
func (sp *splices) send() error {
	w := sp.w
	w.pace.begin()
	n, err := w.ResponseWriter.(io.ReaderFrom).ReadFrom(sp.pipe)
	w.pace.end(int(n))
	w.bytes += n
	if err == nil && sp.pipe.Len() > 0 {
		err = io.ErrShortWrite
	}
	return err
}

func (sp *splices) end() {
	if sp.pipe != nil {
		sp.w.sends.pipes.Put(sp.pipe)
		sp.pipe = nil
	}
}
