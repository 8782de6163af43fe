//go:build ceph

package librados

import (
	"context"
	"errors"
	"testing"
	"time"

	"ogw/cluster"
)

// Where some placement groups do not answer and others do, the pool is not silent, and
// requests to the former may hold all slots: who waits for one is told in bounded time.
func TestNoSlot(t *testing.T) {
	p := &Pool{options: Options{Pool: "pool", Timeout: 50 * time.Millisecond}, slots: make(chan struct{}, 1)}
	p.slots <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	made, released := false, false
	err := p.do(ctx, func() error { made = true; return nil }, func() { released = true })
	if !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, errLeft) || ctx.Err() != nil {
		t.Errorf("without a slot: %v", err)
	}
	if made || !released {
		t.Errorf("the request was made: %v, released: %v", made, released)
	}
	<-p.slots
	if err := p.do(ctx, func() error { return nil }, func() {}); err != nil {
		t.Errorf("with one: %v", err)
	}
}
