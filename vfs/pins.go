package vfs

import (
	"context"
	"sync"
)

// contentPins protects contents from the collector while they are read or
// written by this process, and tells a reader when a content changed in place.
//
// A reader learns of a content in a view and pins it before the view ends.
// The collector, once it knows what is dropped, waits for the views that
// began earlier (quiesce); what is unpinned after that can gain no reader,
// because every later view sees it dropped.
type contentPins struct {
	mu     sync.Mutex
	pins   map[ContentID]*contentPin
	epoch  uint64         // grows with every quiesce
	active map[uint64]int // running views by the epoch in which they began
	ended  chan struct{}  // closed when the last view of an older epoch ends
}

type contentPin struct {
	n       int
	changes uint64 // in-place changes while pinned
}

func (p *contentPins) init() {
	p.pins = make(map[ContentID]*contentPin)
	p.active = make(map[uint64]int)
	p.ended = make(chan struct{})
}

// pin protects c until unpin and returns the number of its changes so far.
func (p *contentPins) pin(c ContentID) (changes uint64) {
	if c == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.pins[c]
	if e == nil {
		e = &contentPin{}
		p.pins[c] = e
	}
	e.n++
	return e.changes
}

func (p *contentPins) unpin(c ContentID) {
	if c == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.pins[c]; e != nil {
		if e.n--; e.n == 0 {
			delete(p.pins, c)
		}
	}
}

func (p *contentPins) pinned(c ContentID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pins[c] != nil
}

// touch records that c is about to change in place. It comes before the
// commit, so that a view which sees the change finds it recorded.
func (p *contentPins) touch(c ContentID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.pins[c]; e != nil {
		e.changes++
	}
}

// changes returns how often the pinned content c changed while pinned.
func (p *contentPins) changes(c ContentID) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.pins[c]; e != nil {
		return e.changes
	}
	return 0
}

// enter counts a view that begins; leave takes what it returned.
func (p *contentPins) enter() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[p.epoch]++
	return p.epoch
}

func (p *contentPins) leave(epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[epoch]--; p.active[epoch] > 0 {
		return
	}
	delete(p.active, epoch)
	if epoch < p.epoch {
		close(p.ended)
		p.ended = make(chan struct{})
	}
}

// quiesce waits until every view that runs now has ended.
func (p *contentPins) quiesce(ctx context.Context) error {
	p.mu.Lock()
	p.epoch++
	now := p.epoch
	for {
		old := false
		for e := range p.active {
			old = old || e < now
		}
		ended := p.ended
		p.mu.Unlock()
		if !old {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		p.mu.Lock()
	}
}

// contentSet is a set of contents.
type contentSet struct {
	mu sync.Mutex
	m  map[ContentID]struct{}
}

func (s *contentSet) add(c ContentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = make(map[ContentID]struct{})
	}
	s.m[c] = struct{}{}
}

func (s *contentSet) remove(c ContentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, c)
}

func (s *contentSet) has(c ContentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.m[c]
	return ok
}
