package httpapi

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"ogw/vfs/clients/pipe"
	"ogw/vfs/clients/unsent"
)

const (
	// watchBytes is from where on a write looks after its bytes: less does not
	// take StallTime at MinRate.
	watchBytes = 256 << 10
	// watchStep is how often it does, and so is any write of a wide connection.
	watchStep = time.Second
	// leastEarned is from where on a write puts its deadline off. Less is an answer
	// without a body: the records of TLS, which cut large writes, are longer.
	leastEarned = 1 << 10
)

// LazyDeadlines returns l, whose connections spare the timers of deadlines
// that move on. net/http and Frame set and clear several in each request, and
// none of them comes: a deadline is given to the connection by the call that it
// could end, one that is put off leaves the timer as it is, and who is woken by a
// timer that was put off waits again.
//
// The read of one byte by which net/http learns, while a request runs, that its
// client is gone waits for noticeAfter before it is made. Another read of one byte, at
// the end of a full buffer, is late by that.
//
// The bytes of a write put its deadline off, each by its time at MinRate, to
// StallTime from now at the most: a large write lasts while its client takes
// some, and ends soon after the client stands still.
//
// Of what a connection cannot send yet the kernel holds little, and more where it
// pays: a few connections of s with large replies.
func LazyDeadlines(l net.Listener, s *Sends) net.Listener {
	return &lazyListener{Listener: l, stall: StallTime, wides: s.wides}
}

type lazyListener struct {
	net.Listener
	stall time.Duration // StallTime, except in tests
	wides *unsent.Pool
}

// Accept implements net.Listener.
func (l *lazyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	lazy := newLazyConn(c, l.stall)
	if l.wides != nil {
		lazy.unsent.Bound(c, l.wides)
	}
	return lazy, nil
}

type lazyConn struct {
	net.Conn
	read, write lazyDeadline
	unsent      unsent.Conn
	gather      gatherer // of who writes
}

// Close implements net.Conn.
func (c *lazyConn) Close() error {
	c.unsent.Closes()
	c.read.closes()
	return c.Conn.Close()
}

func newLazyConn(c net.Conn, stall time.Duration) *lazyConn {
	return &lazyConn{Conn: c, read: lazyDeadline{apply: c.SetReadDeadline}, write: lazyDeadline{apply: c.SetWriteDeadline, stall: stall}}
}

// Read implements net.Conn.
func (c *lazyConn) Read(p []byte) (int, error) {
	if !c.read.begin(len(p) == 1) {
		return 0, os.ErrDeadlineExceeded
	}
	defer c.read.end()
	for {
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.unsent.Reads()
		}
		if err == nil || n > 0 || !c.read.early(err) {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *lazyConn) Write(p []byte) (int, error) {
	if c.gather.body == 0 {
		return c.send(p)
	}
	out := c.gather.add(p)
	if out == nil {
		return len(p), nil
	}
	_, err := c.send(out)
	c.gather.end()
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *lazyConn) send(p []byte) (int, error) {
	return c.sends(len(p), func(from int) (int, error) { return c.Conn.Write(p[from:]) })
}

// sends writes so many bytes: write continues where it stopped.
func (c *lazyConn) sends(bytes int, write func(from int) (int, error)) (written int, err error) {
	if !c.write.begin(false) {
		return 0, os.ErrDeadlineExceeded
	}
	defer c.write.end()
	c.unsent.Writes(bytes)
	for {
		// The kernel of a wide connection takes more only after half of what it
		// holds went out, so a record of TLS waits as long as a large write.
		if bytes-written >= watchBytes || c.unsent.Wide() {
			c.write.watch()
		}
		n, err := write(written)
		written += n
		c.write.earned(n)
		if err == nil || !c.write.early(err) {
			return written, err
		}
	}
}

// ReadFrom implements io.ReaderFrom: what is in a pipe goes to the socket as it is.
func (c *lazyConn) ReadFrom(r io.Reader) (written int64, err error) {
	p, ok := r.(*pipe.Pipe)
	if !ok || c.unsent.Socket() == nil {
		return io.Copy(struct{ io.Writer }{c}, r)
	}
	n, err := c.sends(p.Len(), func(int) (int, error) { return p.Send(c.unsent.Socket()) })
	return int64(n), err
}

// SetDeadline implements net.Conn.
func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.set(t), c.write.set(t))
}

// SetReadDeadline implements net.Conn.
func (c *lazyConn) SetReadDeadline(t time.Time) error { return c.read.set(t) }

// SetWriteDeadline implements net.Conn.
func (c *lazyConn) SetWriteDeadline(t time.Time) error { return c.write.set(t) }

// CloseWrite lets net/http end a connection so that its last answer arrives.
func (c *lazyConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, as tls.Conn has it.
func (c *lazyConn) NetConn() net.Conn { return c.Conn }

// lazyDeadline is the deadline of one direction. The one that the connection
// has, armed, is never later than the one wanted while a call is under way.
type lazyDeadline struct {
	apply func(time.Time) error // to the connection
	stall time.Duration         // bytes put it off so far from now at the most

	mu     sync.Mutex
	wanted time.Time // zero: none
	armed  time.Time // zero: none
	calls  int       // under way in the connection
	notice notice
}

// set is SetDeadline of the direction.
func (d *lazyDeadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if d.ended() {
		d.notice.release()
	}
	if d.calls == 0 || d.covered() {
		return nil
	}
	return d.arm()
}

// begin precedes a call, which waits for noticeAfter first if it is
// only to notice an end. It reports false after the deadline by which net/http
// ends a read.
func (d *lazyDeadline) begin(notices bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if notices && !d.ended() && d.notice.starts(d.tick) {
		d.mu.Unlock()
		<-d.notice.over
		d.mu.Lock()
	}
	if d.ended() {
		return false
	}
	d.calls++
	if !d.covered() {
		_ = d.arm() // what is wrong with the connection, the call reports
	}
	return true
}

// end follows the call.
func (d *lazyDeadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
}

// ended reports whether the deadline wanted is the one long past by which
// net/http ends its read. mu is held.
func (d *lazyDeadline) ended() bool { return !d.wanted.IsZero() && d.wanted.Before(started) }

// covered reports whether the deadline that is armed will do. mu is held.
func (d *lazyDeadline) covered() bool {
	switch {
	case d.armed.IsZero():
		return d.wanted.IsZero()
	case d.armed.Before(started):
		return false // it would fail the next call
	}
	return d.wanted.IsZero() || !d.wanted.Before(d.armed)
}

// watch has the call that follows woken within watchStep, if it has a deadline.
func (d *lazyDeadline) watch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted.IsZero() {
		return
	}
	now := time.Now()
	soon := now.Add(watchStep)
	if soon.After(d.wanted) || d.armed.After(now) && !d.armed.After(soon) {
		return
	}
	if d.apply(soon) == nil {
		d.armed = soon
	}
}

// earned puts the deadline off for n bytes that moved.
func (d *lazyDeadline) earned(n int) {
	if n < leastEarned {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted.IsZero() {
		return
	}
	later, most := d.wanted.Add(time.Duration(n)*(time.Second/MinRate)), time.Now().Add(d.stall)
	if later.After(most) {
		later = most
	}
	if later.After(d.wanted) {
		d.wanted = later
	}
}

// early reports whether err comes from a deadline that has since been put off, so
// that the call has to be made again. It arms the one that is wanted.
func (d *lazyDeadline) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && (d.wanted.Before(started) || !d.wanted.After(time.Now())) {
		return false
	}
	return d.arm() == nil
}

// arm makes the deadline wanted that of the connection. mu is held.
func (d *lazyDeadline) arm() error {
	err := d.apply(d.wanted)
	if err == nil {
		d.armed = d.wanted
	}
	return err
}
