// Package gather has what many ask a server for at the same time go in one request.
//
//	Do ─ fewer than Calls under way ──► sent at once, alone
//	   └ else it waits ─ one ends ────► all that wait and go together are sent
//
// So nobody waits for others to come, and the more there are, the more go at once.
//
// # Invariants
//
//   - At most Calls are under way.
//   - Those who wait go in the order of arrival. One that does not go with those before it
//     (Batch.Add) is passed by, and is the first of the next call.
//   - A call is not given up with one of those in it.
package gather

import (
	"context"
	"slices"
	"sync"
)

// maxPassed bounds those who are passed by in the making of one Batch.
const maxPassed = 32

// Batch is what goes in one call.
type Batch[T any] interface {
	// Add adds item, unless it does not go with what is there. It adds the first one.
	Add(item T) bool
	// Send makes the call. Each item has its answer afterwards.
	Send()
}

// Group is what shares calls.
type Group[T any] struct {
	Calls int             // that may be under way
	New   func() Batch[T] // returns an empty one
	// Leave has those whose context ends while they are under way not wait for the answer.
	Leave bool

	mu      sync.Mutex
	waiting []*entry[T]
	calls   int
}

// entry is an item on its way.
type entry[T any] struct {
	item T
	sent bool // under Group.mu
	done chan struct{}
}

// Do has item sent, and returns when it is answered, or with an error if ctx ends before: as
// long as it is not sent, and with Leave until it is answered, which item may be then at any
// time. sent reports whether it was, or may have been.
func (g *Group[T]) Do(ctx context.Context, item T) (sent bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	e := &entry[T]{item: item, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, e)
	alone := g.calls < g.Calls
	if alone {
		g.calls++
	}
	g.mu.Unlock()
	switch { // nobody waits for a call that could be made
	case alone && g.Leave: // nor for its end
		go g.serve()
	case alone && g.send():
		go g.serve()
	}
	select {
	case <-e.done:
		return true, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	sent = e.sent
	if !sent {
		g.waiting = slices.DeleteFunc(g.waiting, func(o *entry[T]) bool { return o == e })
	}
	g.mu.Unlock()
	if sent && !g.Leave {
		<-e.done
		return true, nil
	}
	return sent, ctx.Err()
}

// serve makes calls for those who wait, one after another.
func (g *Group[T]) serve() {
	for g.send() {
	}
}

// send makes one call, and reports whether the caller is to make another one.
func (g *Group[T]) send() bool {
	b, list := g.take()
	if len(list) > 0 {
		b.Send()
		for _, e := range list {
			close(e.done)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 {
		return true
	}
	g.calls--
	return false
}

// take returns what goes in the next call.
func (g *Group[T]) take() (Batch[T], []*entry[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.New()
	var list, rest []*entry[T]
	for i, e := range g.waiting {
		if len(rest) == maxPassed {
			rest = append(rest, g.waiting[i:]...)
			break
		}
		if e.sent = b.Add(e.item); e.sent {
			list = append(list, e)
		} else {
			rest = append(rest, e)
		}
	}
	g.waiting = rest
	return b, list
}
