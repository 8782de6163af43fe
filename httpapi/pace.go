package httpapi

import (
	"net/http"
	"time"
)

const (
	// StallTime is how long a transfer may wait for its client altogether,
	// beyond what its bytes earned: a client that stands still for so long
	// is gone, or wants to hold what the request holds.
	StallTime = 30 * time.Second
	// MinRate, in bytes per second, is what a transfer must move in the
	// long run: less than a modem did. Each byte earns its time at this rate.
	MinRate = 16 << 10
	// deadlineStep is how stale a deadline may get before it is set anew:
	// setting one for every read costs a timer operation each.
	deadlineStep = time.Second
	// paceSliceBytes is written at a time: one write of it costs two thirds of
	// what smaller ones do.
	paceSliceBytes = 1 << 20
	// paceFreeBytes takes less than StallTime at MinRate. A larger write is
	// given the time of the rest in advance, since nobody knows how far it came.
	paceFreeBytes = 448 << 10
)

// pace ends one direction of a request that stands still: waiting for the
// client uses credit, and bytes that move earn it again, up to limit. Only
// waiting counts: the time in which the store works is not the client's.
type pace struct {
	ctl    *http.ResponseController
	write  bool          // the direction
	limit  time.Duration // StallTime, except in tests
	spent  time.Duration // of the limit
	begun  time.Time     // of the wait
	set    time.Time     // the deadline; zero: none
	latest time.Time     // no wait may be longer; zero: no such bound
	// stream is set with HTTP/2, where a deadline that passes ends the stream
	// though nobody waits for it.
	stream bool
}

// begin is called before the connection is waited for, to write n bytes.
func (p *pace) begin(n int) {
	p.begun = time.Now()
	end := p.begun.Add(p.limit - p.spent + time.Duration(max(0, n-paceFreeBytes))*(time.Second/MinRate))
	if !p.latest.IsZero() && p.latest.Before(end) {
		end = p.latest
	}
	if d := end.Sub(p.set); p.set.IsZero() || d > min(deadlineStep, p.limit/4) || d < 0 {
		p.set = end
		p.deadline(end)
	}
}

// end is called after the wait, in which n bytes moved.
func (p *pace) end(n int) {
	p.spent += time.Since(p.begun) - time.Duration(n)*(time.Second/MinRate)
	p.spent = max(p.spent, 0)
	if p.stream {
		p.clear()
	}
}

// clear takes the deadline away.
func (p *pace) clear() {
	if !p.set.IsZero() {
		p.set = time.Time{}
		p.deadline(p.set)
	}
}

// deadline sets one, of the connection or of the HTTP/2 stream. Without
// deadlines (a recorder in a test) there is no limit.
func (p *pace) deadline(t time.Time) {
	if p.write {
		_ = p.ctl.SetWriteDeadline(t)
	} else {
		_ = p.ctl.SetReadDeadline(t)
	}
}

// BodyBy sets a time by which what is read of the body of r must have come;
// the zero time takes it away. r came through Frame.
func BodyBy(r *http.Request, t time.Time) {
	if b, ok := r.Body.(*trackedBody); ok {
		b.pace.latest, b.pace.set = t, time.Time{}
	}
}
