package rados

import "sync"

// sends are the requests of a writer that are under way. They are begun and waited for by
// one goroutine.
type sends struct {
	slots chan struct{}
	wg    *sync.WaitGroup
	mu    *sync.Mutex
	err   *error // of the first that failed
}

func newSends() sends {
	return sends{slots: make(chan struct{}, partsUnderWay), wg: new(sync.WaitGroup), mu: new(sync.Mutex), err: new(error)}
}

// failed returns the error of one that ended.
func (s sends) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.err
}

// begin has a request made, once there is room. After one that failed it is made all the
// same, and the error returned: what it holds, it lets go.
func (s sends) begin(request func() error) error {
	s.slots <- struct{}{}
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		err := request()
		s.mu.Lock()
		defer s.mu.Unlock()
		if *s.err == nil {
			*s.err = err
		}
	})
	return s.failed()
}

// wait waits for all, and returns the error of one.
func (s sends) wait() error {
	s.wg.Wait()
	return s.failed()
}
