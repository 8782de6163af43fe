package fair

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

const (
	// maxFrame is the longest frame of HTTP/2 that is taken: the least that RFC
	// 9113 allows (section 4.2), since all of one is kept until it is there.
	maxFrame = 16 << 10
	// blockBytes is what a head in several frames may cost before its last: the
	// limit of its length counts 32 bytes for a field, which takes 40, and twice
	// that while the list of them grows.
	blockBytes = 192 << 10
	// blockFactor is what a byte of a head may cost so: one byte is a field.
	blockFactor = 80
	// startTime is how long heads are charged that never become a request: http2
	// refuses some itself.
	startTime = time.Second
	// leastUnread is how much of the bodies on a connection may be unread
	// without a share.
	leastUnread = maxFrame
	// maxUnanswered bounds the PING and SETTINGS whose answers are not sent yet:
	// they are kept until then.
	maxUnanswered = 64
	// prefaceBytes are what a client sends before its first frame, and
	// frameHead is what a frame begins with (RFC 9113, sections 3.4 and 4.1).
	prefaceBytes, frameHead = 24, 9
)

// frameConn counts what an HTTP/2 connection keeps for its client:
//
//   - the head of a request that comes in several frames; without a share it
//     ends the connection;
//   - requests that run, until their answer was written; without a share they are
//     not served;
//   - heads whose requests do not run yet, and bytes of bodies that no handler
//     read, which is what the server's window of the connection shows; without a
//     share, reading waits.
type frameConn struct {
	*tls.Conn
	limit   time.Duration
	in, out frameScanner

	mu         sync.Mutex // a leaf but for Pool's
	wake       *sync.Cond // a reader that waits
	block      bool       // within a head of several frames
	refused    bool       // such a head had no share
	starting   int        // heads whose request does not run yet
	startBytes int64      // what they may cost
	lastStream uint32
	forgive    *time.Timer         // of starting; runs while a reader waits
	open       map[uint32]struct{} // streams
	running    int                 // requests, at most one of each open stream
	runBytes   int64               // what they cost
	unread     int64               // of bodies
	unanswered int                 // PING and SETTINGS without their ACK
	share      Holder              // which all that is charged to
	ended      bool
}

func newFrameConn(c *tls.Conn, pool *Pool, k Key, limit time.Duration) *frameConn {
	f := &frameConn{Conn: c, limit: limit, open: map[uint32]struct{}{}}
	f.share, _ = pool.Hold(k, 0)
	f.wake = sync.NewCond(&f.mu)
	f.in.skip = prefaceBytes
	f.in.head, f.in.done = f.came, f.passed
	f.out.done = f.sent
	return f
}

// Read implements net.Conn.
func (f *frameConn) Read(p []byte) (int, error) {
	f.mu.Lock()
	for !f.ended && f.mustWait() {
		if f.starting > 0 && f.forgive == nil {
			f.forgive = time.AfterFunc(startTime, f.forgiven)
		}
		f.wake.Wait()
	}
	f.mu.Unlock()
	n, err := f.Conn.Read(p)
	f.mu.Lock()
	f.in.scan(p[:n])
	refused := f.refused
	f.mu.Unlock()
	if refused {
		return 0, errHeadShare
	}
	return n, err
}

// mustWait reports whether the connection may keep no more. f.mu is held.
func (f *frameConn) mustWait() bool {
	return f.unanswered >= maxUnanswered || !f.charge()
}

// charge makes what is held what is due, as far as the client may have it. Less
// is always possible. f.mu is held.
func (f *frameConn) charge() bool {
	if f.ended {
		return true
	}
	due := f.startBytes + f.runBytes + max(0, f.unread-leastUnread)
	if f.block {
		due += blockBytes
	}
	return f.share.Set(due)
}

// came takes the head of a frame. f.mu is held, as for passed and sent.
func (f *frameConn) came(h http2.FrameHeader) {
	if h.Type == http2.FrameHeaders && h.StreamID > f.lastStream { // no trailer
		f.lastStream = h.StreamID
		f.open[h.StreamID] = struct{}{}
		f.starting++
		f.startBytes += min(int64(h.Length)*blockFactor, blockBytes)
	}
	switch {
	case asks(h):
		f.unanswered++
	case h.Type == http2.FrameRSTStream:
		f.closed(h.StreamID)
	case h.Type == http2.FrameData:
		f.unread += int64(h.Length)
	case h.Type == http2.FrameHeaders && !h.Flags.Has(http2.FlagHeadersEndHeaders):
		f.block = true
		f.refused = !f.charge()
		_ = f.Conn.SetReadDeadline(time.Now().Add(f.limit))
	}
}

// runs is notified that a request runs, and what it costs. It reports whether the
// client has a share for it.
func (f *frameConn) runs(cost int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.starting > 0 { // was not forgiven
		f.startBytes -= f.startBytes / int64(f.starting)
		f.starting--
	}
	f.runBytes += cost
	ok := f.charge()
	if ok {
		f.running++
	} else {
		f.runBytes -= cost
		f.charge()
	}
	f.wake.Broadcast()
	return ok
}

// closed is notified that a stream has ended. Which of the requests was on it nobody
// knows: it counts as the average one. f.mu is held.
func (f *frameConn) closed(stream uint32) {
	delete(f.open, stream)
	for f.running > len(f.open) {
		f.runBytes -= f.runBytes / int64(f.running)
		f.running--
	}
	f.charge()
	f.wake.Broadcast()
}

// forgiven ends the wait for requests that did not run.
func (f *frameConn) forgiven() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgive, f.starting, f.startBytes = nil, 0, 0
	f.charge()
	f.wake.Broadcast()
}

// passed takes a frame that is complete.
func (f *frameConn) passed(h http2.FrameHeader, _ []byte) {
	if f.block && h.Type == http2.FrameContinuation && h.Flags.Has(http2.FlagContinuationEndHeaders) {
		f.block = false
		f.charge()
		_ = f.Conn.SetReadDeadline(time.Time{})
	}
}

// sent takes a frame to the client. What it may send more on the connection
// was read.
func (f *frameConn) sent(h http2.FrameHeader, payload []byte) {
	if h.Type == http2.FrameWindowUpdate && h.StreamID == 0 && len(payload) == 4 {
		f.unread = max(0, f.unread-int64(binary.BigEndian.Uint32(payload)))
		f.wake.Broadcast()
	}
	switch {
	case acknowledges(h):
		f.unanswered--
		f.wake.Broadcast()
	case h.Type == http2.FrameRSTStream, endsStream(h):
		f.closed(h.StreamID)
	}
}

// asks reports whether a frame has an ACK coming (RFC 9113, sections 6.5 and 6.7).
func asks(h http2.FrameHeader) bool {
	return (h.Type == http2.FramePing || h.Type == http2.FrameSettings) && !h.Flags.Has(http2.FlagPingAck)
}

// endsStream reports whether nothing follows in its direction.
func endsStream(h http2.FrameHeader) bool {
	return (h.Type == http2.FrameData || h.Type == http2.FrameHeaders) && h.Flags.Has(http2.FlagDataEndStream)
}

// acknowledges reports whether it is one.
func acknowledges(h http2.FrameHeader) bool {
	return (h.Type == http2.FramePing || h.Type == http2.FrameSettings) && h.Flags.Has(http2.FlagPingAck)
}

// Write implements net.Conn. http2 has one write at a time.
func (f *frameConn) Write(p []byte) (int, error) {
	f.mu.Lock()
	f.out.scan(p)
	f.mu.Unlock()
	return f.Conn.Write(p)
}

// end gives back what is held. The connection was closed.
func (f *frameConn) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.share.End()
	if f.forgive != nil {
		f.forgive.Stop()
	}
	f.wake.Broadcast()
}

var _ net.Conn = (*frameConn)(nil)

// frameScanner finds the frames in one direction of a connection.
type frameScanner struct {
	// head is called with a frame's head, which may be nil, and done with a
	// frame's end and the payload of a short one.
	head func(http2.FrameHeader)
	done func(http2.FrameHeader, []byte)

	skip    int // before the next frame's head
	buf     [frameHead]byte
	n       int // of buf
	frame   http2.FrameHeader
	left    int // of its payload
	payload [4]byte
	kept    int
}

// scan is given what passed.
func (s *frameScanner) scan(p []byte) {
	for len(p) > 0 {
		switch {
		case s.skip > 0:
			n := min(s.skip, len(p))
			s.skip -= n
			p = p[n:]
		case s.n < frameHead:
			n := copy(s.buf[s.n:], p)
			s.n += n
			if p = p[n:]; s.n == frameHead {
				s.begin()
			}
		default:
			n := min(s.left, len(p))
			s.kept += copy(s.payload[s.kept:], p[:n])
			s.left -= n
			p = p[n:]
		}
		if s.n == frameHead && s.left == 0 {
			s.n = 0
			s.done(s.frame, s.payload[:s.kept])
		}
	}
}

// begin parses a frame's head (RFC 9113, section 4.1).
func (s *frameScanner) begin() {
	s.left, s.kept = int(s.buf[0])<<16|int(s.buf[1])<<8|int(s.buf[2]), 0
	s.frame = http2.FrameHeader{Length: uint32(s.left), Type: http2.FrameType(s.buf[3]), Flags: http2.Flags(s.buf[4]),
		StreamID: binary.BigEndian.Uint32(s.buf[5:]) &^ (1 << 31)}
	if s.head != nil {
		s.head(s.frame)
	}
}
