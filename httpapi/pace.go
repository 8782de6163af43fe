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
	// what smaller ones do. LazyDeadlines sees how far it came.
	paceSliceBytes = 1 << 20
	// streamSliceBytes is written to an HTTP/2 stream at a time, of which nobody
	// knows how far it came: less takes StallTime at MinRate.
	streamSliceBytes = 256 << 10
)

// pace ends one direction of a request that stands still: waiting for the
// client uses credit, and bytes that move earn it again, up to limit. Only
// waiting counts: the time in which the store works is not the client's.
type pace struct {
	w      http.ResponseWriter // has the deadlines
	write  bool                // the direction
	limit  time.Duration       // StallTime, except in tests
	spent  time.Duration       // of the limit
	begun  time.Duration       // of the wait
	set    time.Duration       // the deadline; zero: none
	latest time.Duration       // no wait may be longer; zero: no such bound
	// stream is set with HTTP/2, where a deadline that passes ends the stream
	// though nobody waits for it.
	stream bool
}

// Times here count from the start of the process: a third of a time.Time.
var started = time.Now()

// begin is called before the connection is waited for.
func (p *pace) begin() {
	p.begun = time.Since(started)
	end := p.begun + p.limit - p.spent
	if p.latest != 0 && p.latest < end {
		end = p.latest
	}
	if d := end - p.set; p.set == 0 || d > min(deadlineStep, p.limit/4) || d < 0 {
		p.until(end)
	}
}

// end is called after the wait, in which n bytes moved.
func (p *pace) end(n int) {
	p.spent += time.Since(started) - p.begun - time.Duration(n)*(time.Second/MinRate)
	p.spent = max(p.spent, 0)
	if p.stream {
		p.clear()
	}
}

// clear takes the deadline away.
func (p *pace) clear() {
	if p.set != 0 {
		p.set = 0
		p.deadline(time.Time{})
	}
}

// until sets a deadline.
func (p *pace) until(end time.Duration) {
	p.set = end
	p.deadline(started.Add(end))
}

// deadline sets one, of the connection or of the HTTP/2 stream. Without
// deadlines (a recorder in a test) there is no limit.
func (p *pace) deadline(t time.Time) {
	if ctl := http.NewResponseController(p.w); p.write {
		_ = ctl.SetWriteDeadline(t)
	} else {
		_ = ctl.SetReadDeadline(t)
	}
}

// BodyBy sets a time by which what is read of the body of r must have come;
// the zero time takes it away. r came through Frame.
func BodyBy(r *http.Request, t time.Time) {
	if b, ok := r.Body.(*trackedBody); ok {
		b.pace.latest, b.pace.set = 0, 0
		if !t.IsZero() {
			b.pace.latest = t.Sub(started)
		}
	}
}
