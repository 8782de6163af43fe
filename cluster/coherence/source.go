package coherence

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"ogw/cluster"
)

// source is another client, which tells this one what it is about to change.
type source struct {
	c    *Client
	peer cluster.Peer
	stop context.CancelFunc

	// under c.mu
	until time.Duration // it tells this one
	met   bool          // it has once
	left  bool          // for good
	open  map[uint64]marked
}

// marked is a change of another client that is under way.
type marked struct {
	lines []Line
	at    uint64
}

// run keeps the subscription until ctx ends.
func (s *source) run(ctx context.Context) {
	away := &outage{source: s, since: s.c.clock()}
	for ctx.Err() == nil {
		conn, err := s.c.id.dial(ctx, s.peer)
		if err == nil {
			err = s.subscribe(ctx, conn)
			conn.Close()
		}
		away.note(s.lost(), err)
		select {
		case <-ctx.Done():
		case <-time.After(redialPause):
		}
	}
}

// outage logs that a source cannot be reached, for long.
type outage struct {
	*source
	since  time.Duration
	logged bool
}

// note comes after each try. told reports whether it told something.
func (o *outage) note(told bool, err error) {
	switch log := o.c.log.With("address", o.peer.Address); {
	case told:
		if o.since = o.c.clock(); o.logged {
			log.Info("the other gateway told what it changes again")
		}
		o.logged = false
	case !o.logged && o.c.clock()-o.since > awayTime:
		log.Warn("another gateway does not tell what it changes, so that each answer is compared with the metadata (cluster.peer_listen)", "err", err)
		o.logged = true
	}
}

// subscription is one connection to a source.
type subscription struct {
	*source
	conn net.Conn
	send sync.Mutex // messages go one after another
}

// subscribe takes what the source tells, until the connection or ctx ends, and returns why.
func (s *source) subscribe(ctx context.Context, conn net.Conn) (err error) {
	b := &subscription{source: s, conn: conn}
	done := make(chan struct{})
	var parts sync.WaitGroup
	parts.Go(func() { b.renew(ctx, done) })
	r := bufio.NewReader(conn)
	for err == nil {
		// Who is silent for longer does not answer renewals either.
		_ = conn.SetReadDeadline(time.Now().Add(2 * leaseTime))
		var m message
		if m, err = readMessage(r); err == nil {
			err = b.heard(&m)
		}
	}
	close(done)
	conn.Close()
	parts.Wait()
	return err
}

// renew asks for the lease again and again.
func (b *subscription) renew(ctx context.Context, done <-chan struct{}) {
	every := time.NewTicker(renewEvery)
	defer every.Stop()
	for {
		// The answer has the same number: the clock from which the lease counts.
		if b.say(message{kind: renew, number: uint64(b.c.clock())}) != nil {
			return
		}
		select {
		case <-every.C:
		case <-done:
			return
		case <-ctx.Done():
			b.leave()
			_ = b.say(message{kind: bye}) // else the lease ends
			b.conn.Close()
			return
		}
	}
}

func (b *subscription) say(m message) error {
	b.send.Lock()
	defer b.send.Unlock()
	_ = b.conn.SetWriteDeadline(time.Now().Add(leaseTime))
	_, err := b.conn.Write(m.append(nil))
	return err
}

// heard takes a message of the source.
func (b *subscription) heard(m *message) error {
	switch m.kind {
	case welcome:
		b.note(m)
	case told:
		if b.note(m); len(m.begun) > 0 {
			return b.say(message{kind: applied, number: m.number})
		}
	case granted:
		b.extend(time.Duration(m.number) + leaseTime - leaseMargin)
	default:
		return errMessage
	}
	return nil
}

// note marks what begins and ends, and has what begins given back.
func (s *source) note(m *message) {
	s.mark(m)
	for _, c := range m.begun {
		s.c.loans.recall(c.lines)
	}
}

func (s *source) mark(m *message) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, c := range m.begun {
		s.open[c.ticket] = marked{c.lines, s.c.trust.begin(c.lines)}
	}
	for _, ticket := range m.ended {
		if c, ok := s.open[ticket]; ok {
			s.c.trust.end(c.lines, c.at)
			delete(s.open, ticket)
		}
	}
}

// extend has the source tell until a clock.
func (s *source) extend(until time.Duration) {
	s.c.loans.lapse()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.left {
		return
	}
	s.until = until
	if !s.met {
		s.met = true
		s.c.changed()
	}
	s.c.judge()
}

// leave comes before the source is asked to tell no more.
func (s *source) leave() {
	s.quit(true)
	s.c.loans.recallAll() // the source waits for nobody from then on
}

// lost comes after a subscription, and reports whether there was one: what was under way is
// told anew by the next one.
func (s *source) lost() (told bool) {
	told = s.quit(false)
	s.c.loans.recallAll() // nor for who comes again
	return told
}

// quit has nothing trusted until the source tells again, and reports whether it did.
func (s *source) quit(left bool) (told bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	told, s.until, s.left = s.until != 0, 0, s.left || left
	s.c.judge()
	if left {
		return told // the connection goes on until the source has heard
	}
	for ticket, c := range s.open {
		s.c.trust.end(c.lines, c.at)
		delete(s.open, ticket)
	}
	return told
}
