package backup

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// counted counts what is being read at a time.
type counted struct {
	Storage
	now, most atomic.Int64
}

func (c *counted) Get(ctx context.Context, name string, off, n int64) ([]byte, error) {
	now := c.now.Add(1)
	for m := c.most.Load(); now > m && !c.most.CompareAndSwap(m, now); m = c.most.Load() {
	}
	defer c.now.Add(-1)
	return c.Storage.Get(ctx, name, off, n)
}

// TestPackCache: whoever reads, packs have no more memory than they may, and one that
// cannot be read has none.
func TestPackCache(t *testing.T) {
	const packs, bytes = 40, 10_000
	s := &counted{Storage: testDir(t)}
	for n := range uint32(packs) {
		p := packBuilder{n: n}
		p.add(fmt.Append(nil, "m", n), make([]byte, bytes), sum{})
		b := p.build()
		if n%10 == 3 {
			b = b[:len(b)/2]
			b[0]++
		}
		if err := s.Put(t.Context(), packName(0, n), b, false); err != nil {
			t.Fatal(err)
		}
	}
	c := &packCache{storage: s, limit: 3*bytes + bytes/2, read: func(int) {}}
	failed := atomic.Int64{}
	var wg sync.WaitGroup
	for w := range uint32(8) {
		wg.Go(func() {
			for i := range uint32(3 * packs) {
				err := c.use(t.Context(), packName(0, (5*w+i)*7%packs), bytes, func(*pack) error {
					c.mu.Lock()
					defer c.mu.Unlock()
					if c.bytes > c.limit {
						t.Errorf("%d bytes of %d", c.bytes, c.limit)
					}
					return nil
				})
				if err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if s.most.Load() > 3 {
		t.Errorf("%d packs are read at a time", s.most.Load())
	}
	if failed.Load() != 8*3*packs/10 {
		t.Errorf("%d failed", failed.Load())
	}
	if c.bytes > c.limit || len(c.list) > packs/2 {
		t.Errorf("%d packs of %d bytes stay", len(c.list), c.bytes)
	}
	// A pack longer than all of it is read alone.
	c.limit = bytes / 2
	if err := c.use(t.Context(), packName(0, 0), bytes, func(*pack) error { return nil }); err != nil || len(c.list) != 1 {
		t.Errorf("%d packs, %v", len(c.list), err)
	}
}
