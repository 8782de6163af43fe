package coherence

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// publisher tells subscribers what this client is about to change.
type publisher struct {
	clock func() time.Duration
	log   *slog.Logger

	mu     sync.Mutex
	ticket uint64
	open   map[uint64][]Line // changes that are under way
	subs   map[*subscriber]bool
	slow   map[uint64]slowness
	closed bool

	waited time.Duration // by all announcements
	late   uint64        // how often a client was slow
}

// slowness is that of a client that did not take note in time.
type slowness struct {
	until   time.Duration // it is told nothing
	strikes int           // how often it was, without a break of slowTime << maxStrikes
}

func newPublisher(clock func() time.Duration, log *slog.Logger) *publisher {
	return &publisher{clock: clock, log: log, open: map[uint64][]Line{}, subs: map[*subscriber]bool{}, slow: map[uint64]slowness{}}
}

// subscriber is another client that is told, as long as its lease, which it renews, has not
// ended.
type subscriber struct {
	p    *publisher
	id   uint64
	wake chan struct{} // holds one when there is something to send
	gone chan struct{} // closed by drop

	// under p.mu
	ends    time.Duration // of the lease
	begun   []change      // to be sent
	ended   []uint64      // to be sent after begun
	last    uint64        // number of the last one that came to begun
	grant   uint64        // number of the renewal to be answered, 0 for none
	waiting []waiting     // in the order of their numbers
	tardy   int           // how often in a row it took long to take note
}

// waiting is an announcement that the subscriber has not taken note of yet.
type waiting struct {
	number uint64
	since  time.Duration
	of     *announcement
}

// announcement counts the subscribers that have not taken note of it.
type announcement struct {
	left int // under publisher.mu
	done chan struct{}
}

func (a *announcement) arrived() {
	if a.left--; a.left == 0 {
		close(a.done)
	}
}

// announce returns when each subscriber has taken note that list is about to change, or is told
// no more. finish ends the change. If ctx ends before, nothing may be changed.
func (p *publisher) announce(ctx context.Context, list []Line) (finish func(), err error) {
	a := &announcement{done: make(chan struct{})}
	p.mu.Lock()
	p.ticket++
	ticket := p.ticket
	p.open[ticket] = list
	a.left = len(p.subs)
	alone, now := a.left == 0, p.clock()
	for s := range p.subs {
		s.last++
		s.begun = append(s.begun, change{ticket, list})
		s.waiting = append(s.waiting, waiting{s.last, now, a})
		s.signal()
	}
	p.mu.Unlock()
	finish = func() { p.finish(ticket) }
	if alone {
		return finish, nil
	}
	defer p.stopWatch(now)
	select {
	case <-a.done:
		return finish, nil
	case <-ctx.Done():
		finish()
		return nil, ctx.Err()
	}
}

// stopWatch counts what an announcement waited.
func (p *publisher) stopWatch(since time.Duration) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited += now - since
}

func (p *publisher) finish(ticket uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, ticket)
	for s := range p.subs {
		s.ended = append(s.ended, ticket)
		s.signal()
	}
}

func (s *subscriber) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// serve tells the client id over conn until its lease ends.
func (p *publisher) serve(id uint64, conn net.Conn) {
	s, first, ok := p.enter(id)
	if !ok {
		return
	}
	var parts sync.WaitGroup
	parts.Go(func() { s.write(conn, &first) })
	parts.Go(func() { s.read(conn) })
	s.expire()
	conn.Close()
	parts.Wait()
}

// enter makes id a subscriber, unless it was slow, and returns what it is told first.
func (p *publisher) enter(id uint64) (s *subscriber, first message, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	var old *subscriber // which it has given up
	for o := range p.subs {
		if o.id == id {
			old = o
		}
	}
	if p.closed || old == nil && len(p.subs) >= maxPeers || now < p.slow[id].until {
		return nil, first, false
	}
	first = message{kind: welcome}
	size := 0
	for ticket, list := range p.open {
		size += changeBytes + lineBytes*len(list)
		first.begun = append(first.begun, change{ticket, list})
	}
	if size > maxMessage/2 {
		return nil, first, false // it asks again
	}
	if old != nil {
		p.drop(old)
	}
	s = &subscriber{p: p, id: id, ends: now + leaseTime, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	p.subs[s] = true
	return s, first, true
}

// expire waits until the lease has ended, and has s told no more.
func (s *subscriber) expire() {
	for {
		remains, late := s.remains()
		if late {
			s.p.log.Warn("a gateway took no note of changes in time, and is told of none for a while", "id", s.id)
		}
		if remains == 0 {
			return
		}
		select {
		case <-s.gone:
			return
		case <-time.After(remains):
		}
	}
}

// remains returns how long the lease goes on. Once it has ended, nobody waits for s. It was late
// if somebody did.
func (s *subscriber) remains() (left time.Duration, late bool) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if now < s.ends {
		return s.ends - now, false
	}
	if late = len(s.waiting) > 0 || s.tardy >= maxTardy; late {
		p.late++
		p.slower(s.id, now)
	}
	p.drop(s)
	return 0, late
}

// slower has id told nothing for a while. Under mu.
func (p *publisher) slower(id uint64, now time.Duration) {
	x := p.slow[id]
	if now > x.until+slowTime<<maxStrikes {
		x.strikes = 0
	}
	x.until = now + slowTime<<min(x.strikes, maxStrikes)
	x.strikes++
	p.slow[id] = x
}

// keep has nobody told who is not there any more, and answers nothing.
func (p *publisher) keep(there map[uint64]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if !there[s.id] {
			p.drop(s)
		}
	}
	for id := range p.slow {
		if !there[id] {
			delete(p.slow, id)
		}
	}
}

// drop has s told no more. Who waits for it goes on. Under mu.
func (p *publisher) drop(s *subscriber) {
	if !p.subs[s] {
		return
	}
	delete(p.subs, s)
	for _, w := range s.waiting {
		w.of.arrived()
	}
	s.waiting = nil
	close(s.gone)
}

// read takes what the subscriber says, until it leaves or the connection ends.
func (s *subscriber) read(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		m, err := readMessage(r)
		if err != nil || !s.said(&m) {
			return
		}
	}
}

// said reports whether more may come.
func (s *subscriber) said(m *message) bool {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.kind {
	case renew:
		now := p.clock()
		if !p.subs[s] || now >= s.ends || s.tardy >= maxTardy || len(s.waiting) > 0 && now-s.waiting[0].since > noteTime {
			return true // who takes no note is not waited for any longer
		}
		s.ends, s.grant = now+leaseTime, m.number
		s.signal()
	case applied:
		n := 0
		if len(s.waiting) > 0 && p.clock()-s.waiting[0].since > noteTime {
			s.tardy++
		} else {
			s.tardy = 0
		}
		for ; n < len(s.waiting) && s.waiting[n].number <= m.number; n++ {
			s.waiting[n].of.arrived()
		}
		s.waiting = s.waiting[n:]
	default: // bye
		p.drop(s)
		return false
	}
	return true
}

// write sends what there is to send.
func (s *subscriber) write(conn net.Conn, first *message) {
	b := first.append(nil)
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(leaseTime))
		if _, err := conn.Write(b); err != nil {
			return // the lease ends
		}
		select {
		case <-s.gone:
			return
		case <-s.wake:
		}
		b = s.take(b[:0])
	}
}

// take appends what is to be sent next to b.
func (s *subscriber) take(b []byte) []byte {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.grant != 0 {
		m := message{kind: granted, number: s.grant}
		b, s.grant = m.append(b), 0
	}
	n, size := 0, 0
	for ; n < len(s.begun) && size < maxMessage/2; n++ {
		size += changeBytes + lineBytes*len(s.begun[n].lines)
	}
	m := message{kind: told, number: s.last - uint64(len(s.begun)-n), begun: s.begun[:n]}
	if s.begun = s.begun[n:]; len(s.begun) == 0 { // an end comes after its begin
		e := min(len(s.ended), maxMessage/2/changeBytes)
		m.ended, s.ended = s.ended[:e], s.ended[e:]
	}
	if len(s.begun)+len(s.ended) > 0 {
		s.signal()
	}
	if len(m.begun)+len(m.ended) > 0 {
		b = m.append(b)
	}
	return b
}

// close has nobody told any more.
func (p *publisher) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for s := range p.subs {
		p.drop(s)
	}
}
