package backup

import (
	"context"
	"sync"
	"time"
)

// packsInFlight bounds what is being written to a storage at a time.
const packsInFlight = 3

// uploads runs writes beside each other. The first error ends all.
type uploads struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	slots  chan struct{}
	wg     sync.WaitGroup
	pace   *pace
}

func newUploads(ctx context.Context, inFlight int, p *pace) *uploads {
	u := &uploads{slots: make(chan struct{}, inFlight), pace: p}
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	return u
}

// put stores an object; it returns when there is a slot, and why writes ended.
func (u *uploads) put(s Storage, name string, data []byte) error {
	return u.run(func(ctx context.Context) error {
		if err := u.pace.wait(ctx, len(data)); err != nil {
			return err
		}
		return s.Put(ctx, name, data, false)
	})
}

func (u *uploads) run(fn func(ctx context.Context) error) error {
	select {
	case u.slots <- struct{}{}:
	case <-u.ctx.Done():
		return context.Cause(u.ctx)
	}
	u.wg.Go(func() {
		defer func() { <-u.slots }()
		if err := fn(u.ctx); err != nil {
			u.cancel(err)
		}
	})
	return nil
}

// wait returns when all is written.
func (u *uploads) wait() error {
	u.wg.Wait()
	return context.Cause(u.ctx)
}

// end gives up what is not written, and returns when nothing is being written.
func (u *uploads) end() {
	u.cancel(nil)
	u.wg.Wait()
}

// pace spreads bytes over time; nil does not.
type pace struct {
	mu   sync.Mutex
	rate int64 // bytes a second
	next time.Time
}

func newPace(rate int64) *pace {
	if rate <= 0 {
		return nil
	}
	return &pace{rate: rate}
}

// wait returns when n more bytes may go.
func (p *pace) wait(ctx context.Context, n int) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	at := p.next
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	p.mu.Unlock()
	select {
	case <-time.After(at.Sub(now)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
