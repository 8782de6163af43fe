package httpapi

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
)

const (
	// maxDrainBytes bounds what is read and thrown away of a body that was
	// refused halfway: a part of a multipart upload as clients cut them, so
	// that what they see is the answer and not a broken connection.
	maxDrainBytes = 64 << 20
	// maxDrainTime bounds how long that may take.
	maxDrainTime = 15 * time.Second
)

// trackedBody is a request body that knows whether it was begun and ended,
// and fails when it stands still.
type trackedBody struct {
	io.ReadCloser
	pace         pace
	begun, ended bool
}

// Read implements io.Reader.
func (b *trackedBody) Read(p []byte) (int, error) {
	b.begun = true
	if b.ended {
		return b.ReadCloser.Read(p)
	}
	b.pace.begin()
	n, err := b.ReadCloser.Read(p)
	b.pace.end(n)
	if err != nil {
		// The server goes on reading to notice a client that leaves; a
		// deadline left behind would cancel a request that takes its time.
		b.ended = true
		// One that passed stays: net/http reads the rest before it sends the
		// answer, and would wait for ever for a client that stands still.
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			b.pace.clear()
		}
	}
	return n, err
}

// expire bounds how long net/http waits for a body that nobody will read.
func (b *trackedBody) expire() {
	if !b.ended {
		b.pace.until(time.Since(started) + maxDrainTime)
	}
}

// boundBody is for http.Server.ConnState. What net/http refuses by itself (417, for another Expect
// than 100-continue), or a handler before Frame, is answered after its body was read, for which
// there would be no limit. Who reads a body, or waits for the client to leave, sets a deadline of
// their own. A connection of HTTP/2 is not that of one request.
func boundBody(c net.Conn, s http.ConnState) {
	if s != http.StateActive {
		return
	}
	if t, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok && t.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(maxDrainTime)) // that of a connection that ended fails
}

// drain reads on, within bounds, to the end of a body that a handler left
// halfway. Most clients send all of a body before they read the answer, and
// net/http closes the connection under them. A body that was not begun stays
// unread: the client may be waiting for a 100 that it must not get.
func (b *trackedBody) drain() {
	if !b.begun || b.ended {
		return
	}
	b.expire()
	// Without the end, the deadline stays for what net/http still reads (see Read).
	if _, err := io.CopyN(io.Discard, b.ReadCloser, maxDrainBytes); errors.Is(err, io.EOF) {
		b.pace.clear()
	}
}
