package httpapi

import (
	"io"
	"net/http"
	"time"
)

const (
	// maxDrainBytes bounds what is read and thrown away of a body that was
	// refused halfway: a part of a multipart upload as clients cut them, so
	// that what they see is the answer and not a broken connection.
	maxDrainBytes = 64 << 20
	// maxDrainTime bounds how long that may take.
	maxDrainTime = 15 * time.Second
)

// trackedBody is a request body that knows whether it was begun and ended.
type trackedBody struct {
	io.ReadCloser
	begun, ended bool
}

// Read implements io.Reader.
func (b *trackedBody) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// drain reads on, within bounds, to the end of a body that a handler left
// halfway. Most clients send all of a body before they read the answer, and
// net/http closes the connection under them. A body that was not begun stays
// unread: the client may be waiting for a 100 that it must not get.
func (b *trackedBody) drain(w http.ResponseWriter) {
	if !b.begun || b.ended {
		return
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(maxDrainTime))
	_, _ = io.CopyN(io.Discard, b.ReadCloser, maxDrainBytes)
	_ = ctl.SetReadDeadline(time.Time{})
}
