package rados

import (
	"context"
	"sync"
)

// sends are the requests of a writer that are under way. They are begun and waited for by
// one goroutine at a time.
type sends struct {
	slots chan struct{}
	mu    sync.Mutex
	err   error // of the first that failed
}

func newSends() *sends { return &sends{slots: make(chan struct{}, partsUnderWay)} }

// failed returns the error of one that ended.
func (s *sends) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// room waits until another request may begin.
func (s *sends) room(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin has a request made, for which there is room. After one that failed it is made all the
// same, and the error returned: what it holds, it lets go.
func (s *sends) begin(request func() error) error {
	go func() {
		defer func() { <-s.slots }()
		err := request()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}()
	return s.failed()
}

// wait waits for all, and returns the error of one, or why the caller gave up.
func (s *sends) wait(ctx context.Context) error {
	for n := range partsUnderWay {
		if err := s.room(ctx); err != nil {
			s.free(n)
			return err
		}
	}
	s.free(partsUnderWay)
	return s.failed()
}

func (s *sends) free(n int) {
	for range n {
		<-s.slots
	}
}
