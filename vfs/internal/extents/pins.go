package extents

import (
	"context"
	"sync"

	"ogw/vfs/internal/record"
)

// Pins protects contents from the collector while they are read or
// written by this process, and notifies a reader when a content changed in place.
//
// A reader learns of a content in a view and pins it before the view ends.
// Of changes that began before the pin, it learns from the pin itself and from
// the inode as it is then (see content.Reader.notOvertaken). The collector, once it
// knows what is dropped, waits for the views that
// began earlier (session.Session.Settle); what is unpinned after that can gain no reader,
// because every later view sees it dropped.
type Pins struct {
	mu   sync.Mutex
	time uint64 // grows with each Mark
	pins map[record.ContentID]*contentPin
}

type contentPin struct {
	n       int           // readers, writers, and transactions that change it in place
	since   uint64        // time of the first of them
	changes uint64        // in-place changes that began while pinned
	running int           // those under way
	quiet   chan struct{} // closed when running is 0; nil if nobody waits
}

func (p *Pins) Init() { p.pins = make(map[record.ContentID]*contentPin) }

// Pin protects c until unpin. It returns the number of its changes so far, and
// whether one is under way.
func (p *Pins) Pin(c record.ContentID) (changes uint64, changing bool) {
	if c == 0 {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.hold(c)
	return e.changes, e.running > 0
}

// hold is called with mu held.
func (p *Pins) hold(c record.ContentID) *contentPin {
	e := p.pins[c]
	if e == nil {
		e = &contentPin{since: p.time}
		p.pins[c] = e
	}
	e.n++
	return e
}

func (p *Pins) Unpin(c record.ContentID) {
	if c == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGo(c)
}

// letGo is called with mu held.
func (p *Pins) letGo(c record.ContentID) {
	if e := p.pins[c]; e != nil {
		if e.n--; e.n == 0 {
			delete(p.pins, c)
		}
	}
}

func (p *Pins) Pinned(c record.ContentID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pins[c] != nil
}

// Mark begins a time, for Older.
func (p *Pins) Mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.time++
}

// Older returns the contents that have been pinned since before the last Mark; ok
// reports whether there are no more than most.
func (p *Pins) Older(most int) (list []record.ContentID, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, e := range p.pins {
		if e.since == p.time {
			continue
		}
		if len(list) == most {
			return nil, false
		}
		list = append(list, c)
	}
	return list, true
}

// Awaited reports whether somebody waits for the changes of c (Await).
func (p *Pins) Awaited(c record.ContentID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.pins[c]
	return e != nil && e.quiet != nil
}

// Begin records that a transaction is about to change c in place, so that a view
// which sees the change finds it recorded; end, that such transactions are over.
func (p *Pins) Begin(c record.ContentID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.hold(c)
	e.changes++
	e.running++
}

func (p *Pins) End(list []record.ContentID) {
	if len(list) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		e := p.pins[c]
		if e.running--; e.running == 0 && e.quiet != nil {
			close(e.quiet)
			e.quiet = nil
		}
		p.letGo(c)
	}
}

// Await waits until no transaction changes c in place.
func (p *Pins) Await(ctx context.Context, c record.ContentID) error {
	p.mu.Lock()
	e := p.pins[c]
	if e == nil || e.running == 0 {
		p.mu.Unlock()
		return nil
	}
	if e.quiet == nil {
		e.quiet = make(chan struct{})
	}
	done := e.quiet
	p.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Changes returns how often the pinned content c changed while pinned.
func (p *Pins) Changes(c record.ContentID) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.pins[c]; e != nil {
		return e.changes
	}
	return 0
}

// Set is a set of contents.
type Set struct {
	mu sync.Mutex
	m  map[record.ContentID]struct{}
}

func (s *Set) Add(c record.ContentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = make(map[record.ContentID]struct{})
	}
	s.m[c] = struct{}{}
}

func (s *Set) Remove(c record.ContentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, c)
}

func (s *Set) Has(c record.ContentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.m[c]
	return ok
}
